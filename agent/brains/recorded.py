"""A brain that answers what a transcript says was answered."""

from __future__ import annotations

from collections.abc import Iterable

from agent.asking import ReplyReceived
from agent.brains.base import Reply, Request
from agent.events import AnyEvent


class NothingRecorded(Exception):
    """The recording has no reply for this turn."""


class Recorded:
    """Serves recorded replies by turn."""

    def __init__(self, events: Iterable[AnyEvent], name: str = "recorded") -> None:
        self.name = name
        self._replies = {event.turn: event for event in events if isinstance(event, ReplyReceived)}

    def reply(self, request: Request) -> Reply:
        """Return the recorded reply of the next turn, its calls without their ids.

        Raises:
            NothingRecorded: the recording ends before this turn.
        """
        turn = request.view.turn + 1
        if turn not in self._replies:
            raise NothingRecorded(f"the recording has no reply for turn {turn}")
        event = self._replies[turn]
        calls = tuple(call.model_copy(update={"id": ""}) for call in event.calls)
        return Reply(event.text, calls, event.usage, event.reasoning, event.cut_off, event.notes)
