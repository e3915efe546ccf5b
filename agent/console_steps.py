"""Shows a preparation step by step, each with the time it takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from agent.visible import visible

DETAIL_WIDTH = 60


class Steps:
    """Shows steps on a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._title = ""
        self._status = console.status("") if console.is_terminal else None

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Show a step while it lasts; a line stays when it is done."""
        began = time.monotonic()
        self._title = title
        if self._status is not None:
            self._status.update(Text(title))
            self._status.start()
        else:
            self._console.print(Text(f"  {title} …"))
        try:
            yield
        finally:
            if self._status is not None:
                self._status.stop()
        self._console.print(Text(f"  {title}  {time.monotonic() - began:.0f} s"))

    def detail(self, text: str) -> None:
        """Show what the step does now; only where a terminal can show it in place."""
        if self._status is not None:
            shown = visible(text)[:DETAIL_WIDTH]
            self._status.update(Text.assemble(self._title, "\n    ", (shown, "dim")))
