"""Shows a preparation step by step, each with the time it takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.text import Text

from agent.visible import in_ascii, visible

INDENT = 4
"""Columns before a detail."""


class Steps:
    """Shows steps on a console; a terminal that is gone ends the display and nothing else."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._title = ""
        spinner = "line" if console.options.ascii_only else "dots"
        self._spinner = spinner
        self._status = console.status("", spinner=spinner) if console.is_interactive else None

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Show a step while it lasts; a line stays that tells how long it took."""
        began = time.monotonic()
        self._title = title
        self._begin()
        how = "broke off after "
        try:
            yield
            how = ""
        finally:
            self._end(f"{title}  {how}{time.monotonic() - began:.0f} s")

    def detail(self, text: str) -> None:
        """Show what the step does now; only where a terminal can show it in place."""
        if self._status is not None:
            room = max(1, self._console.width - INDENT - 2)
            with suppress(OSError):
                self._status.update(
                    self._text(f"{self._title}\n{' ' * INDENT}", visible(text)[:room])
                )

    def _begin(self) -> None:
        with suppress(OSError):
            if self._status is None:
                self._print(f"{self._title} ...")
            else:
                self._status = self._console.status(self._text(self._title), spinner=self._spinner)
                self._status.start()

    def _end(self, line: str) -> None:
        with suppress(OSError):
            if self._status is not None:
                self._status.stop()
            self._print(line)

    def _print(self, line: str) -> None:
        text = self._text(f"  {line}")
        if self._console.is_terminal:
            self._console.print(text)
        else:  # by hand: where nobody reads, rich would end the program
            self._console.file.write(f"{text.plain}\n")
            self._console.file.flush()

    def _text(self, words: str, dim: str = "") -> Text:
        if self._console.options.ascii_only:
            words, dim = in_ascii(words), in_ascii(dim)
        return Text.assemble(words, (dim, "dim"))
