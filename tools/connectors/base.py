"""What a connector is, and how it keeps a command's output within bounds."""

from __future__ import annotations

import codecs
from typing import Protocol

from tools.command import Command, Kept, OnOutput, Result

HEAD_BYTES = 128 * 1024
"""How much of the start of a stream is kept."""
TAIL_BYTES = 128 * 1024
"""How much of the end of a stream is kept."""


class Connector(Protocol):
    """A way to run commands on one target."""

    @property
    def name(self) -> str:
        """The target's name, for people and events."""
        ...

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        """Run a command to its end; what it does badly is a ``Result``, never an exception.

        Args:
            command: what to run, and for how long at most.
            on_output: called while it runs, with the stream's name and a piece of text.

        Raises:
            ConnectionFailed: the target cannot be reached, or was lost.
        """
        ...

    def close(self) -> None:
        """Give back what the connector holds; it may be called twice."""
        ...


class Sheet(Protocol):
    """The whole of one output while it comes; what goes wrong with it is only ever said."""

    def write(self, text: str) -> None:
        """Take a piece of it."""
        ...

    def close(self) -> Kept:
        """Keep it, and tell where."""
        ...

    def drop(self) -> None:
        """Forget it."""
        ...


class Aside(Protocol):
    """Keeps outputs that are longer than what a result has of them."""

    def open(self) -> Sheet:
        """Begin with one; never raises."""
        ...


class Capture:
    """One stream of output: its head and tail as text, whatever its length and bytes."""

    def __init__(
        self,
        head_bytes: int = HEAD_BYTES,
        tail_bytes: int = TAIL_BYTES,
        aside: Aside | None = None,
    ) -> None:
        """Keep so much of head and tail; where that is not all, the whole goes ``aside``."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._aside = aside
        self._sheet: Sheet | None = None
        self._kept: Kept | None = None
        self._head = bytearray()
        self._tail = bytearray()
        self._seen = 0

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Take bytes as they come and return their text; half a character waits for its rest."""
        text = self._decoder.decode(data, final)
        clean = text.encode()
        self._seen += len(clean)
        room = self._head_bytes - len(self._head)
        self._head += clean[:room]
        self._tail += clean[room:]
        if self._sheet is not None:
            self._sheet.write(text)
        if len(self._tail) > 2 * self._tail_bytes:
            self._begin_sheet()
            del self._tail[: -self._tail_bytes or None]
        return text

    def keep(self) -> Kept | None:
        """Keep the whole aside where something is left out, and tell where; to be called once."""
        if self._aside is not None and self.omitted:
            self._begin_sheet()
        if self._sheet is not None:
            self._kept = self._sheet.close()
            self._sheet = None
        return self._kept

    def drop(self) -> None:
        """Forget the whole, where it is not kept yet."""
        if self._sheet is not None:
            self._sheet.drop()
            self._sheet = None

    def _begin_sheet(self) -> None:
        """Put aside what came so far; nothing of it is gone yet."""
        if self._sheet is None and self._aside is not None:
            self._sheet = self._aside.open()
            self._sheet.write((self._head + self._tail).decode())

    @property
    def omitted(self) -> int:
        """Bytes (of UTF-8) that are left out between head and tail."""
        return self._seen - sum(len(part.encode()) for part in self._ends())

    @property
    def text(self) -> str:
        """Head and tail, with a line in between that says how much is missing."""
        head, tail = self._ends()
        place = f"; the whole: {self._kept.said}" if self._kept is not None else ""
        gap = f"\n[... {self.omitted} bytes left out{place} ...]\n" if self.omitted else ""
        return head + gap + tail

    def _ends(self) -> tuple[str, str]:
        """Return what is kept; a character that a cut went through is left out."""
        if len(self._head) + len(self._tail) == self._seen and len(self._tail) <= self._tail_bytes:
            return (self._head + self._tail).decode(), ""
        start = max(0, len(self._tail) - self._tail_bytes)
        return self._head.decode("utf-8", "ignore"), self._tail[start:].decode("utf-8", "ignore")
