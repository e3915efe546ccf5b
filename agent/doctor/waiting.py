"""Tells whoever waits for a checkup what is being done, and which hosts are still out."""

from __future__ import annotations

import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from agent.doctor.parallel import Standing
from agent.name_ranges import fold
from agent.visible import cut, in_ascii, visible

FIRST_S, AGAIN_S = 5.0, 15.0
"""Without a terminal a line is said after so many seconds, and then every so many."""


class Waiting:
    """One line that is drawn anew on a terminal; else a few lines, and only where it takes long."""

    def __init__(self, file: TextIO, *, now: Callable[[], float] = time.monotonic) -> None:
        self._file, self._now = file, now
        self._console = Console(file=file)
        self._live: Live | None = None
        self._screen = threading.Lock()
        self._away_since: float | None = None
        self._away_s = 0.0
        self._terminal: list[Any] | None = None
        """How the terminal was before a question that is open now."""
        self._begun = now()
        self._said = self._begun - AGAIN_S + FIRST_S

    def __enter__(self) -> Self:
        if self._console.is_interactive:
            self._live = Live(console=self._console, transient=True, auto_refresh=False)
            with suppress(OSError):
                self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            with suppress(OSError):  # the terminal may be gone
                self._live.stop()
        if self._away_since is not None and self._terminal is not None:
            # Whoever asks is a thread that ends with the process, and had turned the echo off.
            with suppress(termios.error, OSError, ValueError):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, self._terminal)

    def clock(self) -> float:
        """Return a time in seconds that stands still while a person is asked something."""
        away = self._away_since
        return (self._now() if away is None else away) - self._away_s

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a question for a while, from any thread."""
        with self._screen:
            self._away_since = self._now()
            with suppress(termios.error, OSError, ValueError):
                self._terminal = termios.tcgetattr(sys.stdin.fileno())
            if self._live is not None:
                self._live.stop()
        try:
            yield
        finally:
            with self._screen:
                self._away_s += self._now() - self._away_since
                self._away_since = None
                if self._live is not None:
                    self._live.start()

    def tell(self, what: str, standing: Standing[Any]) -> None:
        """Show how far it has come."""
        with self._screen:
            if self._away_since is None:
                self._tell(what, standing, self._now())

    def _tell(self, what: str, standing: Standing[Any], now: float) -> None:
        if self._live is not None:
            width = self._console.width - 1
            line = self._line(what, standing, now)
            with suppress(OSError):
                self._live.update(Text(cut(line, width), "dim"), refresh=True)
        elif standing.out and now - self._said >= AGAIN_S:
            self._said = now
            with suppress(OSError):
                self._file.write(self._line(what, standing, now) + "\n")
                self._file.flush()

    def _line(self, what: str, standing: Standing[Any], now: float) -> str:
        done, out = len(standing.back), len(standing.out) + len(standing.waiting)
        names = [*sorted(standing.out, key=standing.out.__getitem__), *standing.waiting]
        line = f"{what}: {done} of {done + out}, {now - self._begun:.0f} s; out: {fold(names)}"
        line = visible(line).replace("\n", " ") if names else f"{what}: {done} of {done}"
        return in_ascii(line) if self._console.options.ascii_only else line
