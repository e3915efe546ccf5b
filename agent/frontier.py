"""Where a run stands: the first unmet check, and whether it wants a look, a cause or a step.

Pure means-ends analysis over what checks and tools declare (``needs``, ``establishes``). The
playbook turns it into calls; a model is shown it as a suggestion. There is no list of steps
anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from agent import diagnose
from agent.check import Standing
from agent.checks import check_of, standing
from agent.fold import View
from agent.kinds.base import Hypothesis
from agent.site import site_of
from agent.values import ToolCall
from tools.registry import TOOLS, find


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
    return view.stir.kept("frontier", lambda: _frontier(view))


def _frontier(view: View) -> Frontier:
    for name in view.need_goal().all_checks:
        found = _descend(view, name)
        if found is not None:
            return found
    return DONE


def establishers(view: View, check: str) -> list[Any]:
    """Return the tools that can make a check true where the run stands, the least risky first."""
    kind = site_of(view).kind
    able = [tool for tool in TOOLS if check in tool.establishes and tool.runs_in in ("", kind)]
    return sorted(able, key=lambda tool: tool.risk)


def redo_for(view: View, check: str) -> str:
    """Return the tool that has to run again before ``check`` can come out otherwise."""
    needs = check_of(view, check).needs
    for name in (check, *needs):
        able = establishers(view, name)
        if able:
            return str(able[0].name)
    for need in needs:
        deeper = redo_for(view, need)
        if deeper:
            return deeper
    return ""


Path = tuple[str, ...]
"""The checks on the way down: one that comes up again would go round for ever."""


def _descend(view: View, name: str, path: Path = ()) -> Frontier | None:
    check = check_of(view, name)
    now = standing(view, check)
    if now.verdict.passed:
        return None
    if name in path:
        return _stuck(view, name, now)
    found = _needs(view, check.needs, (*path, name))
    if found is not None:
        return found
    if now.verdict.passed is None:
        return _look(view, name, now, (*path, name))
    if now.verdict.failure:
        return _diagnose(view, name, now, (*path, name))
    return _advance(view, name, now, (*path, name))


def _stuck(view: View, name: str, now: Standing) -> Frontier:
    """A check whose mending needs the check itself has no mending of ours."""
    ranked = diagnose.rank(view, name)
    return Frontier(
        "diagnose", name, now, None, tuple(replace(item, probe=None, fix=None) for item in ranked)
    )


def _look(view: View, name: str, now: Standing, path: Path) -> Frontier:
    call = check_of(view, name).probe(view, site_of(view))
    if call is None:
        raise ValueError(f"the check {name} is undecided and has nothing to ask")
    return _needs(view, find(call.tool).needs, path) or Frontier("look", name, now, call)


def _diagnose(view: View, name: str, now: Standing, path: Path) -> Frontier:
    hypotheses = tuple(diagnose.rank(view, name))
    best = hypotheses[0]
    if best.probe is not None:
        found = _needs(view, find(best.probe.tool).needs, path)
        return found or Frontier("look", name, now, best.probe, hypotheses)
    for call in best.fix.calls if best.fix else ():
        found = _needs(view, tool_needs(call.tool), path)
        if found is not None:
            return found
    return Frontier("diagnose", name, now, None, hypotheses)


def _advance(view: View, name: str, now: Standing, path: Path) -> Frontier:
    for tool in establishers(view, name):
        if any(record.call.tool == tool.name for record in view.failed_changes):
            break
        found = _needs(view, tool.needs, path)
        return found or Frontier("advance", name, now, tool=tool.name)
    return _diagnose(view, name, now, path)


def tool_needs(name: str) -> tuple[str, ...]:
    """Return what a tool needs; control tools need nothing."""
    return next((tool.needs for tool in TOOLS if tool.name == name), ())


def _needs(view: View, names: tuple[str, ...], path: Path) -> Frontier | None:
    for name in names:
        found = _descend(view, name, path)
        if found is not None:
            return found
    return None
