"""Takes back what a run has done to make a host ready: exactly that, the latest first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent.engine import carry_out
from agent.records import CallRecord
from agent.run import Run
from agent.values import CallStatus, Purpose, ToolCall
from tools.host_changes import (
    AddToGroup,
    MakeEnvironment,
    SetLimits,
    TakeBack,
)
from tools.nvidia_runtime import ConfigureDockerRuntime
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
        args = WAYS_BACK[record.call.tool](record.observation)
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
        args={**args, "call": record.call.id},
        target=record.call.target,
        purpose=Purpose(kind="recover", ref=record.call.id),
        why="the run takes back what it did",
    )


Way = Callable[[dict[str, Any]], dict[str, Any] | None]


def _packages(seen: dict[str, Any]) -> dict[str, Any] | None:
    names = [str(item).split()[0] for item in seen["new"]]
    return {"what": "packages", "names": names} if names else None


def _environment(seen: dict[str, Any]) -> dict[str, Any] | None:
    return {"what": "environment", "names": [seen["folder"]]}


def _group(seen: dict[str, Any]) -> dict[str, Any] | None:
    if seen["was_member"]:
        return None
    return {"what": "group", "names": [seen["group"], seen["user"]]}


def _limits(seen: dict[str, Any]) -> dict[str, Any] | None:
    return {"what": "limits", "names": [seen["path"], *filter(None, [seen["backup"]])]}


def _runtime(seen: dict[str, Any]) -> dict[str, Any] | None:
    names = [seen["path"], seen["written"], *filter(None, [seen["backup"]])]
    return {"what": "runtime", "names": names}


WAYS_BACK: dict[str, Way] = {
    InstallPackages().name: _packages,
    MakeEnvironment().name: _environment,
    AddToGroup().name: _group,
    SetLimits().name: _limits,
    ConfigureDockerRuntime().name: _runtime,
}
"""What takes a change back, by what its result says; ``None`` where nothing was changed."""
