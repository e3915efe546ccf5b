"""What the fold keeps of each call and of each fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.events import FixClosed, FixOpened
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
