"""What a timeline says of single events; a call takes several and is told in ``timeline.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent import events as e
from agent.timeline_layout import WIDEST_KIND, Line, Row
from agent.values import FixVerdict, Outcome
from agent.visible import visible

_VERDICT = {
    FixVerdict.VERIFIED: "green",
    FixVerdict.REFUTED: "red",
    FixVerdict.PROGRESSED: "yellow",
    FixVerdict.INCONCLUSIVE: "yellow",
}
_CHECK = {True: ("✓", "green"), False: ("✗", "red"), None: ("?", "yellow")}
_MOST_LINES = 8


def _run_started(event: e.RunStarted) -> list[Row]:
    goal = event.goal
    asked = "asks" if event.interactive else "nobody to ask"
    how = [event.mode, event.brain, "--yes" if event.yes else asked]
    rows = [
        Row("bringup", (Line(event.run_id, "bold"),), style="bold"),
        _labelled("started", event.started_at),
        _labelled("mode", " · ".join(how)),
    ]
    hosts = ", ".join(_name(host) for host in goal.get("hosts") or ()) or "local"
    parts = ", ".join(map(str, goal.get("provide") or ()))
    where = f"{parts or goal.get('model', '?')} on {hosts}"
    if goal.get("port") and not parts:
        where += f", {goal.get('host', '')}:{goal['port']}"
    rows.append(_labelled(str(goal.get("kind", "goal")), where))
    for candidate in goal.get("candidates") or ():
        if isinstance(candidate, dict):
            place = candidate.get("image") or candidate.get("venv") or "?"
            words = f"{place} ({candidate.get('engine', '?')})"
            rows.append(_labelled("in", words))
    if goal.get("checks"):
        rows.append(_labelled("proved by", ", ".join(map(str, goal["checks"]))))
    rows += [_labelled("allowed", grant) for grant in event.grants]
    return [*rows, Row("", (Line(""),))]


def _reply(event: e.ReplyReceived) -> list[Row]:
    lines = tuple(text_lines(event.text, prose=True))
    return [Row("says", lines, event.t, gap=True)] if lines else []


def _request_failed(event: e.RequestFailed) -> list[Row]:
    more = f"; again in {event.wait_s:.0f} s" if event.wait_s else ""
    words = f"{one_line(event.text)}{more}"
    return [Row("model", (Line(words, wrap=True),), event.t, "red" if event.final else "yellow")]


def _decider(event: e.DeciderChanged) -> list[Row]:
    who = one_line(str(event.endpoint.get("model") or event.brain))
    return [Row("decides", (Line(f"{who}, from now on", wrap=True),), event.t, "yellow")]


def _hint(event: e.HintGiven) -> list[Row]:
    return [Row("hint", (Line(one_line(event.text), wrap=True),), event.t, "yellow")]


def _hypotheses(event: e.HypothesisRanked) -> list[Row]:
    lines = [
        Line(f"{place}. {item.get('cause') or item.get('kind', '?')}", "dim", wrap=True)
        for place, item in enumerate(event.hypotheses[:3], start=1)
    ]
    return [Row("suspects", tuple(lines), event.t, "dim")] if lines else []


def _diagnosis(event: e.DiagnosisRecorded) -> list[Row]:
    lines = [
        Line(event.cause, "bold", wrap=True),
        Line(f"{event.diagnosis_id} · {event.kind} · {event.subject}", "dim"),
        Line(f"seen in {', '.join(event.evidence) or 'nothing'} · told by {event.check}", "dim"),
    ]
    if event.plan:
        lines.append(Line(f"plan: {event.plan}", wrap=True))
    return [Row("diagnosis", tuple(lines), event.t, "bold magenta", gap=True)]


def _asked(event: e.ApprovalAsked) -> list[Row]:
    touches = ", ".join(map(str, event.touches)) or "nothing named"
    lines = [Line(event.title, "bold", wrap=True)]
    if event.command:
        lines.append(Line(f"$ {one_line(event.command)}", "dim"))
    lines.append(Line(f"{event.risk.name.lower()} · {touches} · on {event.target}", "dim"))
    for word, text in (("why", event.why), ("rule", event.reason), ("undo", event.undo)):
        if text:
            lines.append(Line(f"{word}: {text}", wrap=True))
    return [Row("asks", tuple(lines), event.t, "bold yellow", gap=True)]


def _answered(event: e.ApprovalAnswered) -> list[Row]:
    note = f": {event.note}" if event.note else ""
    style = "red" if event.answer in {"no", "stop"} else "green"
    words = Line(f"{event.answer}, by {event.by}{note}", style, wrap=True)
    return [Row("answer", (words,), event.t, "bold yellow")]


def _fix_closed(event: e.FixClosed) -> list[Row]:
    kept = "" if event.kept else ", undone"
    title = f"{event.fix_id} {event.verdict.value}{kept}"
    lines = [Line(title, f"bold {_VERDICT[event.verdict]}")]
    if event.before:
        lines.append(Line(f"before: {one_line(event.before)}", "dim"))
    lines.append(Line(f"after:  {one_line(event.after) or 'the check holds'}", "dim"))
    return [Row("verdict", tuple(lines), event.t, "bold")]


def _check(event: e.CheckRan) -> list[Row]:
    mark, style = _CHECK[event.passed]
    words = f"{event.name}: {one_line(event.text)}" if event.text else event.name
    return [Row("check", (Line(words, wrap=True, mark=mark, mark_style=style),), event.t)]


def _claimed(event: e.Claimed) -> list[Row]:
    text = event.text or "the goal is reached"
    return [Row("claims", (Line(text, wrap=True),), event.t, gap=True)]


def _note(event: e.NoteAdded) -> list[Row]:
    return [Row("you", tuple(text_lines(event.text, prose=True)), event.t, "bold cyan", gap=True)]


def _limit(event: e.LimitReached) -> list[Row]:
    lines = text_lines(f"{event.name}: {event.text}")
    return [Row("limit", tuple(lines), event.t, "yellow", gap=True)]


def _error(event: e.ErrorMet) -> list[Row]:
    said = not event.where or event.text.startswith(f"{event.where}: ")
    where = "" if said else f"{event.where}: "
    return [Row("error", tuple(text_lines(where + event.text, "red")), event.t, "red", gap=True)]


def _run_ended(event: e.RunEnded) -> list[Row]:
    style = "bold green" if event.outcome is Outcome.READY else "bold red"
    right = f"exit {event.exit_code}"
    outcome = Line(event.outcome.value.replace("_", " "), style, right=right)
    rows = [Row("outcome", (outcome, *text_lines(event.summary)), event.t, style, gap=True)]
    for key, value in event.report.items():
        if key != "checks" and value not in ("", None, [], {}):
            rows.append(_labelled(key.replace("_", " "), *_words(value)))
    return rows


def _labelled(label: str, *texts: str) -> Row:
    if len(label) >= WIDEST_KIND:
        label, texts = "", (f"{label}: {', '.join(texts)}",)
    return Row(label, tuple(Line(text, wrap=True) for text in texts), style="dim")


def _words(value: Any) -> list[str]:
    """Return a report's value in words, a line for each of its parts."""
    if not isinstance(value, list | tuple):
        return [_word(value)]
    if any(isinstance(item, dict) for item in value):
        return [_word(item) for item in value]
    return [", ".join(map(_word, value))]


