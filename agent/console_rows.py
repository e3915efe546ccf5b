"""What a face says of each event while a run goes on: one or two calm lines a step.

``timeline.py`` tells all of a run afterwards; this tells what a person wants to see pass by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent import events as e
from agent.timeline import STATUS
from agent.timeline_layout import Line, Row
from agent.timeline_rows import ROWS, one_line
from agent.values import CallStatus, FixVerdict
from agent.visible import cut, visible
from tools.base import Risk

LONGEST_S = 1.0
"""A call that took longer shows how long."""
CHECK_MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}
"""By what a check says; ``None`` for one that was not run."""
_MOST_LINES = 3
_MOST_COLUMNS = 240
_TOLD = {"record_diagnosis", "applied", "claim_ready", "ask", "give_up"}
"""Calls of which other events tell, once they are done."""
_SAID = _TOLD | {"use_port", "wait"}
_TELLING = {"record_diagnosis", "claim_ready", "give_up"}
"""Calls whose own events say what the reply's text says."""
_STATUS = STATUS | {CallStatus.CANCELLED: ("✗ cancelled", "yellow")}
_VERDICTS = {
    FixVerdict.VERIFIED: ("✓", "green", "the failure is gone"),
    FixVerdict.REFUTED: ("✗", "red", "the failure is still there"),
    FixVerdict.PROGRESSED: ("→", "yellow", "another failure now"),
    FixVerdict.INCONCLUSIVE: ("?", "yellow", "the check could not decide"),
}


class Story:
    """Turns events into rows, and remembers what the end of a run needs."""

    def __init__(self) -> None:
        self.header: e.RunStarted | None = None
        self.limit: e.LimitReached | None = None
        self.ended: e.RunEnded | None = None
        self.unanswered: e.RequestFailed | None = None
        """The last attempt to ask a model, where nothing more was tried."""
        self._asked: dict[str, e.ApprovalAsked] = {}
        self._queued: dict[str, e.CallQueued] = {}
        self._suspects: tuple[str, ...] = ()
        self._told: tuple[str, ...] = ()

    @property
    def waiting(self) -> list[e.ApprovalAsked]:
        """What was asked and has no answer."""
        return list(self._asked.values())

    def rows(self, event: e.AnyEvent) -> list[Row]:
        """Return what to say of an event; most often one row, for some none."""
        self.ended = None  # a run that goes on has not ended
        handler = _HANDLERS.get(event.type)
        if handler is not None:
            return handler(self, event)
        return ROWS[event.type](event) if event.type in _AS_IN_TIMELINE else []

    def _run_started(self, event: e.RunStarted) -> list[Row]:
        self.header = event
        goal = event.goal
        parts = ", ".join(goal.get("provide") or ())
        what = f"{goal.get('kind', 'serve')} {parts or goal.get('model', '?')}"
        lines = [Line(what, "bold", wrap=True)]
        at = f", at {goal.get('host', '')}:{goal['port']}" if goal.get("port") else ""
        candidates = goal.get("candidates") or ()
        for candidate in candidates[:1]:
            place = candidate.get("image") or candidate.get("venv") or "?"
            more = f", or {len(candidates) - 1} more" if len(candidates) > 1 else ""
            words = f"with {candidate.get('engine', '?')} in {place}{more}{at}"
            if parts:
                words = f"on {goal['hosts'][0]['name']}; its environment: {place}"
            lines.append(Line(words, wrap=True))
        who = event.endpoint.get("model") or event.brain
        how = f"{event.mode}, {who} decides"
        lines.append(Line(f"run {event.run_id} · {how}", "dim", wrap=True))
        if event.grants:
            allowed = f"allowed unasked: {'; '.join(event.grants)}"
            lines.append(Line(allowed, "dim", wrap=True))
        return [Row("bringup", tuple(lines), event.t, "bold")]

    def _hypotheses(self, event: e.HypothesisRanked) -> list[Row]:
        causes = (one_line(str(item.get("cause") or "")) for item in event.hypotheses)
        self._suspects = tuple(filter(None, causes))
        return []

    def _reply(self, event: e.ReplyReceived) -> list[Row]:
        """Tell suspicions only while there is no diagnosis of them, and nothing twice."""
        if any(call.tool in _TELLING for call in event.calls):
            self._told = self._suspects
            return []
        rows = []
        if self._suspects and self._suspects != self._told:
            self._told = self._suspects
            first, others = self._suspects[0], len(self._suspects) - 1
            more = f" (or {others} other{'s' * (others > 1)})" if others else ""
            rows.append(Row("suspects", _words(first + more, "dim"), event.t, "dim"))
        said = one_line(event.text)
        if event.calls and all(call.why == event.text for call in event.calls):
            return rows  # the calls' own rows come next and say the same
        if said and not any(cause in said for cause in self._told[:1]):
            rows.append(Row("says", _words(event.text, "dim"), event.t, "dim"))
        return rows

    def _call_queued(self, event: e.CallQueued) -> list[Row]:
        self._queued[event.call.id] = event
        return []

    def _call_ended(self, event: e.CallEnded) -> list[Row]:
        queued = self._queued.pop(event.call_id, None)
        ok = event.status is CallStatus.OK
        if queued is not None and queued.origin in {"verify", "fix_check", "job_end"}:
            return []
        if ok and event.tool in _TOLD:
            return []
        risk = queued.risk if queued is not None else Risk.READ
        mark, style = _STATUS[event.status]
        if ok and risk is Risk.READ:
            mark, style = "", "dim"  # that a look came back says nothing of what it found
        took = f"{event.duration_s:.1f} s" if event.duration_s > LONGEST_S else ""
        right = "  ".join(filter(None, (event.id, mark, took)))
        first = Line(event.tool.replace("_", " "), right=right, right_style=style)
        kind = "look" if risk is Risk.READ else risk.name.lower()
        if event.tool in _SAID:
            kind = "says"
        return [Row(kind, (first, *_words(event.message, "dim" if ok else "")), event.t)]

    def _diagnosis(self, event: e.DiagnosisRecorded) -> list[Row]:
        seen = f"seen in {', '.join(event.evidence) or 'nothing'} · told by {event.check}"
        lines = (
            *_words(event.cause, "bold"),
            Line(f"{event.diagnosis_id} · {event.kind} · {seen}", "dim", wrap=True),
        )
        rows = [Row("diagnosis", lines, event.t, "bold magenta", gap=True)]
        if event.plan:
            rows.append(Row("plan", _words(event.plan), event.t))
        return rows

    def _approval_asked(self, event: e.ApprovalAsked) -> list[Row]:
        self._asked[event.approval_id] = event
        on = f" · on {event.target}" if event.target != "local" else ""
        title = f"{event.approval_id}: {event.title}{on}"
        return [Row("asks", (Line(title, wrap=True),), event.t, "yellow")]

    def _approval_answered(self, event: e.ApprovalAnswered) -> list[Row]:
        self._asked.pop(event.approval_id, None)
        return ROWS[event.type](event)

    def _fix_closed(self, event: e.FixClosed) -> list[Row]:
        mark, style, words = _VERDICTS[event.verdict]
        shown = event.before if event.verdict is FixVerdict.VERIFIED else event.after
        right = ", ".join(event.evidence[:3])
        title = f"{event.fix_id} {event.verdict.value}"
        first = Line(title, "bold", right=right, mark=mark, mark_style=style)
        text = f"{words}: {shown}" if shown else words
        reason = _words(event.reason, "dim")
        return [Row("verdict", (first, *_words(text), *reason), event.t, "bold")]

    def _check(self, event: e.CheckRan) -> list[Row]:
        mark, style = CHECK_MARKS[event.passed]
        text = cut(one_line(f"{event.name}: {event.text}"), _MOST_COLUMNS)
        return [Row("check", (Line(text, wrap=True, mark=mark, mark_style=style),), event.t)]

    def _request_made(self, event: e.RequestMade) -> list[Row]:
        self.unanswered = None
        return []

    def _request_failed(self, event: e.RequestFailed) -> list[Row]:
        self.unanswered = event if event.final else None
        return ROWS[event.type](event)

    def _limit_reached(self, event: e.LimitReached) -> list[Row]:
        self.limit = event
        return ROWS[event.type](event)

    def _run_ended(self, event: e.RunEnded) -> list[Row]:
        self.ended = event
        return []


