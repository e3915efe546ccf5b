"""Runs on simulated hosts: begun, taken up and driven as the command line does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent import session
from agent.approval import Mode, policy_for
from agent.brains.base import Attempt, Brain, Reply, Request
from agent.brains.playbook import Playbook
from agent.engine import drive
from agent.events import ApprovalAsked
from agent.fold import View
from agent.goal import Goal, parse_goal
from agent.runs import RunFolder, new_run
from agent.session import Session
from agent.values import Outcome, Purpose, ToolCall, Usage
from tests.lab.world_packages import VENV
from tests.lab.worlds import MODEL, World


def goal(**more: Any) -> Goal:
    """Return the goal of serving the world's model from its environment."""
    data: dict[str, Any] = {
        "model": MODEL,
        "candidates": [{"venv": VENV}],
        "options": {"device": "cpu"},
        "allow": {"paths": [VENV]},
    }
    return parse_goal(data | more, base=Path("/"), where="test")


def begin(
    folder: Path,
    world: World,
    wanted: Goal | None = None,
    *,
    mode: Mode = "auto",
    brain: Brain | None = None,
    interactive: bool = False,
    **policy: Any,
) -> Session:
    """Begin a run on a world; its transcript is on disk below ``folder``."""
    wanted = wanted or goal()
    begun = session.begin(
        wanted,
        policy_for(wanted, mode, **policy),
        new_run(folder / "runs"),
        brain=brain or Playbook(),
        interactive=interactive,
        environ={},
        clock=world.stopwatch(),
    )
    return _settle(begun, world)


def take_up(folder: RunFolder, world: World, brain: Brain | None = None) -> Session:
    """Go on with a run, on a world."""
    clock = world.stopwatch()
    return _settle(session.take_up(folder, environ={}, brain=brain, clock=clock), world)


def _settle(begun: Session, world: World) -> Session:
    begun.run.connectors = {"local": world}
    begun.run.sleep = world.sleep
    return begun


def nobody(asked: list[ApprovalAsked]) -> Mapping[str, Any] | None:
    """Answer nothing: there is no terminal."""
    return None


def say(word: str) -> Callable[[list[ApprovalAsked]], Mapping[str, Any] | None]:
    """Return a person who always says the same."""
    return lambda asked: {item.approval_id: word for item in asked}


def play(folder: Path, world: World, wanted: Goal | None = None, **more: Any) -> Session:
    """Drive a run to its end, or until it parks; the session is closed and can be read.

    ``driver`` is the graph, or ``loop`` for the same nodes without it.
    """
    answer, driver = more.pop("answer", nobody), more.pop("driver", drive)
    begun = begin(folder, world, wanted, **more)
    try:
        if driver is drive:
            drive(begun.run, answer, begun.checkpoint)
        else:
            driver(begun.run, answer)
    finally:
        begun.close()
    return begun


def outcome(of: Session) -> Outcome | None:
    """Return how a run ended."""
    ended = of.run.view.ended
    return ended.outcome if ended else None


def events(of: Session, kind: str) -> list[Any]:
    """Return a run's events of one type."""
    return [event for event in of.transcript.events if event.type == kind]


Turn = Sequence[ToolCall] | Callable[[View], Sequence[ToolCall]]


class Says:
    """A brain that has its turns beforehand, be it as functions; when they are used up, it ends."""

    name = "playbook"

    def __init__(self, *turns: Turn) -> None:
        self._turns = turns

    def reply(self, request: Request) -> Reply:
        """Return the next one."""
        view = request.view
        if view.turn < len(self._turns):
            turn = self._turns[view.turn]
            return Reply("", tuple(turn(view) if callable(turn) else turn))
        return Reply("", (ToolCall(tool="give_up", args={"cause": "all is said"}),))


PRICE = Usage(prompt_tokens=900, completion_tokens=100, cost_usd=0.5)


class Costs(Says):
    """A brain that something is paid for, be it that it answers or that an attempt fails."""

    def __init__(
        self, *turns: Turn, usage: Usage = PRICE, failing: int = 0, text: str = ""
    ) -> None:
        super().__init__(*turns)
        self.usage, self.failing, self.text = usage, failing, text

    def reply(self, request: Request) -> Reply:
        """Return the next one, after as many attempts as are to fail."""
        for _ in range(self.failing):
            request.failed(Attempt("server", "503 try again", 503, self.usage, 1.0))
        return Reply(self.text, super().reply(request).calls, self.usage)


def result_of(view: View, call_id: str) -> str:
    """Return the id of the event that ended a call, for citing."""
    return f"e{view.calls[call_id].ended}"


def call(tool: str, purpose: Purpose | None = None, target: str = "local", **args: Any) -> ToolCall:
    """Return a brain's call."""
    return ToolCall(tool=tool, args=args, target=target, purpose=purpose or Purpose())


LOOKS = [[call("host_facts", python="python3", paths=[f"/{n}"])] for n in range(200)]
"""Turns of looks of which none is like another."""
