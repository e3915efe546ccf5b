"""Read a file on the target; the text that may become a path or a word of a command."""

from __future__ import annotations

import posixpath
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, Field

from tools.base import CallContext, Observation, Subject
from tools.command import Result
from tools.errors import ToolFailed
from tools.probe import ProbeArgs, ProbeTool


def _word(value: str) -> str:
    if "\0" in value:
        raise ValueError("a NUL character cannot be passed to a program")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("half a character (a lone surrogate) cannot be passed on") from None
    return value


def _name(value: str) -> str:
    if "/" in value:
        raise ValueError("is for names of files, such as *.pth; folders belong into the path")
    return value


def _absolute(value: str) -> str:
    if not value.startswith("/"):
        raise ValueError("must be an absolute path; `~` and relative paths are not resolved")
    return value


Text = Annotated[str, AfterValidator(_word)]
"""Text that a target can be told."""

Word = Annotated[str, Field(min_length=1), AfterValidator(_word)]
"""Text that can be a word of a command."""

TargetPath = Annotated[Word, AfterValidator(_absolute)]
"""An absolute path on the target."""

NamePattern = Annotated[Text, AfterValidator(_name)]
"""A shell pattern for the last part of a path; empty: any."""


def file_subject(path: str) -> Subject:
    """Return the subject of a path; ``/a/../b`` and ``/b`` are the same one."""
    return Subject(kind="file", key=posixpath.normpath(path))


class ReadFileArgs(ProbeArgs):
    """Which piece of which file."""

    python: Word = Field(default="python3", description="A Python, 3.8 or newer, on the target.")
    path: TargetPath = Field(description="Absolute path.")
    offset_bytes: int = Field(
        default=0,
        ge=0,
        le=2**53,
        description="To read on: the end_bytes of the last piece.",
    )
    limit_bytes: int = Field(
        default=20_000, ge=1, le=40_000, description="How much to read at most."
    )


class FilePiece(Observation):
    """A piece of a text file, cut between characters."""

    text: str
    """Bytes that are not UTF-8 appear as U+FFFD."""
    size_bytes: int
    """Size of the whole file."""
    offset_bytes: int
    """Where ``text`` begins in the file."""
    end_bytes: int
    """Where ``text`` ends in the file."""
    left_out_bytes: int
    """Bytes of the file that are not in ``text``, before and after it."""
    real_path: str
    """The file after all symbolic links."""

    def headline(self) -> str:
        """Which bytes were read, and of how many."""
        return (
            f"{self.real_path}: bytes {self.offset_bytes}-{self.end_bytes} of {self.size_bytes}, "
            f"{self.left_out_bytes} left out"
        )


class _Answer(BaseModel):
    """What the script prints: a piece, or why there is none."""

    piece: FilePiece | None = None
    error: str = ""


class ReadFile(ProbeTool[ReadFileArgs, FilePiece]):
    """Read a text file, or a piece of it by byte offset; says how many bytes are left out.

    Use grep to find a place in a long log first. Binary files are refused.
    """

    script: ClassVar[str] = "file.py"

    def payload(self, args: ReadFileArgs) -> dict[str, Any]:
        """Return what the script reads."""
        return {"path": args.path, "offset": args.offset_bytes, "limit": args.limit_bytes}

    def parse(self, args: ReadFileArgs, call: CallContext, result: Result) -> FilePiece:
        """Read the piece.

        Raises:
            ToolFailed: the file is missing, not readable, no file, or binary.
        """
        answer = self.answer(args, call, result, _Answer)
        if answer.piece is None:
            raise ToolFailed(f"{args.path}: {answer.error}")
        return answer.piece

    def subjects(self, args: ReadFileArgs) -> tuple[Subject, ...]:
        """The file."""
        return (file_subject(args.path),)
