"""Serves what was recorded, at the very place where it was: results to commands, replies to turns.

A replay that asks for anything else departs from the recording, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.asking import ReplyReceived, RequestFailed
from agent.brains.base import Attempt, BrainFailed, OutOfContext, Reply, Request
from agent.brains.recorded import Recorded
from agent.events import AnyEvent, CallEnded, CallSampled, CallStarted, ErrorMet, LimitReached
from agent.transcript import MemoryTranscript
from agent.values import CallStatus
from tools.command import Command, OnOutput, Result
from tools.errors import ConnectionFailed


class Departed(Exception):
    """The replay asked for something that the recording does not have next."""

    def __init__(self, wanted: str, recorded: str) -> None:
        super().__init__(wanted)
        self.wanted, self.recorded = wanted, recorded


class BrokeOff(Exception):
    """The recorded run broke off here, and what comes next was written when it went on."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the replay stands in the recording: behind as many events as it has written."""

    recorded: Sequence[AnyEvent]
    written: MemoryTranscript

    @property
    def ahead(self) -> Sequence[AnyEvent]:
        """The next recorded event, and the one after it."""
        at = len(self.written.events)
        return self.recorded[at : at + 2]


class RecordedConnector:
    """Serves what was recorded at this very place, to exactly the command recorded there."""

    def __init__(self, name: str, place: Place) -> None:
        self.name = name
        self._place = place

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        """Return the recorded result, or lose the connection where it was lost then.

        Raises:
            ConnectionFailed: it was lost then.
        """
        match self._place.ahead:
            case [CallSampled(argv=argv, result=result), *_]:
                if argv == command.argv:
                    return result
                raise Departed(command.text[:400], Command(argv).text[:400])
            case [CallEnded(status=CallStatus.UNKNOWN, message=words), ErrorMet(where=where)]:
                raise ConnectionFailed(where, words.removeprefix(f"{where}: "), final=True)
            case [CallStarted() | CallEnded(status=CallStatus.UNKNOWN), *_]:
                raise BrokeOff
            case [event, *_]:
                raise Departed(command.text[:400], f"(no command; {event.type} comes next)")
        raise Departed(command.text[:400], "(the recording has no further command)")

    def close(self) -> None:
        """There is nothing to close."""


class RecordedBrain:
    """Serves the recorded replies, but not where the run broke off before the reply came."""

    def __init__(self, name: str, place: Place) -> None:
        self.name = name
        self._place = place
        self._recorded = Recorded(place.recorded, name)

    def reply(self, request: Request) -> Reply:
        """Return the recorded reply of the next turn, after the attempts that failed then.

        Raises:
            BrainFailed: nobody answered then.
            OutOfContext: the run did not fit the model's context then.
        """
        while isinstance(event := next(iter(self._place.ahead), None), RequestFailed):
            request.failed(
                Attempt(
                    event.kind, event.text, event.status, event.usage, event.wait_s, event.final
                )
            )
            if event.final:
                raise BrokeOff if self._place.ahead else BrainFailed(event.text)
        match event:
            case LimitReached(name="context", text=text):
                raise OutOfContext(text)
            case None | ReplyReceived():
                return self._recorded.reply(request)
        raise BrokeOff  # the run was taken up again after this
