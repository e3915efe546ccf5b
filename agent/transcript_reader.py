"""Reads transcripts: keeps everything that can be read, and says what cannot."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

from pydantic import BaseModel, ValidationError

from agent.events import EVENT, FORMAT_VERSION, AnyEvent
from agent.problems import Problem

LONGEST_LINE = 64 * 2**20
"""Bytes; a longer line is not written, and a file that holds one is not a transcript."""


class TranscriptError(Problem):
    """The transcript cannot be used; the message says which, why and what to do."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What could be read of a transcript."""

    events: tuple[AnyEvent, ...]
    problems: tuple[str, ...]
    """What was lost or changed, a sentence each; empty for a whole transcript."""
    end: int
    """Bytes up to the end of the last whole line; what follows was torn in writing."""
    lines: int
    chain: str
    """What the next line's ``prev`` has to be."""


def read(path: Path) -> Loaded:
    """Read a transcript. Nothing but JSON is ever understood, and nothing in it is run.

    Raises:
        TranscriptError: it cannot be opened, is none, or was written by a newer version.
    """
    try:
        if path.exists() and not path.is_file():
            raise TranscriptError(f"{path}: not a file")
        with path.open("rb") as file:
            reader = _Reader(path)
            for line in _lines(path, file):
                reader.take(line)
            return reader.finish()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TranscriptError(f"{path}: cannot read the transcript: {reason}") from error


def digest(line: bytes) -> str:
    """Return what the line after ``line`` (without its line break) carries as ``prev``."""
    return hashlib.sha256(line).hexdigest()[:16]


def reason_of(error: ValidationError) -> str:
    """Say in one line why a line is no event, without its content."""
    first = error.errors(include_url=False, include_input=False)[0]
    spot = ".".join(str(part) for part in first["loc"])
    return f"{spot}: {first['msg']}" if spot else first["msg"]


def _lines(path: Path, file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise TranscriptError(f"{path}: not a transcript: a line is over {LONGEST_LINE} bytes")
        yield line


class _Header(BaseModel):
    """As much of the first line as every version of the format has."""

    type: Literal["run_started"]
    format: int


@dataclass
class _Reader:
    """Takes one line after the other."""

    path: Path
    events: list[AnyEvent] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    end: int = 0
    lines: int = 0
    chain: str = ""
    whole: bool = True
    """Whether the line before could be read; if not, a broken chain is no news."""

    def take(self, raw: bytes) -> None:
        """Read one line, with its line break where it has one.

        Raises:
            TranscriptError: this cannot be the beginning of a transcript.
        """
        line = raw.removesuffix(b"\n")
        if not self.lines:
            self._check_version(line)
        try:
            event = EVENT.validate_json(line)
        except ValidationError as error:
            self._leave_out(raw, line, reason_of(error))
            return
        if event.prev != self.chain and self.whole:
            self.problems.append(
                f"{self.path}: line {self.lines + 1}: the chain is broken here:"
                " lines before it were changed, removed or added after they were written"
            )
        self.whole = True
        self.events.append(event)
        self._advance(raw, line)

    def _leave_out(self, raw: bytes, line: bytes, reason: str) -> None:
        if self.lines and not self.events:
            raise TranscriptError(f"{self.path}: not a transcript of bringup: {reason}")
        if not raw.endswith(b"\n"):
            self.problems.append(
                f"{self.path}: the last line is incomplete and left out ({len(line)} bytes)"
            )
            return
        self._advance(raw, line)
        self.problems.append(
            f"{self.path}: line {self.lines} cannot be read and is left out: {reason}"
        )
        self.whole = False

    def _advance(self, raw: bytes, line: bytes) -> None:
        self.lines += 1
        self.end += len(raw)
        self.chain = digest(line)

    def _check_version(self, line: bytes) -> None:
        with suppress(ValidationError):
            found = _Header.model_validate_json(line).format
            if found > FORMAT_VERSION:
                raise TranscriptError(
                    f"{self.path}: written in format {found}, and this bringup reads up to"
                    f" {FORMAT_VERSION}: use a newer bringup"
                )

    def finish(self) -> Loaded:
        """Return what was read.

        Raises:
            TranscriptError: that is nothing.
        """
        if not self.events:
            found = "no whole event is in it" if self.problems else "it is empty"
            raise TranscriptError(f"{self.path}: not a transcript of bringup, or torn: {found}")
        if self.events[0].type != "run_started":
            self.problems.insert(0, f"{self.path}: the header is missing")
        return Loaded(tuple(self.events), tuple(self.problems), self.end, self.lines, self.chain)
