"""The request as bytes, projected from the fold: each turn is written once, then only joined.

When it grows beyond the model's context, the results of old turns are shortened to a line first,
then the oldest turns are left out; the goal, the open fixes and the list of executed changes always
stand in the request (``briefing.now``).
"""

from __future__ import annotations

import json
from itertools import islice

from agent.brains.base import OutOfContext
from agent.brains.briefing import between, opening
from agent.brains.dialect import Dialect
from agent.brains.messages import Message, beginning, turn_messages, with_more
from agent.brains.render import MOST_RESULT, Fence, result, short
from agent.fold import View
from agent.records import CallRecord
from agent.site import site_of

KEPT_WHOLE = 3
"""The results of so many last turns are shortened only when nothing else helps."""
AIM = 0.6
"""What is shortened is shortened to this share of the room, so that it is not done every turn."""
GAIN = 0.1
"""A shortening that frees less than this share has gained nothing; three of them end the run."""
MOST_IN_VAIN = 3
_KEPT_BYTES = 31 * 2**20
"""A block of this size, once freed, makes glibc keep memory of such sizes at hand: else it takes
each request's megabytes anew from the kernel, page by page, which takes longer than to fill them.
Nothing is written to the block, so it costs nothing itself."""
_LESS = 1500
"""Characters of a result of the last turns, where even those have to be shortened."""


