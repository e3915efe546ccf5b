"""Whole runs of the model brain on a simulated host, over real HTTP to a stub of a model's server.

What the stub answers is up to each test; what is sent is checked by the strictest server's rules in
every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent.brains.dialect import Dialect
from agent.brains.endpoint import Address, Endpoint
from agent.brains.openai_chat import OpenAIChat
from agent.session import Session
from tests.lab.strict_history import strict_problems
from tests.lab.stub_model import Asked, Reply, Stub, serving
from tests.lab.stub_replies import said as counted
from tests.lab.world_runs import goal, play
from tests.lab.worlds import World

TAKE = ("take_suggestion", {"id": "s1"})


def said(text: str, calls: Any = (), usage: Any = None, **more: Any) -> dict[str, Any]:
    """Return a completion whose server does not count tokens unless it is told to."""
    return counted(text, calls, usage=usage, **more)


def takes(asked: Asked) -> Reply:
    """Answer as a model that follows every suggestion."""
    return said("Taking it.", [TAKE], usage=(len(asked.raw) // 4, 20))


@contextmanager
def brain(stub: Stub, **more: Any) -> Iterator[OpenAIChat]:
    fields: dict[str, Any] = {"dialect": Dialect(), "sleep": lambda _: None}
    with Endpoint(Address(stub.url, "stub"), "", timeout_s=5) as endpoint:
        yield OpenAIChat(ask=endpoint.ask, model="stub", **(fields | more))


def run(folder: Path, script: Any, world: World | None = None, **more: Any) -> tuple[Session, Stub]:
    """Drive a run with a model that answers by a script; every request must be a valid one."""
    of_brain = {key: more.pop(key) for key in ("dialect", "options", "clean") if key in more}
    with serving(script) as stub, brain(stub, **of_brain) as model:
        done = play(folder, world or World(), more.pop("wanted", goal()), brain=model, **more)
    for asked in stub.asked:
        assert strict_problems(asked.body) == []
    return done, stub


def then(*replies: Reply | Callable[[Asked], Reply]) -> Callable[[Asked], Reply]:
    """Answer with these in turn, and follow suggestions afterwards."""
    waiting = list(replies)

    def script(asked: Asked) -> Reply:
        reply = waiting.pop(0) if waiting else takes
        return reply(asked) if callable(reply) else reply

    return script
