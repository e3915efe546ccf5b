"""One side of a transfer: our program on a host, its lines, and how its silence ends."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from tools.connectors.base import Connector
from tools.connectors.streams import ByteStream, StreamBroken, streaming
from tools.errors import ConnectionFailed, ToolFailed
from tools.script import script_text
from tools.transfer_rows import shown

Role = Literal["source", "sink"]
POLL_S = 0.05
"""How long one side is waited for before the other one is looked at."""
PATIENCE = 1.2
"""So much longer a side bears silence than we do: we know which of the two is silent."""
_PARTS = {
    "source": ("transfer_lines", "transfer_source"),
    "sink": ("transfer_lines", "transfer_item", "transfer_sink"),
}
_BYE = b"bye -\n"
"""The end of a stream that is whole."""
_FIND = (
    'p=$(command -v "$1"); shift; '
    '[ -z "$p" ] || { "$p" -I -S -c "$1" "$@"; c=$?; [ $c -eq 99 ] || exit $c; }; '
    'exec sh -c "$2" sh "$@"'
)
"""Takes the host's Python, else its shell."""
_BY_PYTHON = """\
import os, sys
w = sys.argv[1:]
if sys.version_info < (3, 8):
    sys.exit(99)
def take(n):
    b = b""
    while len(b) < n:
        d = os.read(0, n - len(b))
        if not d:
            sys.exit(3)
        b += d
    return b
take(int(w[2]))
s = take(int(w[3]))
sys.argv[1:] = w[4:]
exec(compile(s, "transfer", "exec"))
"""
_BY_SHELL = (
    's=$(dd bs=1 count="$3" 2>/dev/null; echo x); dd bs=1 count="$4" >/dev/null 2>&1; '
    'shift 4; eval "${s%x}"'
)
"""Both read exactly their programs, so that the next byte is the first of what they are told."""


@dataclass(frozen=True, slots=True)
class Place:
    """A path on a target."""

    connector: Connector
    path: str
    python: str = "python3"
    """The target's Python; its shell does it where there is none of 3.8 or newer."""

    def __str__(self) -> str:
        return f"{self.connector.name}:{self.path}"


class Stalled(ConnectionFailed):
    """Nothing moved for too long."""


class OutOfTime(ToolFailed):
    """The copy took longer than it may."""


