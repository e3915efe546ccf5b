"""The general command: the last resort, and always asked about."""

from __future__ import annotations

import ast
import json
import warnings
from typing import ClassVar, Self

from pydantic import Field, field_validator

from tools.base import Args, CallContext, Observation, Risk, Subject, Tool
from tools.command import Command, Ending, Result
from tools.files import TargetPath, Word
from tools.host import HOST
from tools.logs import steady


class ShellArgs(Args):
    """A command as one would type it."""

    command: Word = Field(max_length=100_000, description="One bash command line, as plain text.")
    cwd: TargetPath | None = Field(
        default=None, description="Absolute path of the folder to run it in."
    )
    timeout_s: float = Field(
        default=60.0,
        gt=0,
        le=600,
        description="Seconds after which it is ended, with all that it started.",
    )

    @field_validator("command")
    @classmethod
    def _is_a_command(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("the command is empty")
        if isinstance(_literal(value), dict | list):
            raise ValueError(
                "this is a JSON object or list, not a shell command; "
                "pass the command line itself as plain text"
            )
        return value


class ShellOutput(Observation):
    """What a command wrote and how it ended; a failing command is an answer too."""

    clock_fields = ("how", "survivors")

    ending: Ending
    """exited, signaled, timed_out, or lost (its outcome is unknown)."""
    code: int | None
    """Exit code where it exited; 127 for a program that does not exist."""
    signal: str | None = None
    how: str
    """How it ended, in words."""
    stdout: str
    stderr: str
    stdout_omitted: int = 0
    """Bytes left out of the middle of ``stdout``; its head and tail are kept."""
    stderr_omitted: int = 0
    survivors: tuple[str, ...] = ()
    """Processes that kept running past the end, as ``pid command``."""

    def unmoved(self, before: Self) -> bool:
        """Whether it came to the same; what a failure says may differ in pids, times and ports."""
        if self.code == 0:
            return super().unmoved(before)
        ends = [(seen.ending, seen.code, seen.signal) for seen in (self, before)]
        said = [steady(seen.stdout + seen.stderr) for seen in (self, before)]
        return ends[0] == ends[1] and said[0] == said[1]

    def headline(self) -> str:
        """How it ended, and the last line that it wrote."""
        lines = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return f"{self.how}: {lines[-1].strip()}"[:200] if lines else self.how


class Shell(Tool[ShellArgs, ShellOutput]):
    """Run a bash command line, where no other tool does; a person is always asked.

    Its risk is DESTROY whatever the command says, until a parser of shell commands can tell.
    The line runs as ``bash -o pipefail -c COMMAND``, so a pipe fails when any part of it fails;
    a target without bash answers with exit code 127. A non-zero exit code is an answer and not a
    failure of the tool.
    """

    risk: ClassVar[Risk] = Risk.DESTROY
    always_asks: ClassVar[bool] = True

    def command(self, args: ShellArgs, call: CallContext) -> Command:
        """Return the bash that runs it; its standard input is closed."""
        return Command.of(
            "bash", "-o", "pipefail", "-c", args.command, cwd=args.cwd, timeout_s=args.timeout_s
        )

    def parse(self, args: ShellArgs, call: CallContext, result: Result) -> ShellOutput:
        """Return what came back, as it is."""
        return ShellOutput(
            ending=result.ending,
            code=result.code,
            signal=result.signal,
            how=result.how,
            stdout=result.stdout,
            stderr=result.stderr,
            stdout_omitted=result.stdout_omitted,
            stderr_omitted=result.stderr_omitted,
            survivors=result.survivors,
        )

    def subjects(self, args: ShellArgs) -> tuple[Subject, ...]:
        """The host: a shell can touch all of it."""
        return (HOST,)


def _literal(text: str) -> object:
    """Return the JSON value or Python literal that a text is, or ``None``."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
