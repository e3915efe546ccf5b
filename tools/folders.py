"""List a folder on the target."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field

from tools.base import CallContext, Observation, Subject
from tools.command import Result
from tools.errors import ToolFailed
from tools.files import NamePattern, TargetPath, Word, file_subject
from tools.probe import ALONE, ProbeArgs, ProbeTool


class ListFolderArgs(ProbeArgs):
    """Which folder, and how much of it."""

    python: Word = Field(default="python3", description="A Python, 3.8 or newer, on the target.")
    path: TargetPath = Field(description="Absolute path.")
    pattern: NamePattern = Field(default="", description="Only such names: *.pth.")
    max_entries: int = Field(default=200, ge=1, le=1000)
    depth: int = Field(default=1, ge=1, le=8, description="2: also what its folders hold.")


class Entry(Observation):
    """One thing in a folder."""

    name: str
    """With its place below the folder that was asked about."""
    kind: Literal["file", "folder", "link", "other"]
    size_bytes: int | None = None
    """Of a file."""
    modified: str
    """When, in UTC."""
    target: str = ""
    """Where a link leads, as it is written there."""


class Listing(Observation):
    """What lies in a folder, by name; an empty list is an answer."""

    real_path: str
    """The folder after all symbolic links."""
    entries: tuple[Entry, ...]
    left_out: int
    """So many more names there are, the last by the alphabet."""
    problems: tuple[str, ...] = ()
    """Inner folders that could not be read."""

    def headline(self) -> str:
        """How many there are, and the first ones."""
        names = ", ".join(entry.name for entry in self.entries[:5])
        more = f", {self.left_out} more left out" if self.left_out else ""
        return f"{len(self.entries)} entries in {self.real_path}{more}: {names or 'nothing'}"[:200]


class _Answer(BaseModel):
    """What the script prints: a listing, or why there is none."""

    listing: Listing | None = None
    error: str = ""


class ListFolder(ProbeTool[ListFolderArgs, Listing]):
    """List a folder: names, kinds, sizes, times, where links lead; sorted by name."""

    script: ClassVar[str] = "folder.py"
    options: ClassVar[tuple[str, ...]] = ALONE

    def payload(self, args: ListFolderArgs) -> dict[str, Any]:
        """Return what the script lists."""
        told = {"path": args.path, "pattern": args.pattern, "most": args.max_entries}
        return {**told, "depth": args.depth}

    def parse(self, args: ListFolderArgs, call: CallContext, result: Result) -> Listing:
        """Read the listing.

        Raises:
            ToolFailed: the folder is missing, not readable, or no folder.
        """
        answer = self.answer(args, call, result, _Answer)
        if answer.listing is None:
            raise ToolFailed(f"{args.path}: {answer.error}")
        return answer.listing

    def subjects(self, args: ListFolderArgs) -> tuple[Subject, ...]:
        """The folder."""
        return (file_subject(args.path),)
