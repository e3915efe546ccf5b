"""The events of asking a brain: a request, its reply, what went wrong on the way, and hints."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from agent.event import Event
from agent.values import Json, ToolCall, Usage


class RequestMade(Event):
    """A brain was asked; ``digest`` tells what it was shown."""

    lasting: ClassVar[bool] = False

    type: Literal["request"] = "request"
    turn: int
    digest: str
    """Hash of where the run stood when it was asked."""


class RequestFailed(Event):
    """One attempt to ask a model brought no reply; it may have cost something all the same."""

    type: Literal["request_failed"] = "request_failed"
    turn: int
    kind: str
    """What kind of failure: key, not_found, request, overflow, rate, quota, server, network, …"""
    status: int | None = None
    """HTTP status; ``None`` where none came."""
    text: str
    usage: Usage = Usage()
    wait_s: float = 0.0
    """Seconds until the next attempt."""
    final: bool = False
    """Whether nothing more was tried: the run waits for ``bringup resume``."""


class ReplyReceived(Event):
    """A brain's answer; its calls are a queue."""

    type: Literal["reply"] = "reply"
    turn: int
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    reasoning: str = ""
    """What a model thought aloud, where its endpoint tells."""
    cut_off: bool = False
    """Whether the reply ended at its length limit."""
    notes: tuple[str, ...] = ()
    """What had to be mended before it could be read, and what its request left out."""


class DeciderChanged(Event):
    """Another brain goes on with the run; from outside, as an interrupt is."""

    type: Literal["decider"] = "decider"
    brain: str
    endpoint: dict[str, Json] = Field(default_factory=dict)
    """The model that decides from now on, as in the header."""


class HintGiven(Event):
    """Something that code tells the brain, once: it goes round in circles, a limit is near."""

    type: Literal["hint"] = "hint"
    name: str
    """repetition, failing, silence, the limit that is near: steps, minutes, tokens, usd; or `job`
    and the name of a job that has ended."""
    turn: int
    """The turn after which it was said."""
    text: str
