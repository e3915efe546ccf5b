"""The values that events carry: calls, purposes, facts, and the ways in which things end."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Json = Any
"""A JSON value; pydantic checks it where it has a shape."""


class Purpose(BaseModel):
    """Why a call above READ is wanted; ``gate.py`` checks it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["look", "fix", "advance", "recover", "requested"] = "look"
    """``look`` is for READ calls only."""
    ref: str = ""
    """fix: a diagnosis · advance: an unmet check · recover: a call · requested: a note's event."""
    postcondition: str = ""
    """advance: the check that is probed afterwards."""


class ToolCall(BaseModel):
    """A brain's wish to use a tool; its id is fixed when the reply is recorded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = ""
    tool: str
    args: dict[str, Json] = Field(default_factory=dict)
    target: str = "local"
    purpose: Purpose = Purpose()
    why: str = ""
    """The brain's reason in one sentence, for the person who approves."""
    problem: str = ""
    """Why it cannot be run: a model's call that could not be read. It ends as invalid."""

    def same_as(self, other: ToolCall) -> bool:
        """Whether it asks for the same, whatever it is called and why it is wanted."""
        return (self.tool, self.target, self.args) == (other.tool, other.target, other.args)


class Usage(BaseModel):
    """What a reply cost."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    """By the price table of the settings; 0 for a model without a price."""
    cached_tokens: int = 0
    """So many of the prompt's tokens came from the endpoint's cache."""
    estimated: bool = False
    """Whether the endpoint did not tell, so that the numbers are reckoned from lengths."""

    def __add__(self, other: Usage) -> Usage:
        """Add two costs; a sum with an estimate in it is an estimate."""
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            estimated=self.estimated or other.estimated,
        )

    @property
    def tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens


class CallStatus(StrEnum):
    """How a call ended."""

    OK = "ok"
    FAILED = "failed"
    """The tool ran and says no."""
    TIMED_OUT = "timed_out"
    REFUSED = "refused"
    """Gate, policy or a person said no."""
    CANCELLED = "cancelled"
    """Not run because an earlier change of the same turn was refused, or the run ended."""
    UNKNOWN = "unknown"
    """The connection or we ourselves broke off: whether it had its effect is not known."""
    INVALID = "invalid"
    """No such tool, or its arguments are wrong."""


class FixVerdict(StrEnum):
    """What a fix's check said, comparing failure signatures."""

    VERIFIED = "verified"
    REFUTED = "refuted"
    PROGRESSED = "progressed"
    INCONCLUSIVE = "inconclusive"


class Outcome(StrEnum):
    """How a run ended."""

    READY = "ready"
    NOT_REACHED = "not_reached"
    PARKED = "parked"
    LIMIT = "limit"
    UNREACHABLE = "unreachable"
    INTERRUPTED = "interrupted"
