"""Limits: what ends a run that would go on, and that its report still names the cause."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.limits import SAME_TURNS, SILENT_TURNS
from agent.session import Session
from agent.values import Outcome, Purpose, ToolCall
from tests.lab.world_packages import VENV
from tests.lab.world_runs import Says, call, events, goal, outcome, play, take_up
from tests.lab.worlds import MODEL, World
from tools.command import Ending, Result

LOOK = call("config_probe", python=f"{VENV}/bin/python", model=MODEL)
OTHER = call("port_owner", python="python3", port=8000)
MANY = {"steps": 30}


def limit_of(run: Session) -> str:
    assert outcome(run) is Outcome.LIMIT
    (limit,) = events(run, "limit")
    (ended,) = events(run, "run_ended")
    assert ended.exit_code == 4
    assert limit.text in ended.summary
    return str(limit.name)


def report(run: Session) -> Mapping[str, Any]:
    found: Mapping[str, Any] = events(run, "run_ended")[0].report
    return found


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_steps(tmp_path: Path, steps: int) -> None:
    run = play(tmp_path, World(), goal(limits={"steps": steps}))
    assert limit_of(run) == "steps"
    assert run.run.view.turn == steps
    assert report(run)["cause"]


def test_the_cause_is_named_where_one_is_known(tmp_path: Path) -> None:
    run = play(tmp_path, World(), goal(limits={"steps": 2}))
    assert limit_of(run) == "steps"
    assert "does not know the model type" in report(run)["cause"]
    assert "does not know the model type" in events(run, "run_ended")[0].summary
    assert report(run)["evidence"]


def test_a_run_that_is_done_meets_no_limit(tmp_path: Path) -> None:
    turns = play(tmp_path / "1", World()).run.view.turn
    assert outcome(play(tmp_path / "2", World(), goal(limits={"steps": turns}))) is Outcome.READY
    run = play(tmp_path / "3", World(), goal(limits={"steps": turns - 1}))
    assert outcome(run) is Outcome.LIMIT


def test_minutes_are_those_of_the_run(tmp_path: Path) -> None:
    world = World(load_s=math.inf)
    run = play(tmp_path, world, goal(limits={"minutes": 40}))
    assert limit_of(run) == "minutes"
    assert run.transcript.events[-1].t > 40 * 60
    assert "the server has not answered" in report(run)["cause"]
    assert report(run)["running"] == [f"{run.folder.id}-t7.1"]


def test_minutes_go_on_when_a_run_is_taken_up_and_not_between(tmp_path: Path) -> None:
    world = World()
    wanted = goal(limits={"minutes": 10})
    parked = play(tmp_path, world, wanted, mode="supervised")
    before = parked.transcript.events[-1].t
    world.now += 3600.0
    taken = take_up(parked.folder, world)
    assert taken.run.view.t == before
    taken.run.record(events(parked, "approval_asked")[0])
    assert taken.run.view.t - before < 1.0, "a night in the drawer is no time of the run"
    taken.close()


def test_silence(tmp_path: Path) -> None:
    run = play(tmp_path, World(), goal(limits=MANY), brain=Says(*([[]] * 9)))
    assert limit_of(run) == "silence"
    assert run.run.view.turn == SILENT_TURNS - 1  # empty: one nudge, then the end


def test_a_word_now_and_then_is_no_silence(tmp_path: Path) -> None:
    turns: list[list[ToolCall]] = [[], [], [LOOK], [], [], [OTHER], [], []]
    run = play(tmp_path, World(), goal(limits=MANY), brain=Says(*turns))
    assert outcome(run) is Outcome.NOT_REACHED
    assert events(run, "limit") == []


ROUNDS: dict[str, list[list[ToolCall]]] = {
    "the same": [[LOOK]],
    "the same two at once": [[LOOK, OTHER]],
    "to and fro": [[LOOK], [OTHER]],
    "a round of three": [[LOOK], [OTHER], [LOOK, OTHER]],
    "what is refused": [[call("pip_install", python="python", requirements=["einops"])]],
    "what is no tool": [[call("nonsense")]],
}


@pytest.mark.parametrize("round_", ROUNDS.values(), ids=ROUNDS)
def test_repetition(tmp_path: Path, round_: list[list[ToolCall]]) -> None:
    turns = itertools.islice(itertools.cycle(round_), 30)
    run = play(tmp_path, World(), goal(limits=MANY), brain=Says(*turns))
    assert limit_of(run) == "repetition"
    assert run.run.view.turn == SAME_TURNS * len(round_)


def test_what_changes_is_no_repetition(tmp_path: Path) -> None:
    start = call(
        "start_server",
        Purpose(kind="advance", ref="chat", postcondition="chat"),
        argv=[f"{VENV}/bin/serve", "--port", "8000"],
    )
    world = World(load_s=math.inf)
    seen: list[int] = []

    def status(view: Any) -> list[ToolCall]:
        (job,) = view.servers
        seen.append(view.turn)
        return [call("job_status", job=job)]

    run = play(tmp_path, world, goal(limits=MANY), brain=Says([start], *([status] * 12)))
    assert outcome(run) is Outcome.NOT_REACHED
    assert len(seen) == 12, "its log grows, so this is waiting"


@pytest.mark.parametrize("kind", ["steps", "repetition"])
def test_the_cause_of_looks_in_vain_is_named(tmp_path: Path, kind: str) -> None:
    def broken(name: str, when: str) -> Result | None:
        return Result(Ending.EXITED, 1, stderr="no luck") if name == "config" else None

    steps = 1 if kind == "steps" else 30
    brain = Says(*([[LOOK]] * 9)) if kind == "repetition" else None
    run = play(tmp_path, World(trap=broken), goal(limits={"steps": steps}), brain=brain)
    assert limit_of(run) == kind
    assert "no luck" in report(run)["cause"]
    assert report(run)["evidence"]