class Side:
    """Our program on a target; what it is told waits here until it takes it."""

    def __init__(
        self, role: Role, place: Place, tag: str, quiet_s: float, until: float = math.inf
    ) -> None:
        """Start it.

        Args:
            role: what it is to do.
            place: the file or folder that it gives or makes.
            tag: ends the names of what is set aside.
            quiet_s: how long nothing may move.
            until: when the copy has to be done, on the monotonic clock.

        Raises:
            ConnectionFailed: the target cannot be reached.
            ToolFailed: it cannot be started there.
        """
        shell, python = programs(role)
        patience = str(math.ceil(quiet_s * PATIENCE))
        words = (str(len(shell)), str(len(python)), patience, tag, place.path)
        argv = ("sh", "-c", _FIND, "sh", place.python, _BY_PYTHON, _BY_SHELL, *words)
        self.name, self._quiet_s, self._until = place.connector.name, quiet_s, until
        self._soothed_at = time.monotonic()
        self.stream: ByteStream = streaming(place.connector).open_stream(argv)
        self._out = memoryview(shell + python)
        self._held, self._tail = bytearray(), b""
        self._rows: deque[list[str]] = deque()
        self.ended = False
        """Whether it has said all that it will."""

    @property
    def told(self) -> bool:
        """Whether it has taken all that it was to be told."""
        return not self._out

    def say(self, lines: list[str]) -> None:
        """Tell it lines, as soon as it takes them."""
        self._out = memoryview(bytes(self._out) + "".join(f"{it}\n" for it in lines).encode())

    def soothe(self) -> None:
        """Let it know now and then that the other side works; it ends when it hears nothing."""
        now = time.monotonic()
        if self.told and not self.ended and now - self._soothed_at > self._quiet_s / 4:
            self._soothed_at = now
            self.say(["idle"])
        self.feed()

    def rows(self, waiting: Side | None = None) -> Iterator[list[str]]:
        """Yield what it says, as it comes, without an end of its own.

        Args:
            waiting: the other side, which is told that this one works.

        Raises:
            OutOfTime: the copy takes longer than it may.
            ToolFailed: it says that it cannot do what it was asked for.
            Stalled: nothing has moved for too long.
            ConnectionFailed: it is gone.
        """
        since = time.monotonic()
        while True:
            while self._rows:
                yield self._rows.popleft()
                since = time.monotonic()
            if self.ended:
                raise ConnectionFailed(self.name, self.last_words())
            if waiting is not None:
                waiting.soothe()
            if self.turn(POLL_S):
                since = time.monotonic()
            elif time.monotonic() - since > self._quiet_s:
                raise Stalled(self.name, f"nothing moved for {self._quiet_s:g} s")

    def turn(self, limit_s: float) -> bool:
        """Move what can be moved; tell whether something did."""
        if time.monotonic() > self._until:
            raise OutOfTime(
                f"{self.name}: the copy was not done in its time; what came is kept, and the same "
                "call goes on from there"
            )
        moved = self.feed()
        try:
            data = self.stream.read(0.0 if moved else limit_s)
        except StreamBroken as error:
            raise ConnectionFailed(self.name, str(error)) from error
        if data is None:
            return moved
        self.ended = not data
        self._held += data
        if b"\n" in data:
            *lines, rest = bytes(self._held).split(b"\n")
            self._held = bytearray(rest)
            self._rows += (line.decode("ascii", "replace").split(" ") for line in lines)
        return True

    def heard(self) -> list[list[str]]:
        """Return the rows that have come, without waiting."""
        self.turn(0.0)
        rows, self._rows = list(self._rows), deque()
        return rows

    def last_words(self) -> str:
        """Say why it is gone, in its own words where it has any."""
        said = self.stream.said()
        return said.splitlines()[-1][:300] if said else "our program there ended too early"

    def held(self) -> bytes:
        """Return what came after the last row: from here on it is bytes for the other side."""
        held = b"".join(" ".join(row).encode() + b"\n" for row in self._rows) + self._held
        self._rows, self._held = deque(), bytearray()
        self._tail = held[-len(_BYE) :]
        return held

    def more(self, limit_s: float) -> bytes:
        """Return bytes for the other side; none where none came in time, or it has ended.

        Raises:
            ConnectionFailed: it is gone.
        """
        try:
            data = self.stream.read(limit_s)
        except StreamBroken as error:
            raise ConnectionFailed(self.name, str(error)) from error
        self.ended = data == b""
        self._tail = (self._tail + (data or b""))[-len(_BYE) :]
        return data or b""

    @property
    def finished(self) -> bool:
        """Whether the last of its bytes say that all was sent."""
        return self._tail == _BYE

    def feed(self, limit_s: float = 0.0) -> bool:
        """Give it what it is still to be told; tell whether it took something."""
        if not self._out:
            return False
        try:
            count = self.stream.write(self._out[: 1 << 18], limit_s)
        except StreamBroken:
            self._out = memoryview(b"")  # its own last words say why
            return False
        self._out = self._out[count:]
        return count > 0

    def close(self) -> None:
        """End it; what it has written stays."""
        self.stream.close()


def refusal(name: str, row: list[str]) -> None:
    """Raise what a side says that it cannot do, if that is what it says.

    Raises:
        ToolFailed: that is it.
    """
    if row[0] == "refused":
        raise ToolFailed(f"{name}: {shown(row[1])}")


@cache
def programs(role: Role) -> tuple[bytes, bytes]:
    """Return the program for a host's shell, and the one for its Python."""
    folder = files("tools").joinpath("probes")
    lines = [
        line
        for part in _PARTS[role]
        for line in _without_imports(folder.joinpath(f"{part}.py").read_text("utf-8"))
    ]
    shell = script_text("transfer_common") + script_text(f"transfer_{role}")
    return shell.encode(), "".join(lines).encode()


def _without_imports(text: str) -> Iterator[str]:
    """Yield a part's lines without the import of the parts before it, and its own start."""
    inside = False
    for line in text.partition("\nif __name__ ==")[0].splitlines(keepends=True):
        starts = line.startswith("from tools.probes.")
        if not (starts or inside):
            yield line
        inside = (starts and line.rstrip().endswith("(")) or (inside and line.rstrip() != ")")
    if "\nif __name__ ==" in text:
        yield text.rpartition('__main__":\n')[2].strip() + "\n"
