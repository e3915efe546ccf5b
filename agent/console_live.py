"""What happens just now: the phase, the running command and its last output, in a few lines."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions
from rich.text import Text

from agent import events as e
from agent.timeline_layout import Drawing, Line, Row, clock
from agent.timeline_rows import one_line
from agent.visible import visible
from tools.base import Risk

if TYPE_CHECKING:
    from agent.run import Live

REFRESHES_PER_S = 8
MOST_LINES = 6
"""Height of the drawing."""
_TAIL_CHARS = 4096
_OUTPUT_LINES = 3
_BAR = 20
_SPINNER, _SPINNER_ASCII = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "-\\|/"
_ANSWER = re.compile(r"@[0-9a-f]{16}\b")
"""Begins a probe's answer, which is data and not for people."""
_PERCENT = re.compile(r"(\d{1,3})(?:\.\d+)?\s?%")
_ORIGINS = {"survey": "survey", "brain": "act", "verify": "verify", "fix_check": "check"}
_ORIGINS |= {"job_end": "decide"}
_PHASES = {
    "run_started": "survey",
    "request": "decide",
    "reply": "act",
    "approval_asked": "approve",
    "approval_answered": "act",
    "claim": "verify",
    "run_ended": "",
}


@dataclass(frozen=True, slots=True)
class Running:
    """A call that has started and not ended."""

    call_id: str
    label: str
    command: str
    since: float
    risk: Risk
    tail: str = ""
    """The end of what it printed, as it came."""
    progress: str = ""

    @property
    def lines(self) -> list[str]:
        """What it says of itself, the newest last."""
        if self.progress:
            return [one_line(self.progress)]
        lines = (line.strip() for line in visible(self.tail).split("\n"))
        return [line for line in lines if line and not _ANSWER.match(line)][-_OUTPUT_LINES:]


class Present:
    """Follows events and output, from any thread; keeps only what is true now."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._mutex = threading.Lock()
        self._phase = ""
        self._queued: dict[str, e.CallQueued] = {}
        self._running: Running | None = None
        self._model = ""
        self._t, self._seen = 0.0, now()

    def on_event(self, event: e.AnyEvent) -> None:
        """Take in an event."""
        with self._mutex:
            self._t, self._seen = event.t, self._now()
            self._phase = _PHASES.get(event.type, self._phase)
            match event:
                case e.CallQueued():
                    self._queued[event.call.id] = event
                case e.CallStarted():
                    self._begin(event)
                case e.CallEnded():
                    self._queued.pop(event.call_id, None)
                    self._running = None
                case e.RunStarted() | e.DeciderChanged():
                    self._model = one_line(str(event.endpoint.get("model", "")))
                case e.RequestMade() if self._model:
                    label = f"asking {self._model}"
                    turn = f"turn {event.turn}"
                    self._running = Running(turn, label, "", self._now(), Risk.READ)
                case e.RequestFailed() if self._running and not event.final:
                    words = f"{event.text}; again in {event.wait_s:.0f} s"
                    self._running = replace(self._running, progress=words, tail="")
                case e.RequestFailed() | e.ReplyReceived():
                    self._running = None

    def _begin(self, event: e.CallStarted) -> None:
        queued = self._queued.get(event.call_id)
        label = one_line(queued.call.tool.replace("_", " ") if queued else event.call_id)
        command = queued.command if queued else " ".join(event.argv)
        self._phase = _ORIGINS[queued.origin] if queued else self._phase
        risk = queued.risk if queued else Risk.READ
        self._running = Running(event.call_id, label, command, self._now(), risk)

    def on_live(self, live: Live) -> None:
        """Take in output or a progress text of the running call; cheap, for it draws nothing."""
        with self._mutex:
            running = self._running
            if running is None or running.call_id != live.call_id:
                return
            if live.what == "reply" and running.progress:
                running = replace(running, progress="")  # an attempt has come through
            if live.what == "progress":
                self._running = replace(running, progress=live.text[:_TAIL_CHARS])
            else:
                self._running = replace(running, tail=_last(running.tail, live.text))

    def now(self) -> tuple[float, str, Running | None]:
        """Return the seconds since the run began, the phase and what runs."""
        with self._mutex:
            return self._t + self._now() - self._seen, self._phase, self._running

    def since(self, running: Running) -> float:
        """Return for how many seconds a call has been running."""
        return self._now() - running.since

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield the lines of the drawing; none once the run has ended."""
        elapsed, phase, running = self.now()
        if not phase:
            return
        frames = _SPINNER_ASCII if options.ascii_only else _SPINNER
        frame = frames[int(self._now() * REFRESHES_PER_S) % len(frames)]
        lines = [Line("")]
        if running is not None:
            took = clock(self.since(running))
            lines = [Line(running.label, "bold", right=took), *_details(running, options)]
        row = Row(f"{frame} {phase}", tuple(lines), elapsed, "cyan")
        yield from Drawing((row,)).__rich_console__(console, options)
        yield Text()  # the cursor's line: what is typed meanwhile, ^C too, moves nothing


def _details(running: Running, options: ConsoleOptions) -> list[Line]:
    """Return the command and what it says of itself, as far as the terminal has room."""
    texts = [f"$ {one_line(running.command)}"] if running.command else []
    bar = _bar(running.progress, options.ascii_only)
    texts += [bar + line for line in running.lines]
    room = max(0, min(MOST_LINES, options.size.height // 3) - 2)
    return [Line(text, "dim") for text in texts[:room]]


def _last(tail: str, text: str) -> str:
    """Return the end of a text that grows; its first line is whole, or is the only one."""
    joined = tail + text[-_TAIL_CHARS:]
    if len(joined) <= _TAIL_CHARS:
        return joined
    joined = joined[-_TAIL_CHARS:]
    _, newline, rest = joined.partition("\n")
    return rest if newline and rest else joined


def _bar(progress: str, ascii_only: bool) -> str:
    """Return a bar for a progress text that tells a percentage, to stand before it."""
    percent = _PERCENT.search(progress)
    if percent is None:
        return ""
    done = min(100, int(percent[1])) * _BAR // 100
    full, empty = ("#", ".") if ascii_only else ("━", "┄")
    return f"{full * done}{empty * (_BAR - done)} "
