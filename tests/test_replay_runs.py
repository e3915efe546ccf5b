"""Replay: a run that was recorded comes out the same, however it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.engine import Answer, drive, loop
from agent.replay import replay
from agent.run import Run
from agent.values import Outcome
from tests.lab.world_packages import VENV, Need, old_transformers
from tests.lab.world_runs import (
    Says,
    begin,
    call,
    events,
    goal,
    nobody,
    outcome,
    play,
    say,
    take_up,
)
from tests.lab.worlds import World
from tools.errors import ConnectionFailed


def graph(run: Run, answer: Answer) -> Outcome:
    return drive(run, answer)


def same(path: Path) -> None:
    """It plays again, event for event, through the loop and through the graph."""
    for driver in (loop, graph):
        done = replay(path, driver)
        assert done.difference is None, done.difference
        assert done.compared == done.total > 3


def modern(**more: Any) -> World:
    world = World(**more)
    world.versions["transformers"] = "5.24.0"
    return world


def at(name: str, nth: int, when: str, error: BaseException) -> Callable[[str, str], None]:
    """Return a trap that raises at the nth command of that name."""
    met = Counter[str]()

    def trap(asked: str, now: str) -> None:
        met[now] += asked == name
        if (asked, now, met[now]) == (name, when, nth):
            raise error

    return trap


PERSON: dict[str, Any] = {"mode": "supervised", "interactive": True}
SPARE = goal(allow={"paths": [VENV], "ports": ["8001-8003"]})
GONE = ConnectionFailed("local", "no route: to host")
RUNS: dict[str, tuple[Callable[[], World], dict[str, Any], Outcome | None]] = {
    "ready": (World, {}, Outcome.READY),
    "two fixes": (
        lambda: World(config_needs=(old_transformers(), Need("einops"))),
        {},
        Outcome.READY,
    ),
    "a restart": (lambda: modern(server_needs=(Need("einops"),)), {}, Outcome.READY),
    "another port": (lambda: modern(held={8000: "nginx"}), {"wanted": SPARE}, Outcome.READY),
    "an honest stop": (lambda: World(index={}), {}, Outcome.NOT_REACHED),
    "a person says yes": (World, {**PERSON, "answer": say("yes")}, Outcome.READY),
    "a person says no": (World, {**PERSON, "answer": say("no")}, Outcome.NOT_REACHED),
    "a person says stop": (World, {**PERSON, "answer": say("stop")}, Outcome.INTERRUPTED),
    "a flag says yes": (World, {"mode": "supervised", "yes": True}, Outcome.READY),
    "policy says no": (World, {"mode": "supervised", "on_ask": "deny"}, Outcome.NOT_REACHED),
    "parked": (World, {"mode": "supervised"}, None),
    "a limit": (World, {"wanted": goal(limits={"steps": 3})}, Outcome.LIMIT),
    "another brain": (
        World,
        {"brain": Says([call("nonsense"), call("grep", pattern="x", path="/y")])},
        Outcome.NOT_REACHED,
    ),
    "a lost host": (lambda: World(trap=at("resolve", 1, "after", GONE)), {}, Outcome.UNREACHABLE),
    "lost at the first look": (
        lambda: World(trap=at("host", 1, "before", GONE)),
        {},
        Outcome.UNREACHABLE,
    ),
}


@pytest.mark.parametrize(("make", "more", "end"), RUNS.values(), ids=RUNS)
def test_a_run_plays_again(
    tmp_path: Path, make: Callable[[], World], more: dict[str, Any], end: Outcome | None
) -> None:
    run = play(tmp_path, make(), **more)
    assert outcome(run) is end
    same(run.folder.transcript)


@pytest.mark.parametrize(
    ("name", "when", "on_interrupt"),
    [
        ("environment", "before", "keep"),
        ("resolve", "after", "stop"),
        ("pip install", "before", "stop"),
        ("pip install", "after", "keep"),
        ("server_sample", "before", "keep"),
        ("server_sample", "after", "stop"),
    ],
)
def test_an_interrupted_run_plays_again(
    tmp_path: Path, name: str, when: str, on_interrupt: str
) -> None:
    world = World(trap=at(name, 1, when, KeyboardInterrupt()))
    run = play(tmp_path, world, goal(on_interrupt=on_interrupt))
    assert outcome(run) is Outcome.INTERRUPTED
    same(run.folder.transcript)


class Killed(BaseException):
    """Like SIGKILL: nothing is written any more."""


@pytest.mark.parametrize(
    ("name", "when"),
    [
        ("host", "before"),
        ("config", "after"),
        ("resolve", "before"),
        ("pip install", "before"),
        ("pip install", "after"),
        ("job_start", "after"),
        ("server_sample", "before"),
        ("endpoint", "after"),
    ],
)
def test_a_run_that_broke_off_and_went_on_plays_again(tmp_path: Path, name: str, when: str) -> None:
    world = World(trap=at(name, 1, when, Killed()))
    begun = begin(tmp_path, world)
    with pytest.raises(Killed):
        drive(begun.run, nobody, begun.checkpoint)
    begun.close()
    same(begun.folder.transcript)
    taken = take_up(begun.folder, world)
    assert drive(taken.run, nobody, taken.checkpoint) is Outcome.READY
    taken.close()
    same(begun.folder.transcript)


def test_a_run_that_broke_off_while_the_brain_thought(tmp_path: Path) -> None:
    world = World()
    begun = begin(tmp_path, world)
    think, met = begun.run.brain.reply, Counter[str]()

    def reply(request: Any) -> Any:
        met["asked"] += 1
        if met["asked"] == 3:
            raise Killed
        return think(request)

    begun.run.brain.reply = reply  # type: ignore[method-assign]
    with pytest.raises(Killed):
        drive(begun.run, nobody, begun.checkpoint)
    begun.close()
    taken = take_up(begun.folder, world)
    assert drive(taken.run, nobody, taken.checkpoint) is Outcome.READY
    taken.close()
    assert [event.turn for event in events(taken, "request")].count(3) == 2
    same(begun.folder.transcript)


def test_a_parked_run_that_went_on_plays_again(tmp_path: Path) -> None:
    world = World()
    parked = play(tmp_path, world, mode="supervised")
    taken = take_up(parked.folder, world)
    assert drive(taken.run, say("yes"), taken.checkpoint) is Outcome.READY
    taken.close()
    same(parked.folder.transcript)
