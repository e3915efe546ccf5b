"""What the diagnosis engine would do here, as suggestions that a model may take, change or leave.

The first is what the playbook itself would answer; then come the other hypotheses. So both brains
have the same knowledge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.brains.base import Request
from agent.brains.playbook import Playbook
from agent.brains.schemas import SUGGESTION
from agent.control import GiveUp
from agent.fold import View
from agent.values import ToolCall

MOST = 4
"""So many suggestions are made."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Calls that may be made, with their reason."""

    id: str
    text: str
    calls: tuple[ToolCall, ...] = ()
    """Empty where nothing is known that would help."""


def suggest(request: Request) -> list[Suggestion]:
    """Return suggestions, the best first; empty only where the engine knows nothing at all."""
    found: list[tuple[str, tuple[ToolCall, ...]]] = []
    for option in _options(request):
        reply = Playbook().plan(option)
        last = reply.calls[-1]
        gives_up = last.tool == GiveUp().name
        calls = () if gives_up else reply.calls
        text = f"{last.args['cause']}. {last.args['advice']}" if gives_up else reply.text
        refused = _refused(request.view, calls)
        if refused:
            text, calls = (
                f"what would be next was refused in {refused}; heed what was said there",
                (),
            )
        if not any(calls == other and (calls or text == said) for said, other in found):
            found.append((text, calls))
    return [Suggestion(f"s{n}", text, calls) for n, (text, calls) in enumerate(found[:MOST], 1)]


def _refused(view: View, calls: Sequence[ToolCall]) -> str:
    """Return the refused call that one of these comes down to; empty for none."""
    for no in view.refused:
        theirs = _telling(no.call)
        if no.approval and any(_telling(call) == theirs for call in calls):
            return no.call.id
    return ""


def _telling(call: ToolCall) -> tuple[str, str, dict[str, Any]]:
    """Return what a call is about; variables and names of jobs do not make it another one."""
    kept = {
        key: value
        for key, value in call.args.items()
        if key not in ("env", "name", "cwd") and value not in (None, [], {}, ())
    }
    return call.tool, call.target, kept


def _options(request: Request) -> list[Request]:
    """Return the request once for each hypothesis, as if that one were the best."""
    now = request.frontier
    others = [
        replace(request, frontier=replace(now, kind="diagnose", call=None, hypotheses=(item,)))
        for item in now.hypotheses[1:MOST]
        if item.fix is not None
    ]
    looks = [
        replace(request, frontier=replace(now, kind="look", call=item.probe, hypotheses=(item,)))
        for item in now.hypotheses[1:MOST]
        if item.probe is not None
    ]
    return [request, *looks, *others]


def taken(
    calls: Sequence[tuple[str, dict[str, Any]]], suggestions: Sequence[Suggestion]
) -> dict[int, tuple[ToolCall, ...]]:
    """Return what stands for each ``take_suggestion`` among a reply's calls, by its place.

    A suggestion that is not there, or has no calls, stands for itself and will be found invalid.
    """
    known = {item.id: item.calls for item in suggestions}
    rows: dict[int, tuple[ToolCall, ...]] = {}
    for place, (name, args) in enumerate(calls):
        if name != SUGGESTION:
            continue
        wanted = str(args.get("id", "")).strip().lower()
        have = ", ".join(key for key, steps in known.items() if steps) or "none now"
        problem = f"there is no suggestion {wanted or '(none named)'}; there are: {have}"
        rows[place] = known.get(wanted) or (
            ToolCall(tool=SUGGESTION, args={"id": wanted}, problem=problem),
        )
    return rows
