"""Installing packages: what pip would do, doing it, and installing pip itself."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, ClassVar, Self

from packaging.utils import canonicalize_name
from pydantic import AfterValidator, Field, field_validator, model_validator

from tools.base import CallContext, Observation, Risk
from tools.command import Command, Result
from tools.pip import PipTool, Requirement, pip_command
from tools.pip_messages import (
    PipErrorKind,
    conflict_lines,
    decisive_lines,
    error_kind,
    installed_packages,
    required_python,
)
from tools.probe import ProbeArgs, ProbeTool

WITH_STDIN = ("sh", "-c", 'cat | exec "$0" "$@"')
"""Makes standard input a pipe; a socket, as over ssh, cannot be opened as ``/dev/stdin``."""


NOTHING = "nothing would be installed: what was asked for is there already"


class RequirementsArgs(ProbeArgs):
    """What is to be installed, and what must hold meanwhile."""

    requirements: tuple[Requirement, ...] = Field(
        min_length=1, description="As pip reads them: transformers>=5.2."
    )
    constraints: tuple[Requirement, ...] = Field(
        default=(), description="What must hold for all that is installed: torch==2.13.0."
    )
    extra_index: tuple[str, ...] = Field(default=(), description="Further package indexes.")


class Move(Observation):
    """One package that would be installed."""

    name: Annotated[str, AfterValidator(canonicalize_name)]
    """Normalized, as in ``EnvironmentState.versions``."""
    from_version: str | None
    """The version that is installed now."""
    to_version: str
    file: str
    """Name of the file that would be taken; where it lies is the machine's own affair."""


class Resolution(Observation):
    """What pip would install, or why it says no."""

    ok: bool
    moves: list[Move] = Field(default_factory=list)
    error_kind: PipErrorKind = PipErrorKind.NONE
    error: str = ""
    """The lines that say why."""
    requires_python: str = ""
    """The Python that the wanted version asks for, such as ``>=3.10.0``."""
    note: str | None = None
    """What it means that there are no moves."""

    def headline(self) -> str:
        """One line for people."""
        if not self.ok:
            why, _, _ = self.error.partition("\n")
            return f"pip says no ({self.error_kind}): {why}"[:200]
        moved = [it for it in self.moves if it.from_version]
        steps = [f"{it.name} {it.from_version} -> {it.to_version}" for it in moved]
        added = len(self.moves) - len(moved)
        return ", ".join(steps + [f"{added} new"] * (added > 0)) or NOTHING


class PipResolve(ProbeTool[RequirementsArgs, Resolution]):
    """Ask pip what installing these requirements would change, without installing anything."""

    needs = ("pip_works",)
    script: ClassVar[str] = "resolve.py"
    timeout_s: ClassVar[float] = 300.0

    def parse(self, args: RequirementsArgs, call: CallContext, result: Result) -> Resolution:
        """Read the answer; that pip says no is an answer too."""
        answer = self.answer(args, call, result, Resolution)
        if answer.ok:
            return answer.model_copy(update={"note": None if answer.moves else NOTHING})
        printed = result.stdout.split(f"\n{call.marker} ")[0]
        text = f"{result.stderr}\n{printed}\n{answer.error}"
        kind = error_kind(text)
        python = required_python(text) if kind is PipErrorKind.REQUIRES_PYTHON else ""
        update = {"error_kind": kind, "error": decisive_lines(text), "requires_python": python}
        return answer.model_copy(update=update)


class Installation(Observation):
    """What was installed."""

    installed: list[str]
    """As ``name==version``, names normalized."""
    conflicts: list[str]
    """pip's sentences about packages that do not fit any more: to be judged, not errors."""
    already: bool
    """Whether everything was there before."""

    def headline(self) -> str:
        """One line for people."""
        done = "already there" if self.already else f"installed {', '.join(self.installed)}"
        return f"{done}; {len(self.conflicts)} conflicts"[:200]


def _installation(result: Result) -> Installation:
    installed = installed_packages(result.stdout)
    already = not installed and "Requirement already satisfied" in result.stdout
    conflicts = conflict_lines(result.stderr)
    return Installation(installed=installed, conflicts=conflicts, already=already)


def _pinned(text: str) -> bool:
    """Whether a requirement is one version of a package, or names a file or an address."""
    found = re.fullmatch(r"[\w.-]+\s*(\[[^\]]*\])?\s*===?\s*[^\s*,;]+\s*(;.*)?", text)
    return found is not None or "/" in text


class InstallArgs(RequirementsArgs):
    """What is to be installed, and how."""

    reinstall: bool | None = Field(
        default=None, description="Mend damaged files: the same versions again."
    )

    @model_validator(mode="after")
    def _reinstalls_what_it_names(self) -> Self:
        moving = [text for text in self.requirements if not _pinned(text)]
        if self.reinstall and moving:
            words = "reinstall moves no version: name it, as pip_show tells it"
            raise ValueError(f"{words}: {moving[0]}==VERSION instead of {moving[0]}")
        return self

    @field_validator("reinstall")
    @classmethod
    def _left_out(cls, value: bool | None) -> bool | None:
        return value or None


class PipInstall(PipTool[InstallArgs, Installation]):
    """Install packages with pip."""

    risk = Risk.CHANGE
    needs = ("pip_works", "environment_writable")

    def title(self, args: InstallArgs) -> str:
        """Say whether it is to be new, or the same again."""
        return (
            "Write the files of installed packages again."
            if args.reinstall
            else super().title(args)
        )

    def command(self, args: InstallArgs, call: CallContext) -> Command:
        """Return ``pip install``; constraints travel on standard input."""
        words = ["install", "--progress-bar", "off"]
        if args.reinstall:
            words += ["--force-reinstall", "--no-deps"]
        if args.constraints:
            words += ["-c", "/dev/stdin"]
        for url in args.extra_index:
            words += ["--extra-index-url", url]
        command = pip_command(args.python, *words, "--", *args.requirements, timeout_s=1800.0)
        if not args.constraints:
            return command
        stdin = "".join(f"{line}\n" for line in args.constraints)
        return replace(command, argv=WITH_STDIN + command.argv, stdin=stdin)

    def parse(self, args: InstallArgs, call: CallContext, result: Result) -> Installation:
        """Read what was installed.

        Raises:
            ToolFailed: there is no interpreter or pip, or pip failed; the message holds its errors.
        """
        if not result.ok:
            raise self.refusal(args, result)
        return _installation(result)

    def undo_text(self, args: InstallArgs) -> str:
        """Say how it is undone."""
        return "by hand: install the versions that were there before; the transcript names them"


class InstallPip(PipTool[ProbeArgs, Installation]):
    """Install pip into an environment that has none, from what Python carries."""

    risk = Risk.CHANGE
    needs = ("environment_writable",)
    establishes = ("pip_works",)

    def command(self, args: ProbeArgs, call: CallContext) -> Command:
        """Return ``python -m ensurepip``."""
        return Command.of(args.python, "-m", "ensurepip", "--default-pip", cwd="/", timeout_s=300.0)

    def parse(self, args: ProbeArgs, call: CallContext, result: Result) -> Installation:
        """Read what was installed.

        Raises:
            ToolFailed: there is no interpreter, or it carries no pip.
        """
        if not result.ok:
            raise self.refusal(args, result)
        return _installation(result)

    def undo_text(self, args: ProbeArgs) -> str:
        """Say how it is undone."""
        return "by hand: python -m pip uninstall pip"
