"""Shows a run to a person as it goes on: on a terminal, or as plain lines where there is none.

A face is told events and pieces of output; it starts nothing and decides nothing.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self, TextIO

import rich.live
from rich.console import Console

from agent.console_end import draw, end_of, plain_lines
from agent.console_live import REFRESHES_PER_S, Present
from agent.console_rows import Story, flat
from agent.events import AnyEvent, CallStarted
from agent.timeline_layout import Drawing, Row, clock
from agent.visible import cut, in_ascii
from tools.base import Risk

if TYPE_CHECKING:
    from agent.run import Live

HEARTBEAT_S = 30.0
"""Without a terminal, a long command is said to be running once in so many seconds."""
LONGEST = 400
"""Columns of a plain line."""


class LiveFace:
    """Lines that scroll up, and below them a few that say what happens now.

    Use it as a context manager: it leaves a clean terminal however the block ends, and then says
    how the run ended.
    """

    def __init__(
        self,
        console: Console,
        *,
        footer: Sequence[str] = (),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._footer = tuple(footer)
        self._story, self._present = Story(), Present(now)
        self._shown_time = ""
        # Held while anything is drawn, so that lines and region never mix. ``on_live`` never takes
        # it: a command's output does not wait for the terminal.
        self._screen = threading.RLock()
        self._live: rich.live.Live | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(self, *error: object) -> None:
        self._halt()
        with self._screen, contextlib.suppress(OSError):  # the terminal may be gone
            draw(end_of(self._story), self._footer, self._console)

    def on_event(self, event: AnyEvent) -> None:
        """Show an event."""
        self._present.on_event(event)
        with self._screen:
            rows = self._story.rows(event)
            if rows and rows[0].gap:
                self._console.print()
            if rows:
                self._console.print(Drawing(tuple(map(self._fitted, rows))))

    def on_live(self, live: Live) -> None:
        """Take in what happens now; it is drawn with the next refresh."""
        self._present.on_live(live)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to somebody else for a while, such as to a question."""
        was_live = self._live is not None
        self._halt()
        try:
            yield
        finally:
            if was_live:
                self._begin()

    def _fitted(self, row: Row) -> Row:
        """Return a row as it follows the ones above: a time that repeats is shown once."""
        time = None if row.t is None else clock(row.t)
        repeats, self._shown_time = time == self._shown_time, time or self._shown_time
        return replace(row, gap=False, t=None if repeats else row.t)

    def _begin(self) -> None:
        if self._live is not None or not self._console.is_interactive:
            return
        live = rich.live.Live(
            self._present,
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
        )
        self._live, self._over = live, threading.Event()
        with self._screen:
            live.start()
        self._thread = threading.Thread(
            target=self._keep_fresh, args=(live, self._over), name="console", daemon=True
        )
        self._thread.start()

    def _halt(self) -> None:
        live, self._live = self._live, None
        self._over.set()
        try:
            if self._thread is not None:
                self._thread.join(timeout=2)
        finally:
            if live is not None:
                with self._screen:
                    live.stop()

    def _keep_fresh(self, live: rich.live.Live, over: threading.Event) -> None:
        """Draw the region again and again; a terminal that is gone ends that, not the run."""
        with contextlib.suppress(OSError):
            while not over.wait(1 / REFRESHES_PER_S):
                with self._screen:
                    if not over.is_set():
                        live.refresh()


class PlainFace:
    """One line of plain text an event, for logs and pipes."""

    def __init__(
        self,
        stream: TextIO,
        *,
        footer: Sequence[str] = (),
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        self._stream = stream
        self._footer = tuple(footer)
        self._heartbeat_s = heartbeat_s
        self._ascii = not (stream.encoding or "utf-8").lower().startswith("utf")
        self._story, self._present = Story(), Present()
        self._mutex = threading.Lock()
        self._changes: dict[str, str] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join(timeout=2)
        with contextlib.suppress(OSError):  # the stream may be gone
            for line in plain_lines(end_of(self._story), self._footer):
                self._write(line)

    def on_event(self, event: AnyEvent) -> None:
        """Write an event's line, if it has one."""
        self._present.on_event(event)
        time = clock(event.t)
        for row in self._story.rows(event):
            self._write(cut(f"{time} {flat(row)}", LONGEST))
        if isinstance(event, CallStarted):
            self._started(time)

    def on_live(self, live: Live) -> None:
        """Take in what happens now; only the heartbeat tells of it."""
        self._present.on_live(live)

    def _started(self, time: str) -> None:
        """Tell that a change begins; looks are told when they are done."""
        _, _, running = self._present.now()
        if running is not None and running.risk > Risk.READ:
            command = running.command or running.label
            self._write(cut(f"{time} begins: {running.label}: {command}", LONGEST))

    def _beat(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # the stream may be gone or closed
            while not self._over.wait(self._heartbeat_s):
                elapsed, _, running = self._present.now()
                if running is None:
                    continue
                for_s = clock(self._present.since(running))
                last = f": {running.lines[-1]}" if running.lines else ""
                words = f"{clock(elapsed)} still running: {running.label} for {for_s}{last}"
                self._write(cut(words, LONGEST))

    def _write(self, line: str) -> None:
        text = in_ascii(line) if self._ascii else line
        with self._mutex:
            self._stream.write(f"{text}\n")
            self._stream.flush()
