"""A run as a timeline: what was looked at, concluded, allowed and changed, and how it ended.

``Timeline`` turns one event after the other into rows, so that a run can be watched while it goes
on; ``render`` and ``plain`` show a whole one.
"""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console

from agent import events as e
from agent.timeline_layout import Drawing, Line, Row
from agent.timeline_rows import ROWS, one_line, scalars, text_lines
from agent.values import CallStatus
from tools.base import Risk

_SAID_BY_OTHER_EVENTS = {"record_diagnosis", "applied", "claim_ready", "ask"}
STATUS = {
    CallStatus.OK: ("✓", "green"),
    CallStatus.FAILED: ("✗ failed", "red"),
    CallStatus.TIMED_OUT: ("✗ timed out", "red"),
    CallStatus.REFUSED: ("✗ refused", "yellow"),
    CallStatus.CANCELLED: ("cancelled", "dim"),
    CallStatus.UNKNOWN: ("? unknown", "red"),
    CallStatus.INVALID: ("✗ invalid", "red"),
}
"""How a call's end is shown: its words and their colour."""
_KINDS = {
    Risk.READ: ("look", ""),
    Risk.CHANGE: ("change", "yellow"),
    Risk.DESTROY: ("destroy", "red"),
}


def render(events: Iterable[e.AnyEvent]) -> Drawing:
    """Return a run as something that rich prints, in the width and encoding of its console."""
    timeline = Timeline()
    rows = [row for event in events for row in timeline.rows(event)]
    return Drawing(tuple(rows + timeline.unfinished()))


def plain(events: Iterable[e.AnyEvent], *, width: int = 80, ascii_only: bool = False) -> str:
    """Return a run as text without colours."""
    buffer = io.BytesIO()
    file = io.TextIOWrapper(buffer, encoding="ascii" if ascii_only else "utf-8", newline="\n")
    console = Console(file=file, width=width, no_color=True, force_terminal=False)
    console.print(render(events))
    file.flush()
    return buffer.getvalue().decode()


class Timeline:
    """Turns events into rows; remembers the calls that have not ended."""

    def __init__(self) -> None:
        self._calls: dict[str, e.CallQueued] = {}
        self._started: dict[str, float] = {}
        self._samples: dict[str, int] = {}
        self._kept: dict[str, list[str]] = {}
        """What is known of the whole of long outputs, by call."""
        self._asked: set[str] = set()
        """Calls whose command was shown when they were asked about."""

    def rows(self, event: e.AnyEvent) -> list[Row]:
        """Return what there is to show once ``event`` has happened; a call shows when it ends."""
        match event:
            case e.CallQueued():
                self._calls[event.call.id] = event
            case e.CallStarted():
                self._started[event.call_id] = event.t
            case e.CallSampled():
                self._note_kept(event)
                self._samples[event.call_id] = self._samples.get(event.call_id, 0) + 1
            case e.CallEnded():
                return self._ended(event)
            case e.ApprovalAsked():
                self._asked.add(event.call_id)
        return ROWS[event.type](event) if event.type in ROWS else []

    def unfinished(self) -> list[Row]:
        """Return the calls whose end is not on record."""
        return [
            Row(kind, (*lines, Line("its end is not on record", "yellow")), t, style)
            for kind, style, t, lines in map(self._begun, list(self._calls.values()))
        ]

    def _begun(self, queued: e.CallQueued) -> tuple[str, str, float, tuple[Line, ...]]:
        kind, style = _KINDS[queued.risk]
        if queued.origin != "brain":
            kind, style = queued.origin.replace("fix_check", "check").replace("job_end", "look"), ""
        t = self._started.get(queued.call.id, queued.t)
        lines = [Line(_title(queued))]
        if queued.command != queued.call.tool and queued.call.id not in self._asked:
            lines.append(Line(f"$ {one_line(queued.command)}", "dim"))
        return kind, style, t, tuple(lines)

    def _ended(self, event: e.CallEnded) -> list[Row]:
        queued = self._calls.pop(event.call_id, None)
        samples = self._samples.pop(event.call_id, 0)
        ok = event.status is CallStatus.OK
        if ok and event.tool in _SAID_BY_OTHER_EVENTS:
            return []
        said = event.message or scalars(event.observation)
        if ok and queued is not None and queued.origin == "survey":
            line = Line(f"{_title(queued)}: {one_line(said)}", right=event.id)
            return [Row("survey", (line,), queued.t)]
        mark, mark_style = STATUS[event.status]
        right = f"{event.id}  {mark} {event.duration_s:.1f} s"
        kind, style, t = "call", "", event.t
        lines: tuple[Line, ...] = (Line(event.tool),)
        if queued is not None:
            kind, style, t, lines = self._begun(queued)
        first = Line(lines[0].text, "bold", right=right, right_style=mark_style)
        end = text_lines(said, "" if ok else mark_style)
        end += [Line(words, "dim") for words in self._kept.pop(event.call_id, [])]
        if samples > 1:
            end.append(Line(f"looked {samples} times", "dim"))
        return [Row(kind, (first, *lines[1:], *end), t, style)]

    def _note_kept(self, event: e.CallSampled) -> None:
        """Take the last sample's; an earlier one's are told by its event."""
        both = {"stdout": event.result.stdout_kept, "stderr": event.result.stderr_kept}
        self._kept[event.call_id] = [
            f"the whole {name}: {kept.said}" for name, kept in both.items() if kept is not None
        ]


def _title(queued: e.CallQueued) -> str:
    call = queued.call
    on = "" if call.target == "local" else f" on {call.target}"
    purpose = call.purpose
    why = f" for {purpose.ref}" if purpose.ref else ""
    return f"{call.tool}{on}{why}"
