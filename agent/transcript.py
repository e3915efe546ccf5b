"""Writes and reads transcripts: the one place where a run reaches the disk.

One JSON line an event, redacted, numbered, timed and chained to the line before; on the disk before
anything that follows from it is done. What a writer returns is what a reader will read.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from agent.events import EVENT, AnyEvent
from agent.interrupts import undisturbed
from agent.line_file import LineFile
from agent.redact import Redactor
from agent.transcript_reader import (
    LONGEST_LINE,
    Loaded,
    TranscriptError,
    digest,
    read,
    reason_of,
)

__all__ = [
    "Clock",
    "Loaded",
    "MemoryTranscript",
    "Subscriber",
    "Transcript",
    "TranscriptError",
    "read",
    "stopwatch",
]

Clock = Callable[[], float]
"""Seconds since the run, or this part of it, began."""
Subscriber = Callable[[AnyEvent], None]


def stopwatch() -> Clock:
    """Return a clock that starts now."""
    start = time.monotonic()
    return lambda: time.monotonic() - start


class _Caught:
    """Catches what a subscriber raises: a display's defect must not end the run."""

    error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self.error = error if isinstance(error, Exception) else None
        return self.error is not None


class MemoryTranscript:
    """A transcript without a file, for replay and tests."""

    def __init__(self, redactor: Redactor | None = None, clock: Clock | None = None) -> None:
        self.events: list[AnyEvent] = []
        """All events so far, as written."""
        self.problems: list[str] = []
        """What went wrong beside the record: damage met when resuming, a display that failed."""
        self._redactor = redactor
        self._clock = clock or stopwatch()
        self._began_at = 0.0
        self._next = 0
        self._chain = ""
        self._subscribers: list[Subscriber] = []
        self._untold: deque[AnyEvent] = deque()
        self._telling = False
        self._mutex = threading.RLock()

    def subscribe(self, subscriber: Subscriber) -> None:
        """Have ``subscriber`` called with each event from now on, once it is on the disk.

        One that raises is dropped and named in ``problems``; neither events nor others suffer.
        """
        with self._mutex:
            self._subscribers.append(subscriber)

    def append(self, *events: AnyEvent) -> list[AnyEvent]:
        """Write events in one go and return them as written: numbered, timed and redacted.

        Raises:
            TranscriptError: they cannot be written; then none of them is.
        """
        with self._mutex:
            written = self.write(*events)
            self.tell()
            return written

    def write(self, *events: AnyEvent) -> list[AnyEvent]:
        """Do as ``append``, but leave it to ``tell`` to tell subscribers.

        Raises:
            TranscriptError: they cannot be written; then none of them is.
        """
        if not events:
            return []
        with self._mutex, undisturbed():
            written: list[AnyEvent] = []
            lines = bytearray()
            chain = self._chain
            now = round(self._began_at + self._clock(), 3)
            if self.events:
                now = max(now, self.events[-1].t)
            for seq, event in enumerate(events, start=self._next):
                line = self._line(event, {"seq": seq, "t": now, "prev": chain})
                written.append(_read_back(line, type(event).__name__))
                lines += line + b"\n"
                chain = digest(line)
            self._store(bytes(lines), lasting=any(event.lasting for event in events))
            self._chain = chain
            self._next += len(written)
            self.events += written
            self._untold += written
            return written

    def _line(self, event: AnyEvent, stamp: Mapping[str, object]) -> bytes:
        line = self._safe_json(event, stamp).encode()
        if len(line) > LONGEST_LINE:
            raise TranscriptError(
                f"an event of type {event.type} has {len(line)} bytes; the most is {LONGEST_LINE}"
            )
        return line

    def _safe_json(self, event: AnyEvent, stamp: Mapping[str, object]) -> str:
        """Return an event's JSON; most events are written once only, for they hide nothing."""
        if self._redactor is not None:
            with suppress(ValueError):
                text = event.model_copy(update=stamp).model_dump_json()
                if self._redactor.leaves(text):
                    return text
            event = self._redactor.walk(event)
        try:
            return event.model_copy(update=stamp).model_dump_json()
        except ValueError as error:
            raise TranscriptError(f"an event of type {event.type} is not JSON: {error}") from error

    def _store(self, data: bytes, *, lasting: bool) -> None:
        """Make the lines last; in memory there is nothing to do."""

    def tell(self) -> None:
        """Tell subscribers what is written, in order, also where one of them appends in turn."""
        with self._mutex:
            if self._telling:
                return
            self._telling = True
            try:
                while self._untold:
                    event = self._untold.popleft()
                    for subscriber in list(self._subscribers):
                        self._tell_one(subscriber, event)
            finally:
                self._telling = False

    def _tell_one(self, subscriber: Subscriber, event: AnyEvent) -> None:
        with _Caught() as caught:
            subscriber(event)
        if caught.error is not None:
            self._subscribers.remove(subscriber)
            problem = f"a display failed at {event.id} and was switched off: {caught.error!r}"
            self.problems.append(self._redactor.redact(problem) if self._redactor else problem)


class Transcript(MemoryTranscript):
    """A transcript on disk; ``create`` and ``resume`` make one."""

    def __init__(self, file: LineFile, redactor: Redactor, clock: Clock | None) -> None:
        super().__init__(redactor, clock)
        self.path = file.path
        self._file = file

    @classmethod
    def create(cls, path: Path, redactor: Redactor, clock: Clock | None = None) -> Self:
        """Begin a transcript, in a folder that is made where it is missing.

        Raises:
            TranscriptError: it exists already, is being written, or cannot be written.
        """
        return cls(LineFile.create(path), redactor, clock)

    @classmethod
    def resume(cls, path: Path, redactor: Redactor, clock: Clock | None = None) -> Self:
        """Go on with a transcript where it ended; a line torn in writing is cut off first.

        ``events`` holds what was written before, ``problems`` what was found damaged. Numbers and
        ``t`` go on from the last event's.

        Raises:
            TranscriptError: it is no transcript, is being written, or cannot be written.
        """
        file = LineFile.reopen(path)
        try:
            loaded = read(path)
            file.cut(loaded.end)
        except TranscriptError:
            file.close()
            raise
        transcript = cls(file, redactor, clock)
        transcript._take_up(loaded, redactor)
        return transcript

    def _take_up(self, loaded: Loaded, redactor: Redactor) -> None:
        self.events += loaded.events
        self.problems += loaded.problems
        self._chain = loaded.chain
        self._began_at = loaded.events[-1].t
        self._next = max(loaded.events[-1].seq + 1, loaded.lines)
        with self.path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                redactor.note(line)

    def _store(self, data: bytes, *, lasting: bool) -> None:
        self._file.append(data, lasting=lasting)

    def close(self) -> None:
        """End writing and let go of the run; closing twice does nothing."""
        with self._mutex:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _read_back(line: bytes, name: str) -> AnyEvent:
    try:
        return EVENT.validate_json(line)
    except ValidationError as error:
        raise TranscriptError(
            f"a {name} event could not be read again and is not written: {reason_of(error)}"
        ) from None
