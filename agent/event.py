"""What all events of a transcript share."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Event(BaseModel):
    """What all events share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lasting: ClassVar[bool] = True
    """Whether it is synced at once; else only with the event after it, before which nothing is done
    that could not be done again."""

    seq: int = -1
    """Place in the transcript, set by the writer."""
    t: float = 0.0
    """Seconds since the run began, by a monotonic clock, set by the writer."""
    prev: str = ""
    """First 16 hex digits of the line before's SHA-256, set by the writer; empty in the header."""

    @property
    def id(self) -> str:
        """The name under which the event is cited."""
        return f"e{self.seq}"
