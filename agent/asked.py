"""What was asked of the brain so far, what it said, and what that cost; part of the fold."""

from __future__ import annotations

from collections import Counter

from agent.asking import HintGiven, ReplyReceived, RequestFailed
from agent.facts import key_of
from agent.records import CallRecord
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
        self.in_vain: Counter[str] = Counter()
        """How often the very same call came to the very same end, other than well."""

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
        """Take the end of a call."""
        if record.status is not CallStatus.OK and record.origin == "brain":
            self.in_vain[in_vain_key(record)] += 1

    def times_in_vain(self, record: CallRecord) -> int:
        """Return how often the very same call came to this very end; 0 where it went well."""
        return self.in_vain[in_vain_key(record)] if record.status is not CallStatus.OK else 0

    def has_hint(self, name: str, since: int = 0) -> bool:
        """Whether such a hint was given after that turn."""
        return any(hint.name == name and hint.turn >= since for hint in self.hints)


def in_vain_key(record: CallRecord) -> str:
    """Return what is the same for the same call with the same end."""
    call = record.call
    return f"{call.tool} {key_of(call.target, call.args)} {record.status} {record.message}"
