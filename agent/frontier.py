"""Where a run stands: the first unmet check, and whether it wants a look, a cause or a step.

Pure means-ends analysis over what checks and tools declare (``needs``, ``establishes``). The
playbook turns it into calls; a model is shown it as a suggestion. There is no list of steps
anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from agent import diagnose
from agent.checks import CHECKS, Standing, standing
from agent.fold import View
from agent.kinds.base import Hypothesis
from agent.site import site_of
from agent.values import ToolCall
from tools.base import Args, Observation, Tool
from tools.registry import TOOLS, find

Anything = Tool[Args, Observation]


@dataclass(frozen=True, slots=True)
class Frontier:
    """The place where something has to happen next."""

    kind: Literal["look", "diagnose", "advance", "done"]
    check: str = ""
    standing: Standing | None = None
    call: ToolCall | None = None
    """look: the READ call that decides the check, or tells hypotheses apart."""
    hypotheses: tuple[Hypothesis, ...] = ()
    """diagnose: what may be the cause, best first."""
    tool: str = ""
    """advance: the tool that can make the check true."""


DONE = Frontier("done")


def frontier(view: View) -> Frontier:
    """Find the first place where something has to happen; ``done`` when all checks hold."""
    for name in view.need_goal().all_checks:
        found = _descend(view, name)
        if found is not None:
            return found
    return DONE


def establishers(check: str) -> list[Any]:
    """Return the tools that can make a check true, the least risky first."""
    able = [tool for tool in TOOLS if check in tool.establishes]
    return sorted(able, key=lambda tool: tool.risk)


def redo_for(check: str) -> str:
    """Return the tool that has to run again before ``check`` can come out otherwise."""
    for name in (check, *CHECKS[check].needs):
        able = establishers(name)
        if able:
            return str(able[0].name)
    for need in CHECKS[check].needs:
        deeper = redo_for(need)
        if deeper:
            return deeper
    return ""


def _descend(view: View, name: str) -> Frontier | None:
    check = CHECKS[name]
    now = standing(view, check)
    if now.verdict.passed:
        return None
    for need in check.needs:
        found = _descend(view, need)
        if found is not None:
            return found
    if now.verdict.passed is None:
        return _look(view, name, now, check.probe(view, site_of(view)))
    if now.verdict.failure:
        return _diagnose(view, name, now)
    return _advance(view, name, now)


def _look(view: View, name: str, now: Standing, call: ToolCall | None) -> Frontier:
    if call is None:
        raise ValueError(f"the check {name} is undecided and has nothing to ask")
    return _needs(view, find(call.tool).needs) or Frontier("look", name, now, call)


def _diagnose(view: View, name: str, now: Standing) -> Frontier:
    hypotheses = tuple(diagnose.rank(view, name))
    best = hypotheses[0]
    if best.probe is not None:
        found = _needs(view, find(best.probe.tool).needs)
        return found or Frontier("look", name, now, best.probe, hypotheses)
    for call in best.fix.calls if best.fix else ():
        found = _needs(view, tool_needs(call.tool))
        if found is not None:
            return found
    return Frontier("diagnose", name, now, None, hypotheses)


def _advance(view: View, name: str, now: Standing) -> Frontier:
    for tool in establishers(name):
        if any(record.call.tool == tool.name for record in view.failed_changes):
            break
        return _needs(view, tool.needs) or Frontier("advance", name, now, tool=tool.name)
    return _diagnose(view, name, now)


def tool_needs(name: str) -> tuple[str, ...]:
    """Return what a tool needs; control tools need nothing."""
    return next((tool.needs for tool in TOOLS if tool.name == name), ())


def _needs(view: View, names: tuple[str, ...]) -> Frontier | None:
    for name in names:
        found = _descend(view, name)
        if found is not None:
            return found
    return None
