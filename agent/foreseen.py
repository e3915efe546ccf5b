"""Whether a call is exactly what code itself would do for its purpose, whoever asks for it.

Mode ``auto`` grants calls that reach far (install, build, pull, fetch, start) only where they are:
what a brain adds of its own is asked about. Looks that go beyond the goal are let through by the
same rule.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ValidationError

from agent import diagnose
from agent.advance import CALLS, call_to
from agent.calls import full
from agent.control import CONTROLS
from agent.fold import View
from agent.frontier import frontier
from agent.kinds.base import Hypothesis
from agent.site import Site, site_of
from agent.values import ToolCall
from tools.registry import find


def foreseen(view: View, call: ToolCall) -> bool:
    """Compare a change with those that the playbook's own knowledge leads to here."""
    if call.tool in CONTROLS:
        return False
    return any(_same(call, other) for other in _expected(view, call))


def foreseen_look(view: View, call: ToolCall) -> bool:
    """Compare a look with those that would tell more here, and a choice with those of a fix."""
    now = frontier(view)
    looks = [now.call, *(item.probe for item in now.hypotheses)]
    found = [*filter(None, looks), *_steps(now.hypotheses, call.tool)]
    return any(_same(call, other) for other in found)


def _expected(view: View, call: ToolCall) -> list[ToolCall]:
    site = site_of(view)
    own = [call_to(view, site, call.tool)] if _is_of(site, call.tool) else []
    diagnosis = view.diagnoses.get(call.purpose.ref)
    if call.purpose.kind != "fix" or diagnosis is None:
        return own
    return own + _steps(diagnose.rank(view, diagnosis.check), call.tool)


def _is_of(site: Site, tool: str) -> bool:
    """Whether the tool takes such a place further: an image is not fetched for an environment."""
    return tool in CALLS and find(tool).runs_in in ("", site.kind)


def _steps(hypotheses: Iterable[Hypothesis], tool: str) -> list[ToolCall]:
    plans = [item.fix for item in hypotheses if item.fix is not None]
    return [step for plan in plans for step in plan.calls if step.tool == tool]


def _same(call: ToolCall, other: ToolCall) -> bool:
    """Whether a call, which is in its full form, asks for the same as one that may not be."""
    if (call.tool, call.target) != (other.tool, other.target):
        return False
    try:
        return call.same_as(full(other))
    except ValidationError:
        return False
