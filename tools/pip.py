"""What the tools that run pip share: names, the command, and how a refusal reads."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from tools.base import Obs, Subject, Tool
from tools.command import Command, Result
from tools.errors import ToolFailed
from tools.pip_messages import PipErrorKind, decisive_lines, error_kind
from tools.probe import P, check_started, environment

Requirement = Annotated[str, StringConstraints(pattern=r"^[^-\s#][^\r\n]*$")]
"""A requirement as pip reads it, on one line; never an option."""
PackageName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


def pip_command(python: str, *words: str, timeout_s: float = 60.0) -> Command:
    """Return ``python -m pip WORDS``, run where no file of the current folder can shadow pip's."""
    options = ("--disable-pip-version-check", "--no-input")
    return Command.of(python, "-m", "pip", *options, *words, cwd="/", timeout_s=timeout_s)


class PipTool(Tool[P, Obs]):
    """A tool that asks pip; its subject is the environment."""

    def subjects(self, args: P) -> tuple[Subject, ...]:
        """Return the environment."""
        return (environment(args.python),)

    def refusal(self, args: P, result: Result) -> ToolFailed:
        """Return what to raise when pip did not do it: the lines that say why."""
        check_started(args.python, result)
        text = f"{result.stdout}\n{result.stderr}"
        if error_kind(text) is PipErrorKind.NO_PIP:
            where = environment(args.python).key
            return ToolFailed(f"there is no working pip in {where}: {decisive_lines(text)}")
        return ToolFailed(f"{self.name} failed ({result.how}): {decisive_lines(text)}")
