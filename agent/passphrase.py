"""Asks for the passphrase of a key on the terminal; what is typed is neither shown nor kept."""

from __future__ import annotations

import getpass
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from agent.visible import visible

Pause = Callable[[], AbstractContextManager[None]]
"""Leaves the terminal to somebody else for a while."""


class TerminalPassphrases:
    """Asks a person at the terminal of this process; where there is none, nobody answers."""

    def __init__(self) -> None:
        self._pause: Pause = nullcontext
        self._one = threading.Lock()

    def __call__(self, path: str, again: bool) -> str | None:
        """Ask for the passphrase of a file; ``None`` without a terminal, or for an empty line."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        wrong = "That is not it. " if again else ""
        with self._one, self._pause():
            try:
                return getpass.getpass(f"{wrong}Passphrase for {visible(path)}: ") or None
            except EOFError:
                return None

    @contextmanager
    def beside(self, pause: Pause) -> Iterator[None]:
        """Share the terminal with a face, which is paused while somebody is asked."""
        self._pause = pause
        try:
            yield
        finally:
            self._pause = nullcontext


ASKER = TerminalPassphrases()
"""That of this process."""