class Projection:
    """All that was said to a model and by it, in the form in which it is sent."""

    def __init__(
        self,
        view: View,
        system: str,
        dialect: Dialect,
        fence: Fence,
    ) -> None:
        """Take the parts that stay.

        Args:
            view: the run, of which as much is projected as there is.
            system: the instructions.
            dialect: how the server wants messages.
            fence: the run's fence, which takes secrets out of values.
        """
        bytes(_KEPT_BYTES)
        self._view, self._dialect, self._fence = view, dialect, fence
        self._turns: list[_Turn] = []
        self._seen = 0
        self._looks: list[CallRecord] = []
        first = with_more(
            beginning(system, opening(view, fence), dialect), self._after(0, brief=False)
        )
        self._start = _encoded(self._cleaned(first))
        self._first = self._cleaned(first)
        self._encoded: list[bytes] = []
        """All turns but the newest."""
        self._newest: list[Message] = []
        self._length = len(self._start)
        """Bytes of all that is sent but the newest turn and what comes after it."""
        self._newest_length = 0
        self._brief = 0
        """So many of the first turns have their results in one line each."""
        self._gone = 0
        """So many of the first turns are left out."""
        self._less = False
        self._in_vain = 0
        self._notes = 0

    @property
    def shortened(self) -> bool:
        """Whether anything is not shown whole any more."""
        return bool(self._brief or self._gone or self._less)

    @property
    def note(self) -> str:
        """Say what is not shown whole; empty where all is."""
        if not self.shortened:
            return ""
        less = ", the last results cut" if self._less else ""
        return f"results of {self._brief} old turns shortened, {self._gone} left out{less}"

    def update(self) -> None:
        """Take up the turns that have ended since; each is written once."""
        self._collect_looks()
        for turn in range(len(self._turns) + 1, self._view.turn + 1):
            if self._newest:
                self._encoded.append(_encoded(self._settled()))
                self._length += len(self._encoded[-1])
            looks = self._looks_of(turn)
            self._turns.append(_Turn(turn, looks))
            self._write_newest()
            self._notes = len(self._view.notes)

    def _settled(self) -> list[Message]:
        """Return the newest turn as it stays, with what the person said while it was answered."""
        if len(self._view.notes) == self._notes:
            return self._newest
        return self._messages(self._turns[-1], brief=False)

    def body(self, now: str) -> bytes:
        """Return the request's messages as a JSON array, with where the run stands at the end."""
        return b"[%b]" % b",".join(self.parts(now))

    def parts(self, now: str) -> list[bytes]:
        """Return the array's content in pieces, to be joined by commas; it is copied only then."""
        now = self._fence.clean(now)
        if not self._newest:
            return [_encoded(with_more(self._first, now))]
        last = _encoded(with_more(self._newest, now))
        return [self._start, *islice(self._encoded, self._gone, None), last]

    def size(self, now: str) -> int:
        """Return the length of the messages in bytes, without building them."""
        return self._length + self._newest_length + len(now.encode())

    def fit(self, now: str, room: int) -> None:
        """Shorten until the messages take at most ``room`` bytes.

        Raises:
            OutOfContext: they do not, or shortening has gained nothing three times.
        """
        before = self.size(now)
        if before <= room:
            return
        self._shorten(now, int(AIM * room))
        after = self.size(now)
        self._in_vain = self._in_vain + 1 if before - after < GAIN * before else 0
        if after > room or self._in_vain >= MOST_IN_VAIN:
            raise OutOfContext(
                f"what has to be shown takes about {after:,} characters, and the model's context "
                f"has room for {room:,}: take a model with a longer context, or a smaller goal"
            )

    def _shorten(self, now: str, aim: int) -> None:
        over = self.size(now) - aim
        while over > 0 and self._brief < len(self._encoded) - KEPT_WHOLE + 1:
            over -= self._rewrite(self._brief, brief=True)
            self._brief += 1
        while over > 0 and self._gone < len(self._encoded) - KEPT_WHOLE + 1:
            over -= len(self._encoded[self._gone])
            self._length -= len(self._encoded[self._gone])
            self._gone += 1
        if over > 0 and not self._less:
            self._less = True
        if self._less and over > 0:
            for place in range(max(self._gone, self._brief), len(self._encoded)):
                self._rewrite(place, brief=False)
            if self._turns:
                self._write_newest()

    def _rewrite(self, place: int, *, brief: bool) -> int:
        """Write a turn again, shorter, and return how many bytes that frees."""
        before = len(self._encoded[place])
        self._encoded[place] = _encoded(self._messages(self._turns[place], brief=brief))
        freed = before - len(self._encoded[place])
        self._length -= freed
        return freed

    def _write_newest(self) -> None:
        self._newest = self._messages(self._turns[-1], brief=False)
        self._newest_length = len(_encoded(self._newest))

    def _messages(self, turn: _Turn, *, brief: bool) -> list[Message]:
        reply = self._fence.clean(self._view.asked.replies[turn.number])
        records = [self._view.calls[call.id] for call in reply.calls]
        results = [self._result(record, brief=brief) for record in records]
        after = self._after(turn.number, turn.looks, brief=brief)
        target = site_of(self._view).target
        return self._cleaned(turn_messages(reply, results, after, target, self._dialect))

    def _result(self, record: CallRecord, *, brief: bool) -> str:
        if brief:
            return short(record, self._fence)
        return result(record, self._fence, _LESS if self._less else MOST_RESULT)

    def _after(self, turn: int, looks: list[CallRecord] | None = None, *, brief: bool) -> str:
        """Return what was said after a turn: looks of checks, the person's notes, hints."""
        asked, begin, end = self._view.asked, self._begin(turn), self._begin(turn + 1)
        notes = [item.text for item in self._view.notes.values() if begin < item.seq < end]
        hints = [hint for hint in asked.hints if hint.turn == turn]
        return between(looks or [], hints, notes, self._fence, brief=brief)

    def _begin(self, turn: int) -> float:
        reply = self._view.asked.replies.get(turn)
        return reply.seq if reply else (-1.0 if turn <= 0 else float("inf"))

    def _collect_looks(self) -> None:
        for record in islice(self._view.calls.values(), self._seen, None):
            if record.origin in ("verify", "fix_check"):
                self._looks.append(record)
        self._seen = len(self._view.calls)

    def _looks_of(self, turn: int) -> list[CallRecord]:
        end = self._begin(turn + 1)
        mine = [record for record in self._looks if record.queued < end]
        self._looks = self._looks[len(mine) :]
        return mine

    def _cleaned(self, messages: list[Message]) -> list[Message]:
        return [{**row, "content": self._fence.clean(row["content"])} for row in messages]


class _Turn:
    """A turn that is shown."""

    __slots__ = ("looks", "number")

    def __init__(self, number: int, looks: list[CallRecord]) -> None:
        self.number, self.looks = number, looks


def _encoded(messages: list[Message]) -> bytes:
    """Return messages as JSON, without the brackets of their array."""
    rows = [json.dumps(message, ensure_ascii=False, separators=(",", ":")) for message in messages]
    return ",".join(rows).encode("utf-8", "replace")
