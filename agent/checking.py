"""Runs one check for code's own purposes: its READ call, then its verdict."""

from __future__ import annotations

from typing import Literal

from agent.check import Standing
from agent.checks import check_of
from agent.dispatch import look
from agent.judge import Verdict
from agent.run import Run
from agent.site import site_of
from agent.values import CallStatus
from tools.registry import find


def run_check(
    run: Run, name: str, call_id: str, origin: Literal["verify", "fix_check"]
) -> Standing:
    """Ask the target now, whatever was known before, and judge the answer.

    Args:
        run: the run.
        name: the check.
        call_id: id for the READ call.
        origin: on whose behalf it is asked.

    Raises:
        ConnectionFailed: the target cannot be reached.
    """
    check = check_of(run.view, name)
    site = site_of(run.view)
    call = check.probe(run.view, site)
    if call is None:
        return Standing(check.idle)
    ended = look(run, call.model_copy(update={"id": call_id}), origin)
    if ended.status is not CallStatus.OK and check.refusal_decides:
        return Standing(Verdict(False, "no answer", ended.message), (ended.id,))
    if ended.status is not CallStatus.OK:
        return Standing(Verdict(None, ended.message), (ended.id,))
    seen = find(call.tool).observation_type.model_validate(ended.observation)
    return Standing(check.verdict(run.view, seen, site), (ended.id,))
