"""What the fold keeps of each call and of each fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.events import FixClosed, FixOpened
from agent.facts import key_of
from agent.values import CallStatus, ToolCall
from tools.base import Risk, Subject


@dataclass(slots=True)
class CallRecord:
    """All that is known of one call."""

    call: ToolCall
    turn: int
    origin: str = "brain"
    risk: Risk = Risk.READ
    touches: tuple[Subject, ...] = ()
    queued: int = -1
    started: int = -1
    ended: int = -1
    status: CallStatus | None = None
    message: str = ""
    observation: dict[str, Any] = field(default_factory=dict)
    approval: str = ""
    """The answer to its approval: empty while there is none."""
    asked: str = ""
    """Id of its approval."""

    @property
    def had_effect(self) -> bool:
        """Whether it is, or may be, a change that took place."""
        return self.risk > Risk.READ and self.started >= 0


@dataclass(slots=True)
class FixRecord:
    """A fix from its first call to its verdict."""

    opened: FixOpened
    calls: list[str] = field(default_factory=list)
    closed: FixClosed | None = None

    def broke_off(self, calls: Mapping[str, CallRecord]) -> bool:
        """Whether it is not known of one of its calls if that took place."""
        return any(calls[name].status is CallStatus.UNKNOWN for name in self.calls)


class FailedLooks:
    """Questions that were asked in vain since the last change."""

    def __init__(self) -> None:
        self._rows: dict[str, list[CallRecord]] = {}

    def of(self, call: ToolCall) -> list[CallRecord]:
        """Return the calls that asked this very question, oldest first."""
        return self._rows.get(_question(call), [])

    def note(self, record: CallRecord) -> None:
        """Take a call that has ended; a change starts the count anew."""
        if record.had_effect:
            self._rows.clear()
        elif record.status is CallStatus.OK:
            self._rows.pop(_question(record.call), None)
        elif record.started >= 0:
            self._rows.setdefault(_question(record.call), []).append(record)


def _question(call: ToolCall) -> str:
    return call.tool + key_of(call.target, call.args)
