"""What the loop asks of a brain: one reply to what is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from agent.fold import View
from agent.frontier import Frontier
from agent.values import ToolCall, Usage

OWN_BRAIN = "playbook"
"""Name of the one that asks no model."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to ask a model that brought no reply."""

    kind: str
    text: str
    status: int | None = None
    """HTTP status; ``None`` where none came."""
    usage: Usage = field(default_factory=Usage)
    wait_s: float = 0.0
    """Seconds until the next attempt."""
    final: bool = False
    """Whether nothing more is tried."""


def _nobody(_: object) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a brain is shown: the view, from which messages are projected, and where it stands."""

    view: View
    frontier: Frontier
    tell: Callable[[str], None] = _nobody
    """Takes pieces of a reply as they come, for faces only."""
    failed: Callable[[Attempt], None] = _nobody
    """Takes each attempt that brought nothing, as it happens; it goes on record."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What it answers: words for people, and calls in order, without ids."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    reasoning: str = ""
    cut_off: bool = False
    """Whether it ended at its length limit."""
    notes: tuple[str, ...] = ()
    """What had to be mended before it could be read."""


class BrainFailed(Exception):
    """The brain did not answer, which is on record; the run waits and can be resumed."""


class OutOfContext(Exception):
    """What has to be shown does not fit the model's context, however much is shortened."""


class Brain(Protocol):
    """Anything that decides."""

    @property
    def name(self) -> str:
        """What it is called in a run's record."""
        ...

    def reply(self, request: Request) -> Reply:
        """Decide what to do next.

        Raises:
            BrainFailed: it could not be asked; the attempts were told to ``request.failed``.
            OutOfContext: the run has grown beyond what the model can read.
        """
        ...


@runtime_checkable
class Closing(Protocol):
    """A brain that holds a connection."""

    def close(self) -> None:
        """Let go of it."""
        ...
