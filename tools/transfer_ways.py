"""The two ways of a transfer's bytes, by us or directly, and the score of what has come."""

from __future__ import annotations

import ipaddress
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tools.connectors.streams import StreamBroken
from tools.errors import BadReply, ConnectionFailed, ToolFailed
from tools.transfer_rows import shown
from tools.transfer_side import POLL_S, Side, Stalled, refusal

LISTEN_S = 20
"""So long the sink waits for the source's connection."""
EVERY_S = 0.5
"""Progress is told so often at most."""
Tell = Callable[[str], None]


class NotDirectly(Exception):
    """The source cannot reach the sink's address."""


@dataclass(slots=True)
class Copied:
    """What was done."""

    files: int = 0
    bytes: int = 0
    sent_files: int = 0
    sent_bytes: int = 0
    """Bytes that went over the link, without those that were there of an earlier try."""
    resumed_bytes: int = 0
    same_files: int = 0
    """Files that were there and whole."""
    replaced: list[str] = field(default_factory=list)
    is_new: bool = True
    """Whether nothing had the copy's name before."""
    route: str = "relayed"
    why: str = ""
    """Why it went this way."""
    seconds: float = 0.0


class Score:
    """What has come so far; says when nothing moves."""

    def __init__(self, done: Copied, quiet_s: float, tell: Tell) -> None:
        """Take what is filled in, how long nothing may move, and who is told of progress."""
        self.done = done
        self.wanted = 0
        """Bytes that are to come."""
        self.files = 0
        """Files that are to come."""
        self.carried = 0
        """Bytes that went through our hands."""
        self._failed: dict[str, str] = {}
        self._quiet_s, self._tell = quiet_s, tell
        self._begun = self._moved_at = time.monotonic()
        self._next = 0.0

    def begin(self) -> None:
        """Begin to measure."""
        self._begun = self._moved_at = time.monotonic()

    def hear(self, sink: Side) -> bool:
        """Take what the sink has said; ``True`` at its end.

        Raises:
            ToolFailed: it cannot go on.
            ConnectionFailed: it is gone.
        """
        rows = sink.heard()
        ends = [self._take(sink, row) for row in rows]
        if not any(ends) and sink.ended:
            raise ConnectionFailed(sink.name, sink.last_words())
        if rows:
            self._moved_at = time.monotonic()
        return any(ends)

    def moves(self, awaited: Side, moved: bool) -> None:
        """Note whether something moved, and tell how far it is.

        Args:
            awaited: the side whose turn it is.
            moved: whether something did.

        Raises:
            Stalled: nothing has, for too long.
        """
        now = time.monotonic()
        if moved:
            self._moved_at = now
        elif now - self._moved_at > self._quiet_s:
            raise Stalled(awaited.name, f"nothing moved for {self._quiet_s:g} s")
        self.progress()

    def check(self) -> None:
        """Make sure that all came.

        Raises:
            ToolFailed: some did not; the message names it.
        """
        silent = self.files - self.done.sent_files - len(self._failed)
        if not self._failed and not silent:
            return
        rows = [f"{shown(path)} ({why})" for path, why in list(self._failed.items())[:5]]
        rows += [f"{silent} of which nothing was said"] if silent else []
        there = self.done.sent_files + self.done.same_files
        raise ToolFailed(
            f"{there} of {self.done.files} files are there; not: {', '.join(rows)}; the same "
            "call goes on with what is missing"
        )

    def progress(self, final: bool = False) -> None:
        """Tell how far it is, now and then."""
        now = time.monotonic()
        come = self.wanted if final else min(max(self.carried, self.done.sent_bytes), self.wanted)
        early = now < self._next or (not come and now < self._begun + EVERY_S)
        if early and not final:
            return
        self._next = now + EVERY_S
        rate = come / max(now - self._begun, 0.001) / 1e6
        percent = 100 * come // self.wanted if self.wanted else 100
        self._tell(
            f"copy: {percent}%, {come / 1e6:.0f} of {self.wanted / 1e6:.0f} MB, {rate:.0f} MB/s, "
            f"{self.done.sent_files} files done\n"
        )

    def _take(self, sink: Side, row: list[str]) -> bool:
        refusal(sink.name, row)
        if row[0] == "done":
            self.done.sent_files += 1
        elif row[0] == "at":
            self.done.sent_bytes = int(row[1])
        elif row[0] == "wrong":
            self._failed[row[1]] = "it came with another sum than the source's"
        elif row[0] == "failed":
            self._failed[row[1]] = shown(row[2])
        elif row[0] == "stopped":
            raise ToolFailed(
                f"{sink.name}: {shown(row[1])}: {shown(row[2])}, in the middle of the copy; what "
                "came is kept, and the same call goes on from there"
            )
        return row[0] == "bye"


def relay(source: Side, sink: Side, score: Score) -> None:
    """Carry the source's bytes to the sink, and hear what the sink says of them.

    Raises:
        ToolFailed: the sink cannot go on.
        ConnectionFailed: a side is gone, or nothing moves.
    """
    score.done.why = score.done.why or "no direct link was asked for"
    pending = memoryview(source.held())
    score.begin()
    while True:
        source.soothe()
        if not pending and not source.ended:
            pending = memoryview(source.more(POLL_S))
        count = _given(sink, pending, score) if pending and sink.told else 0
        pending = pending[count:]
        score.carried += count
        if source.ended and not pending:
            sink.turn(POLL_S)
        if score.hear(sink):
            return
        if source.ended and not pending and not source.finished:
            raise ConnectionFailed(source.name, source.last_words())
        score.moves(sink if pending or source.ended else source, count > 0)


def _given(sink: Side, pending: memoryview, score: Score) -> int:
    try:
        return sink.stream.write(pending, POLL_S)
    except StreamBroken as error:
        score.hear(sink)  # it may have told why
        raise ConnectionFailed(sink.name, f"{error}; {sink.last_words()}") from error


def directly(
    source: Side, sink: Side, score: Score, address: str, orders: list[str], gets: list[str]
) -> None:
    """Have the source connect to the sink, with a token that only the two get, and from us.

    Raises:
        NotDirectly: it cannot.
        ToolFailed: the sink cannot go on.
        ConnectionFailed: a side is gone, or nothing moves.
    """
    token = secrets.token_hex(32)
    sink.say([*orders, f"go {address} {LISTEN_S} {token}"])
    port = int(_answer(sink, "port", source)[1])
    source.say([*gets, f"go {address} {port} {token}"])
    _answer(source, "linked", sink)
    score.done.route = f"direct, not encrypted, to {address}"
    score.done.why = f"{source.name} reaches {sink.name} there"
    score.begin()
    while True:
        source.soothe()
        moved = sink.turn(POLL_S)
        if score.hear(sink):
            return
        for row in source.heard():
            moved = True
            refusal(source.name, row)
        score.moves(sink, moved)


def _answer(side: Side, word: str, waiting: Side) -> list[str]:
    row = next(it for it in side.rows(waiting) if it[0] != "idle")
    if row[0] == "refused":
        raise NotDirectly(f"{side.name}: {shown(row[1])}")
    if row[0] != word:
        raise BadReply(f"{side.name}: it says what is not known here: {' '.join(row)[:100]}")
    return row


def private(address: str) -> None:
    """Make sure that an address may be used without encryption.

    Raises:
        ToolFailed: it is none, or one that the whole world has.
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        raise ToolFailed(f"direct: {address} is no IP address") from None
    if found.is_global or found.is_multicast or found.is_unspecified:
        raise ToolFailed(
            f"direct: {address} is no private address, and what goes directly is not encrypted"
        )
