"""What the loop asks of a brain: one reply to what is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from agent.fold import View
from agent.frontier import Frontier
from agent.values import ToolCall, Usage


@dataclass(frozen=True, slots=True)
class Request:
    """What a brain is shown: the view, from which messages are projected, and where it stands."""

    view: View
    frontier: Frontier


@dataclass(frozen=True, slots=True)
class Reply:
    """What it answers: words for people, and calls in order, without ids."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)


class Brain(Protocol):
    """Anything that decides."""

    name: str

    def reply(self, request: Request) -> Reply:
        """Decide what to do next."""
        ...
