"""Find text in files on the target with grep."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import Field, field_validator

from tools.base import Args, CallContext, Observation, Subject, Tool
from tools.command import Command, Ending, Result
from tools.errors import ToolFailed
from tools.files import NamePattern, TargetPath, Word, file_subject

LONGEST_LINE = 500
"""Characters of a line that are shown."""
LINE = re.compile(r"(?P<path>[^\0]+)\0(?P<line>\d+)(?P<sign>[:-])(?P<text>.*)")
"""A line of ``grep --null -n``: ``:`` marks a match, ``-`` its context."""


class GrepArgs(Args):
    """What to look for, and where."""

    pattern: Word = Field(description="An extended regular expression, never empty.")
    path: TargetPath = Field(description="Absolute path of a file, or of a folder with all in it.")
    include: NamePattern | None = Field(default=None, description="Only such files: *.pth.")
    ignore_case: bool = Field(default=False, description="Whether a and A are the same.")
    max_matches: int = Field(
        default=50, ge=1, le=1000, description="How many matches to show at most."
    )
    context_lines: int = Field(default=0, ge=0, le=20, description="Lines around each match.")

    @field_validator("pattern", mode="before")
    @classmethod
    def _is_not_empty(cls, value: object) -> object:
        if value == "":
            raise ValueError(
                "an empty pattern matches every line: say what to look for; list_folder names "
                "files, and read_file reads one"
            )
        return value


class Match(Observation):
    """One line that was found."""

    path: str
    line: int
    """Number of the line, from 1."""
    text: str
    omitted: int = 0
    """Characters left out at the end of a long line."""
    context: bool = False
    """Whether this line only stands near a match."""


class Matches(Observation):
    """What grep found; an empty list is an answer."""

    matches: tuple[Match, ...]
    truncated: bool
    """Whether there is more than is shown."""
    problems: str = ""
    """What grep could not read, where it found something all the same."""

    def headline(self) -> str:
        """How many matches, and the first one."""
        found = [match for match in self.matches if not match.context]
        if not found:
            return "no match"
        more = "+" if self.truncated else ""
        first = found[0]
        return f"{len(found)}{more} matches, first {first.path}:{first.line}: {first.text}"[:200]


class Grep(Tool[GrepArgs, Matches]):
    """Search a file or a folder for an extended regular expression; binary files are skipped."""

    def command(self, args: GrepArgs, call: CallContext) -> Command:
        """Return the grep; one match more than asked for tells whether there are more."""
        words = ["grep", "-rnHIE", "--null", "-D", "skip", "-m", str(args.max_matches + 1)]
        if args.ignore_case:
            words.append("-i")
        if args.context_lines:
            words += ["-C", str(args.context_lines)]
        if args.include:
            words.append(f"--include={args.include}")
        # In the C locale a log with a few broken bytes is still text, and messages are English.
        return Command.of(*words, "-e", args.pattern, "--", args.path, env={"LC_ALL": "C"})

    def parse(self, args: GrepArgs, call: CallContext, result: Result) -> Matches:
        """Read the matches; exit code 1 means that there are none.

        Raises:
            ToolFailed: grep could not search, or was ended.
        """
        ended = result.ending is Ending.EXITED
        if not ended or (result.code not in (0, 1) and not result.stdout):
            raise ToolFailed(
                f"grep could not search {args.path} ({result.how}): {result.tail or 'no message'}"
            )
        found = list(_matches(_whole_rows(result)))
        kept = _first(found, args.max_matches)
        return Matches(
            matches=kept,
            truncated=len(kept) < len(found) or result.stdout_omitted > 0,
            problems=result.tail if result.stderr.strip() else "",
        )

    def subjects(self, args: GrepArgs) -> tuple[Subject, ...]:
        """The file or folder."""
        return (file_subject(args.path),)


def _whole_rows(result: Result) -> list[str]:
    """Return the rows of the output; of a shortened one, those of its head that are complete."""
    if not result.stdout_omitted:
        return result.stdout.split("\n")
    head = result.stdout.split("\n[... ", 1)[0].split("\n")
    return head[:-1] or head


def _matches(rows: list[str]) -> Iterator[Match]:
    for row in rows:
        found = LINE.fullmatch(row.rstrip("\r"))
        if found is None:
            continue
        text = found["text"]
        yield Match(
            path=found["path"],
            line=int(found["line"]),
            text=text[:LONGEST_LINE],
            omitted=max(0, len(text) - LONGEST_LINE),
            context=found["sign"] == "-",
        )


def _first(found: list[Match], limit: int) -> tuple[Match, ...]:
    """Return the rows before match number ``limit + 1``."""
    count = 0
    for place, match in enumerate(found):
        count += not match.context
        if count > limit:
            return tuple(found[:place])
    return tuple(found)
