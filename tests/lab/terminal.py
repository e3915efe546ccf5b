"""Terminals for tests: one that remembers what is written to it, and a real one to type on."""

from __future__ import annotations

import io
import os
import re
import select
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from rich.console import Console

CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
"""What rich writes to colour lines and to draw the region again."""


def terminal(encoding: str = "utf-8", **more: Any) -> tuple[Console, Callable[[], str]]:
    """Return a console on a terminal of 80 columns, and what has been written to it."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline="", write_through=True)
    settings = {"width": 80, "height": 24, "force_terminal": True, "force_interactive": True}
    environment = {"TERM": "xterm-256color"}
    console = Console(file=file, _environ=environment, **(settings | more))
    return console, lambda: raw.getvalue().decode(encoding)


class Pty:
    """A pseudo-terminal: the program's end, and ours to read and type on."""

    def __init__(self) -> None:
        self._ours, self.theirs = os.openpty()
        self._seen = bytearray()
        self._over = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while not self._over.is_set():
            if not select.select([self._ours], [], [], 0.02)[0]:
                continue
            try:
                self._seen += os.read(self._ours, 65536)
            except OSError:  # nobody has their end any more
                return

    @property
    def text(self) -> str:
        """What the program has written, and the terminal has echoed."""
        return self._seen.decode(errors="replace")

    def enter(self, text: str) -> None:
        """Type on it."""
        os.write(self._ours, text.encode())

    def wait_for(self, text: str, times: int = 1) -> None:
        """Wait until a text has been written so many times."""
        deadline = time.monotonic() + 10
        while self.text.count(text) < times:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{text!r} did not come; there is: {self.text!r}")
            time.sleep(0.01)

    def hang_up(self) -> None:
        """Take our end away."""
        self._over.set()
        self._reader.join(timeout=5)
        if self._ours >= 0:
            os.close(self._ours)
        self._ours = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.hang_up()
        os.close(self.theirs)
