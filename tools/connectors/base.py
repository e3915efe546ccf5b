"""What a connector is, and how it keeps a command's output within bounds."""

from __future__ import annotations

import codecs
from typing import Protocol

from tools.command import Command, OnOutput, Result

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


class Capture:
    """One stream of output: its head and tail as text, whatever its length and bytes."""

    def __init__(self, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
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
        if len(self._tail) > 2 * self._tail_bytes:
            del self._tail[: -self._tail_bytes or None]
        return text

    @property
    def omitted(self) -> int:
        """Bytes (of UTF-8) that are left out between head and tail."""
        return self._seen - sum(len(part.encode()) for part in self._ends())

    @property
    def text(self) -> str:
        """Head and tail, with a line in between that says how much is missing."""
        head, tail = self._ends()
        gap = f"\n[... {self.omitted} bytes left out ...]\n" if self.omitted else ""
        return head + gap + tail

    def _ends(self) -> tuple[str, str]:
        """Return what is kept; a character that a cut went through is left out."""
        if len(self._head) + len(self._tail) == self._seen and len(self._tail) <= self._tail_bytes:
            return (self._head + self._tail).decode(), ""
        start = max(0, len(self._tail) - self._tail_bytes)
        return self._head.decode("utf-8", "ignore"), self._tail[start:].decode("utf-8", "ignore")