def _word(value: Any) -> str:
    if isinstance(value, dict):
        return " · ".join(_word(item) for item in value.values() if item not in ("", None, [], {}))
    if isinstance(value, list | tuple):
        return ", ".join(map(_word, value))
    return str(value)


def text_lines(text: str, style: str = "", *, prose: bool = False) -> list[Line]:
    """Return text as lines, of a long one the first; one line alone, or prose, is wrapped."""
    lines = visible(text).strip().split("\n")
    wrap = prose or len(lines) == 1
    shown = [Line(line, style, wrap=wrap) for line in lines[:_MOST_LINES] if line or prose]
    if len(lines) > _MOST_LINES:
        shown.append(Line(f"… {len(lines) - _MOST_LINES} more lines", "dim"))
    return shown if text.strip() else []


def one_line(text: str) -> str:
    """Return text with all white space as single spaces."""
    return " ".join(visible(text).split())


def scalars(observation: dict[str, Any]) -> str:
    """Return the texts and numbers of an observation that says nothing in words."""
    pairs = (
        f"{key} {value}"
        for key, value in observation.items()
        if isinstance(value, str | int | float) and value != ""
    )
    return one_line(", ".join(pairs))[:200]


def _name(host: Any) -> str:
    return str(host.get("name", "?")) if isinstance(host, dict) else str(host)


ROWS: dict[str, Callable[[Any], list[Row]]] = {
    "run_started": _run_started,
    "reply": _reply,
    "request_failed": _request_failed,
    "hint": _hint,
    "decider": _decider,
    "hypotheses": _hypotheses,
    "diagnosis": _diagnosis,
    "approval_asked": _asked,
    "approval_answered": _answered,
    "fix_closed": _fix_closed,
    "check": _check,
    "claim": _claimed,
    "note": _note,
    "limit": _limit,
    "error": _error,
    "run_ended": _run_ended,
}
"""By event type; requests, opened fixes and redaction maps have nothing to show."""
