"""Takes back what a run has done to make a host ready: exactly that, the latest first."""

from __future__ import annotations

from typing import Any

from agent.engine import carry_out
from agent.records import CallRecord
from agent.run import Run
from agent.values import CallStatus, Purpose, ToolCall
from agent.ways_back import WAYS_BACK, way_back
from tools.host_changes import TakeBack
from tools.os_packages import InstallPackages


def take_all_back(run: Run) -> tuple[list[str], list[str]]:
    """Undo the run's changes of its host.

    Returns:
        What was taken back, and what would not be, with the reason.
    """
    view = run.view
    gone = {
        record.call.purpose.ref
        for record in view.calls.values()
        if record.call.tool == TakeBack().name and record.status is CallStatus.OK
    }
    done: list[str] = []
    left: list[str] = []
    for record in reversed(list(view.changes)):
        if record.call.tool not in WAYS_BACK or record.call.id in gone:
            continue
        if record.status is not CallStatus.OK:
            left += _not_known(record)
            continue
        args = way_back(record)
        if args is None:
            continue  # it had changed nothing
        if carry_out(run, _call(record, args)) is CallStatus.OK:
            done.append(next(reversed(view.calls.values())).message)
        else:
            said = next(reversed(view.calls.values())).message
            left.append(f"{record.call.tool} could not be taken back: {said}")
    return done, left


def _not_known(record: CallRecord) -> list[str]:
    """Say what to look at where it is not known what a change has left."""
    if record.call.tool != InstallPackages().name:
        return []  # the scripts of the others leave nothing where they fail
    names = ", ".join(record.call.args["packages"])
    return [f"what the broken installation of {names} left is not known: see /var/log/apt"]


def _call(record: CallRecord, args: dict[str, Any]) -> ToolCall:
    return ToolCall(
        tool=TakeBack().name,
        args=args,
        target=record.call.target,
        purpose=Purpose(kind="recover", ref=record.call.id),
        why="the run takes back what it did",
    )
