"""A command as data, and how it ended.

A command is an argument vector and never a string for a shell: quoting happens once, in ``text``,
and only for people. How a command ended is one of four things (``Ending``); "the machine is gone"
is never an exit code.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

Via = Literal["process", "engine", "connection", "transfer"]
"""Who carries a command out: the target's own programs; our client of its Docker engine, for
``docker`` commands whose progress the program does not tell; the connector itself; or what copies
files between targets."""

OnOutput = Callable[[str, str], None]
"""Called while a command runs, with the stream (``stdout`` or ``stderr``) and a piece of text; with
``connection`` and a line when the way to the target was lost before, and opened anew."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to run on a target."""

    argv: tuple[str, ...]
    stdin: str | None = None
    """Text for standard input; ``None`` means a closed standard input."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables added to the target's own environment."""
    cwd: str | None = None
    timeout_s: float = 60.0
    """After so many seconds the command and its whole process group are ended."""
    via: Via = "process"

    @classmethod
    def of(
        cls,
        *argv: str,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float = 60.0,
        via: Via = "process",
    ) -> Command:
        """Build a command from words: ``Command.of("grep", "-n", pattern, path)``."""
        return cls(tuple(argv), stdin, dict(env or {}), cwd, timeout_s, via)

    @property
    def text(self) -> str:
        """The command as one would type it in a shell, variables first."""
        words = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        return " ".join([*words, shlex.join(self.argv)])


class Ending(StrEnum):
    """How a command ended."""

    EXITED = "exited"
    """It returned an exit code."""
    SIGNALED = "signaled"
    """A signal ended it."""
    TIMED_OUT = "timed_out"
    """We ended it, with its process group, because its time was over."""
    LOST = "lost"
    """The connection broke: whether it ended, and how, is unknown."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Where the whole of a long output is, beside the head and tail that a result has."""

    sha256: str
    """Of the file ``outputs/SHA256`` in the run's folder: the redacted text; empty: not kept."""
    bytes: int = 0
    """Size of that file."""
    note: str = ""
    """Why it is not the whole, or is not there."""

    @property
    def said(self) -> str:
        """Where it is, in words for people."""
        place = f"outputs/{self.sha256}" if self.sha256 else ""
        return "; ".join(part for part in (place, self.note) if part)


@dataclass(frozen=True, slots=True)
class Result:
    """What came back from a command."""

    ending: Ending
    code: int | None = None
    """Exit code where ``ending`` is ``exited``; 127 for a program that does not exist."""
    signal: str | None = None
    """Name of the signal, such as ``SIGKILL``, where ``ending`` is ``signaled``."""
    stdout: str = ""
    stderr: str = ""
    stdout_omitted: int = 0
    """Bytes left out of the middle of ``stdout``; its head and tail are kept."""
    stderr_omitted: int = 0
    duration_s: float = 0.0
    survivors: tuple[str, ...] = ()
    """Processes that kept running past the end, as ``pid command``."""
    stdout_kept: Kept | None = None
    """Where the whole of ``stdout`` is, where bytes of it are left out."""
    stderr_kept: Kept | None = None

    @property
    def ok(self) -> bool:
        """Whether it exited with code 0."""
        return self.ending is Ending.EXITED and self.code == 0

    @property
    def how(self) -> str:
        """How it ended, in words for people."""
        if self.ending is Ending.EXITED:
            return f"exit {self.code}"
        if self.ending is Ending.SIGNALED:
            return f"ended by {self.signal}"
        if self.ending is Ending.TIMED_OUT:
            return f"timed out after {self.duration_s:.0f} s"
        return "connection lost, outcome unknown"

    @property
    def tail(self) -> str:
        """The last lines a person would look at: of ``stderr``, else of ``stdout``."""
        text = self.stderr.strip() or self.stdout.strip()
        return "\n".join(text.splitlines()[-12:])
