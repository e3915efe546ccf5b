"""Limits: what ends a run that would go on, what counts for them, and what is said before.

Rows 42 to 45 and 47 of the robustness list are named in the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.engine import drive, loop
from agent.events import ApprovalAsked
from agent.fold import View
from agent.limits import ALARM, SILENT_TURNS, hints
from agent.replay import replay
from agent.session import Session
from agent.values import CallStatus, Outcome, Purpose, ToolCall, Usage
from tests.lab.world_packages import VENV
from tests.lab.world_runs import (
    LOOKS,
    Costs,
    Says,
    call,
    events,
    goal,
    outcome,
    play,
    say,
    take_up,
)
from tests.lab.worlds import MODEL, World

DRIVERS = pytest.mark.parametrize("driver", [loop, drive], ids=["loop", "graph"])
LOOK = call("config_probe", python=f"{VENV}/bin/python", model=MODEL)
OTHER = call("port_owner", python="python3", port=8000)
START = call(
    "start_server",
    Purpose(kind="advance", ref="process_up", postcondition="process_up"),
    argv=[f"{VENV}/bin/serve", "--port", "8000"],
)


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


def hinted(run: Session) -> list[tuple[str, int]]:
    return [(hint.name, hint.turn) for hint in events(run, "hint")]


def same_again(run: Session) -> None:
    for driver in (loop, drive):
        assert replay(run.folder.transcript, driver).difference is None


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_steps(tmp_path: Path, steps: int) -> None:
    run = play(tmp_path, World(), goal(limits={"steps": steps}))
    assert limit_of(run) == "steps"
    assert run.run.view.turn == steps
    assert report(run)["cause"]


@DRIVERS
def test_42_what_is_reached_with_the_last_turn_is_reached(tmp_path: Path, driver: Any) -> None:
    turns = play(tmp_path / "1", World()).run.view.turn
    enough, short = (goal(limits={"steps": n}) for n in (turns, turns - 1))
    run = play(tmp_path / "2", World(), enough, driver=driver)
    assert (outcome(run), run.run.view.turn) == (Outcome.READY, turns)
    assert outcome(play(tmp_path / "3", World(), short, driver=driver)) is Outcome.LIMIT
    given_up = Says([LOOK], [call("give_up", cause="no")])
    run = play(tmp_path / "4", World(), goal(limits={"steps": 2}), brain=given_up, driver=driver)
    assert outcome(run) is Outcome.NOT_REACHED


@DRIVERS
@pytest.mark.parametrize("limit", [{"tokens": 3000}, {"usd": 1.5}], ids=str)
def test_42_a_last_reply_that_costs_the_rest_is_carried_out(
    tmp_path: Path, driver: Any, limit: dict[str, float]
) -> None:
    brain = Costs([LOOK], [OTHER], [call("give_up", cause="found it")])
    run = play(tmp_path, World(), goal(limits=limit), brain=brain, driver=driver)
    assert (outcome(run), report(run)["cause"]) == (Outcome.NOT_REACHED, "found it")


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


@DRIVERS
def test_47_the_time_that_a_person_takes_to_answer_does_not_count(
    tmp_path: Path, driver: Any
) -> None:
    world = World()

    def slow(asked: list[ApprovalAsked]) -> Mapping[str, Any]:
        world.now += 3000.0
        return say("yes")(asked) or {}

    wanted = goal(limits={"minutes": 10})
    more: dict[str, Any] = {"mode": "supervised", "interactive": True, "answer": slow}
    run = play(tmp_path, world, wanted, driver=driver, **more)
    assert outcome(run) is Outcome.READY
    assert run.run.view.t > 2 * 3000.0, "it was asked twice at least"
    same_again(run)


# --- an alarm before each limit

NEAR: dict[str, tuple[dict[str, float], Callable[[View], float]]] = {
    "steps": ({"steps": 10}, lambda view: view.turn / 10),
    "minutes": ({"minutes": 10}, lambda view: view.t / 600),
    "tokens": ({"tokens": 10_000}, lambda view: view.asked.usage.tokens / 10_000),
    "usd": ({"usd": 5.0}, lambda view: view.asked.usage.cost_usd / 5.0),
}


def later(world: World) -> Iterator[Callable[[View], list[ToolCall]]]:
    for turn in LOOKS:

        def one(view: View, turn: list[ToolCall] = turn) -> list[ToolCall]:
            world.now += 60.0
            return turn

        yield one


@DRIVERS
@pytest.mark.parametrize("name", NEAR)
def test_each_limit_is_told_before_it_ends_the_run(tmp_path: Path, name: str, driver: Any) -> None:
    limits, share = NEAR[name]
    world = World()
    others = {"steps": 200, "minutes": 9999, "tokens": 10**9}
    wanted = goal(limits=others | limits)
    run = play(tmp_path, world, wanted, brain=Costs(*later(world)), driver=driver)
    assert limit_of(run) == name
    ((said, turn),) = hinted(run)
    assert (said, turn) == (name, run.run.view.turn - 2)
    hint = events(run, "hint")[0]
    view = View(event for event in run.transcript.events if event.seq < hint.seq)
    assert ALARM <= share(view) < 1
    assert "give_up with what was found" in hint.text
    same_again(run)


@pytest.mark.parametrize(("steps", "turn"), [(1, 0), (2, 1), (5, 4), (10, 8), (60, 48)])
def test_the_last_turn_is_told_of_at_the_latest(tmp_path: Path, steps: int, turn: int) -> None:
    run = play(tmp_path, World(), goal(limits={"steps": steps}), brain=Says(*LOOKS), driver=loop)
    assert limit_of(run) == "steps"
    assert hinted(run) == [("steps", turn)]


def test_no_hint_is_given_twice_where_a_run_broke_off_behind_it(tmp_path: Path) -> None:
    run = play(tmp_path, World(), goal(limits={"steps": 5}), brain=Says(*LOOKS), driver=loop)
    hint = events(run, "hint")[0]
    behind = View(event for event in run.transcript.events if event.seq <= hint.seq)
    assert hints(behind, behind.t) == []


# --- rows 43 and 44: all that is paid is charged


@DRIVERS
@pytest.mark.parametrize("failing", [0, 1, 3])
def test_43_attempts_that_failed_are_charged(tmp_path: Path, driver: Any, failing: int) -> None:
    usage = Usage(prompt_tokens=900, completion_tokens=100, cost_usd=0.25)
    brain = Costs(*LOOKS, usage=usage, failing=failing)
    wanted = goal(limits={"steps": 200, "tokens": 12_000})
    run = play(tmp_path, World(), wanted, brain=brain, driver=driver)
    assert limit_of(run) == "tokens"
    assert run.run.view.turn == 12 // (1 + failing)
    assert run.run.view.asked.usage.cost_usd == 3.0
    assert not run.run.view.asked.usage.estimated
    same_again(run)


def test_43_replies_that_cannot_be_used_are_charged(tmp_path: Path) -> None:
    wrong = call("grep").model_copy(update={"problem": "its arguments are no JSON"})
    brain = Costs([wrong], [], [wrong, LOOK], *LOOKS, text="hm")
    run = play(tmp_path, World(), goal(limits={"tokens": 3000}), brain=brain)
    assert (limit_of(run), run.run.view.turn) == ("tokens", 3)


def test_44_an_estimate_is_charged_and_named_as_one(tmp_path: Path) -> None:
    brain = Costs(*LOOKS, usage=Usage(prompt_tokens=1234, estimated=True))
    run = play(tmp_path, World(), goal(limits={"tokens": 2400}), brain=brain)
    assert (limit_of(run), run.run.view.turn) == ("tokens", 2)
    assert events(run, "limit")[0].text == "about 2,468 tokens were used; the limit is 2,400"


# --- row 45: nothing goes on beyond the cap


@DRIVERS
def test_45_what_is_queued_when_the_time_is_over_is_not_run(tmp_path: Path, driver: Any) -> None:
    world = World()

    def slow(name: str, when: str) -> None:
        world.now += 100.0 if name == "host" and when == "before" else 0.0

    world.trap = slow
    many = [look for (look,) in LOOKS[:9]]
    wanted = goal(limits={"minutes": 10})
    run = play(tmp_path, world, wanted, brain=Says([*many, START]), driver=driver)
    assert limit_of(run) == "minutes"
    statuses = [run.run.view.calls[name].status for name in run.run.view.turns[1]]
    done = statuses.count(CallStatus.OK)
    assert 4 <= done < 7
    assert statuses[done:] == [CallStatus.CANCELLED] * (10 - done)
    assert run.run.view.calls["t1.10"].message == "not run: the run ended"
    assert world.done == []
    same_again(run)


# --- replies that ask for nothing


def test_silence(tmp_path: Path) -> None:
    run = play(tmp_path, World(), goal(limits={"steps": 30}), brain=Says(*([[]] * 9)))
    assert limit_of(run) == "silence"
    assert run.run.view.turn == SILENT_TURNS - 1  # empty: one nudge, then the end
    assert hinted(run) == [("silence", 1)]


@DRIVERS
def test_words_without_a_call_are_told_of_and_end(tmp_path: Path, driver: Any) -> None:
    brain = Costs(*([[]] * 9), text="I think about it.")
    run = play(tmp_path, World(), goal(limits={"steps": 30}), brain=brain, driver=driver)
    assert limit_of(run) == "silence"
    assert run.run.view.turn == SILENT_TURNS
    assert hinted(run) == [("silence", 1), ("silence", 2)]
    same_again(run)


def test_a_word_now_and_then_is_no_silence(tmp_path: Path) -> None:
    turns: list[list[ToolCall]] = [[], [], [LOOK], [], [], [OTHER], [], []]
    brain = Costs(*turns, text="Hm.")
    run = play(tmp_path, World(), goal(limits={"steps": 30}), brain=brain)
    assert outcome(run) is Outcome.NOT_REACHED
    assert events(run, "limit") == []
