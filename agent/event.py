"""What all events of a transcript share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Event(BaseModel):
    """What all events share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
