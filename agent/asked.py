"""What was asked of the brain so far, what it said, and what that cost; part of the fold."""

from __future__ import annotations

from agent.asking import HintGiven, ReplyReceived, RequestFailed
from agent.records import CallRecord
from agent.sameness import call_key, end_key
from agent.values import CallStatus, Usage


class Asked:
    """Replies, hints and failed attempts, with running totals: a question costs constant time."""

    def __init__(self) -> None:
        self.replies: dict[int, ReplyReceived] = {}
        """By turn."""
        self.hints: list[HintGiven] = []
        self.failed: RequestFailed | None = None
        """The last failed attempt of the present turn."""
        self.usage = Usage()
        """All that was used, failed attempts included."""
        self._in_vain: dict[str, dict[str, set[int]]] = {}
        """By call and by its end, other than well: the turns in which it came to that."""

    def replied(self, event: ReplyReceived) -> None:
        """Take a reply."""
        self.replies[event.turn] = event
        self.usage += event.usage
        self.failed = None

    def attempt_failed(self, event: RequestFailed) -> None:
        """Take a failed attempt; it is charged too."""
        self.usage += event.usage
        self.failed = event

    def hinted(self, event: HintGiven) -> None:
        """Take a hint."""
        self.hints.append(event)

    def ended(self, record: CallRecord) -> None:
        """Take the end of a call; one that went well forgets how often it did not.

        A call that was not run because of another one has not failed itself.
        """
        if record.origin != "brain" or record.status is CallStatus.CANCELLED:
            return
        key = call_key(record.call)
        if record.status is CallStatus.OK:
            self._in_vain.pop(key, None)
        else:
            self._in_vain.setdefault(key, {}).setdefault(end_key(record), set()).add(record.turn)

    def times_in_vain(self, record: CallRecord) -> int:
        """Return in how many turns the very same call came to this very end; 0: it went well."""
        ends = self._in_vain.get(call_key(record.call))
        return len(ends.get(end_key(record), ())) if ends else 0

    def has_hint(self, name: str, since: int = 0) -> bool:
        """Whether such a hint was given after that turn."""
        return any(hint.name == name and hint.turn >= since for hint in self.hints)
