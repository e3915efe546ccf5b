"""Change one file on the target; what was there stays beside it."""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import replace
from typing import ClassVar, Self, TypeVar, cast

from pydantic import BaseModel, Field, model_validator

from tools.base import CallContext, Observation, Risk, Subject
from tools.command import Command, Result
from tools.errors import ToolFailed
from tools.files import TargetPath, Text, Word, file_subject
from tools.probe import ALONE, ProbeArgs, ProbeTool, environment

MOST_CHARACTERS = 8000
"""Of each text: both travel in one word of a command, of which Linux takes 128 KiB."""
_IN_ENVIRONMENT = re.compile(
    r"(.+?)/(?:bin/[^/]+|lib(?:64)?/python[^/]*/.+|pyvenv\.cfg|(?<!/etc/)(?<!pip/)pip\.conf)"
)
"""Files by which a Python environment works, and its folder."""


class SetAsideArgs(ProbeArgs):
    """Which file."""

    python: Word = Field(
        default="python3", description="Of the environment whose behaviour the file changes."
    )
    path: TargetPath = Field(description="Absolute path.")


class ReplaceInFileArgs(SetAsideArgs):
    """Which text of which file is replaced, and by what."""

    old: Word = Field(max_length=MOST_CHARACTERS, description="Exactly as it is there.")
    new: Text = Field(max_length=MOST_CHARACTERS)
    count: int = Field(default=1, ge=1, le=1000, description="How often old is there.")

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.old == self.new:
            raise ValueError("old and new are the same text")
        return self


class FileChange(Observation):
    """What was done to a file."""

    path: str
    """After all symbolic links of its folder."""
    backup: str
    """What was there, under its new name in the same folder."""
    diff: str = ""
    """The changed lines, with two lines around them."""

    def headline(self) -> str:
        """What became of the file, and what it was is called now."""
        done = "changed; the original is" if self.diff else "renamed to"
        return f"{self.path}: {done} {posixpath.basename(self.backup)}"


class _Answer(BaseModel):
    """What the script prints: what was done, or why nothing was."""

    done: FileChange | None = None
    error: str = ""


E = TypeVar("E", bound=SetAsideArgs)
Change = TypeVar("Change", bound=FileChange)


class EditTool(ProbeTool[E, Change]):
    """A change to one file, made by a Python that no broken environment can disturb."""

    risk = Risk.CHANGE
    script: ClassVar[str] = "edit.py"
    options: ClassVar[tuple[str, ...]] = ALONE

    def command(self, args: E, call: CallContext) -> Command:
        """Return the script's command; the call's id names what is kept."""
        command = super().command(args, call)
        told = {**self.payload(args), "suffix": f".bringup-{call.call_id}"}
        return replace(command, argv=(*command.argv[:-1], json.dumps(told)))

    def parse(self, args: E, call: CallContext, result: Result) -> Change:
        """Read what was done.

        Raises:
            ToolFailed: nothing was; the message says why.
        """
        answer = self.answer(args, call, result, _Answer)
        if answer.done is None:
            raise ToolFailed(f"{args.path}: {answer.error}; nothing was changed")
        return cast(Change, answer.done)

    def subjects(self, args: E) -> tuple[Subject, ...]:
        """The file, and the environments that it is a part of or that it is said to change."""
        found = _IN_ENVIRONMENT.fullmatch(posixpath.normpath(args.path))
        inside = [Subject(kind="environment", key=found[1])] if found else []
        said = [environment(args.python)] if "/" in args.python else []
        return tuple(dict.fromkeys([file_subject(args.path), *inside, *said]))

    def undo_text(self, args: E) -> str:
        """It is moved back."""
        return f"by hand: mv {args.path}.bringup-… {args.path}; the result names it"


class ReplaceInFile(EditTool[ReplaceInFileArgs, FileChange]):
    """Replace exact text in a text file; the original is kept beside it."""

    def title(self, args: ReplaceInFileArgs) -> str:
        """Name the file."""
        return f"Replace text in {args.path}; the original is kept beside it."


class SetAside(EditTool[SetAsideArgs, FileChange]):
    """Rename a file to NAME.bringup-CALL, so that nothing picks it up: a .pth, a pip.conf."""

    def title(self, args: SetAsideArgs) -> str:
        """Name the file."""
        return f"Rename {args.path} to {posixpath.basename(args.path)}.bringup-…"
