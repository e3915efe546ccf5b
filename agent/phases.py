"""What comes next, as a function of the fold; the one rule of order that graph and replay share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum

from agent.act import act
from agent.decide import decide
from agent.fold import View
from agent.limits import time_left_s
from agent.report import report
from agent.run import Run
from agent.survey import open_looks, survey
from agent.verify import verify
from tools.errors import ConnectionFailed


class Phase(StrEnum):
    """The nodes of the graph, and its end."""

    SURVEY = "survey"
    DECIDE = "decide"
    APPROVE = "approve"
    ACT = "act"
    VERIFY = "verify"
    REPORT = "report"
    END = "end"


NODES: dict[str, Callable[[Run], None]] = {
    Phase.SURVEY: survey,
    Phase.DECIDE: decide,
    Phase.ACT: act,
    Phase.VERIFY: verify,
    Phase.REPORT: report,
}
"""Every node but ``approve``, which waits for a person."""


def go(run: Run, name: str) -> None:
    """Run one node; a target that cannot be reached ends the run, with the error on record."""
    with suppress(ConnectionFailed):
        NODES[name](run)


def phase(view: View) -> Phase:
    """Say what comes next."""
    if view.ended is not None:
        return Phase.END
    if _is_over(view):
        return Phase.REPORT
    if view.claim is not None and view.verified is None:
        return Phase.VERIFY
    if open_looks(view):
        return Phase.SURVEY
    if view.pending_approvals:
        return Phase.APPROVE
    if view.queue and time_left_s(view) > 0:
        return Phase.ACT
    return Phase.DECIDE  # which records that the time is over, where it is; the queue ends then


def _is_over(view: View) -> bool:
    stopped = any(answer.answer == "stop" for answer in view.answers.values())
    ends = (view.error, view.limit, view.gave_up)
    return bool(view.verified or stopped or any(end is not None for end in ends))