def _words(text: str, style: str = "") -> tuple[Line, ...]:
    """Return text of any origin as a few lines; a single one may be wrapped."""
    lines = [line for line in visible(text[:4000]).split("\n") if line.strip()]
    wrap = len(lines) == 1
    shown = [Line(cut(line.strip(), _MOST_COLUMNS), style, wrap) for line in lines[:_MOST_LINES]]
    if len(lines) > _MOST_LINES:
        shown.append(Line(f"… {len(lines) - _MOST_LINES} more lines", "dim"))
    return tuple(shown)


def flat(row: Row) -> str:
    """Return a row as one line of plain text."""
    texts = []
    for line in row.lines:
        right = f" ({line.right})" if line.right else ""
        texts.append(one_line(f"{line.mark} {line.text}{right}"))
    return f"{row.kind}: {'; '.join(filter(None, texts))}"


_AS_IN_TIMELINE = {"claim", "note", "error", "hint", "decider"}
_HANDLERS: dict[str, Callable[[Story, Any], list[Row]]] = {
    "run_started": Story._run_started,
    "hypotheses": Story._hypotheses,
    "reply": Story._reply,
    "call_queued": Story._call_queued,
    "call_ended": Story._call_ended,
    "diagnosis": Story._diagnosis,
    "approval_asked": Story._approval_asked,
    "approval_answered": Story._approval_answered,
    "fix_closed": Story._fix_closed,
    "check": Story._check,
    "request": Story._request_made,
    "request_failed": Story._request_failed,
    "limit": Story._limit_reached,
    "run_ended": Story._run_ended,
}
