"""The control tool ``wait``: time that passes, as the run counts it, and can be ended."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from agent.engine import drive, loop
from agent.fold import View
from agent.replay import replay
from agent.session import Session
from agent.values import CallStatus, Outcome, ToolCall
from tests.lab.world_packages import VENV
from tests.lab.world_runs import (
    Says,
    begin,
    call,
    events,
    goal,
    nobody,
    outcome,
    play,
    result_of,
    take_up,
)
from tests.lab.worlds import MODEL, World

DRIVERS = pytest.mark.parametrize("driver", [loop, drive], ids=["loop", "graph"])


def waited(run: Session) -> list[float]:
    ends = [event for event in events(run, "call_ended") if event.tool == "wait"]
    assert all(event.status is CallStatus.OK for event in ends)
    return [event.observation["waited_s"] for event in ends]


@DRIVERS
def test_it_lets_time_pass_in_short_pieces_and_tells_what_is_left(
    tmp_path: Path, driver: Any
) -> None:
    world = World()
    begun = begin(tmp_path, world, brain=Says([call("wait", seconds=3, reason="it loads")]))
    told: list[tuple[str, str, str]] = []
    begun.run.watchers.append(lambda live: told.append((live.call_id, live.what, live.text)))
    pieces: list[float] = []

    def sleep(seconds: float) -> None:
        pieces.append(seconds)
        world.sleep(seconds)

    begun.run.sleep = sleep
    before = world.now
    driver(begun.run, nobody)
    begun.close()
    assert pieces == [1.0, 1.0, 1.0]
    words = [f"waiting, {left} s left" for left in (3, 2, 1)]
    assert [row for row in told if row[1] == "progress"] == [
        ("t1.1", "progress", text) for text in words
    ]
    assert world.now - before >= 3
    assert waited(begun) == [3.0]
    assert events(begun, "call_ended")[-2].message == "waited 3 s"


@pytest.mark.parametrize("seconds", [0, -1, 601, 1.5, "soon"])
def test_it_is_bounded(tmp_path: Path, seconds: Any) -> None:
    run = play(tmp_path, World(), brain=Says([call("wait", seconds=seconds)]))
    (record,) = [item for item in run.run.view.calls.values() if item.call.tool == "wait"]
    assert record.status is CallStatus.INVALID
    assert "seconds" in record.message


@DRIVERS
def test_it_ends_with_the_run_s_time(tmp_path: Path, driver: Any) -> None:
    world = World()
    waits = [[call("wait", seconds=600)], [call("wait", seconds=600)]]
    wanted = goal(limits={"minutes": 15})
    run = play(tmp_path, world, wanted, brain=Says(*waits, *waits), driver=driver)
    assert outcome(run) is Outcome.LIMIT
    first, second = waited(run)
    assert (first, round(second)) == (600.0, 300)
    assert 900 <= run.run.view.t < 901
    ends = [event.message for event in events(run, "call_ended") if event.tool == "wait"]
    assert ends[1].endswith("s; the run has no more time")
    for other in (loop, drive):
        assert replay(run.folder.transcript, other).difference is None


def test_ctrl_c_ends_it_and_the_run_is_closed(tmp_path: Path) -> None:
    world = World()
    begun = begin(tmp_path, world, brain=Says([call("wait", seconds=600)]))
    left = [2.0]

    def sleep(seconds: float) -> None:
        left[0] -= seconds
        if left[0] < 0:
            raise KeyboardInterrupt
        world.sleep(seconds)

    begun.run.sleep = sleep
    assert drive(begun.run, nobody) is Outcome.INTERRUPTED
    begun.close()
    (ended,) = [event for event in events(begun, "call_ended") if event.tool == "wait"]
    assert ended.status is CallStatus.UNKNOWN
    assert ended.message == "interrupted while it was under way"
    assert replay(begun.folder.transcript).difference is None


@DRIVERS
def test_a_replay_does_not_wait(tmp_path: Path, driver: Any) -> None:
    turns = [[call("wait", seconds=n)] for n in (600, 500, 1)]
    run = play(tmp_path, World(), brain=Says(*turns))
    assert waited(run) == [600.0, 500.0, 1.0]
    began = time.monotonic()
    done = replay(run.folder.transcript, driver)
    assert time.monotonic() - began < 60
    assert (done.difference, done.compared) == (None, done.total)


@DRIVERS
def test_a_wait_that_broke_off_is_done_again_and_has_one_result(
    tmp_path: Path, driver: Any
) -> None:
    world = World()
    brain = Says([call("wait", seconds=30)])
    begun = begin(tmp_path, world, brain=brain)

    class Died(BaseException):
        """Our own process is gone."""

    def die(seconds: float) -> None:
        raise Died

    begun.run.sleep = die
    with pytest.raises(Died):
        driver(begun.run, nobody)
    begun.close()
    again = take_up(begun.folder, world, brain)
    assert driver(again.run, nobody) is Outcome.NOT_REACHED
    again.close()
    assert waited(again) == [30.0]
    assert len(events(again, "call_started")) - len(events(again, "call_sampled")) == 1
    assert replay(begun.folder.transcript, driver).difference is None


def test_that_time_has_passed_is_no_evidence(tmp_path: Path) -> None:
    look = call("config_probe", python=f"{VENV}/bin/python", model=MODEL)

    def diagnose(view: View) -> list[ToolCall]:
        cited = [result_of(view, name) for name in ("t1.1", "t1.2")]
        args: dict[str, Any] = {"kind": "unknown", "cause": "too old", "check": "config_parses"}
        return [call("record_diagnosis", **args, evidence=[item]) for item in cited]

    run = play(tmp_path, World(), brain=Says([look, call("wait", seconds=5)], diagnose))
    statuses = [run.run.view.calls[f"t2.{n}"].status for n in (1, 2)]
    assert statuses == [CallStatus.OK, CallStatus.REFUSED]
    assert "is not the result of a call" in run.run.view.calls["t2.2"].message


def test_it_needs_no_purpose_and_nobody_is_asked(tmp_path: Path) -> None:
    brain = Says([call("wait", seconds=1)])
    run = play(tmp_path, World(), brain=brain, mode="read-only", on_ask="deny")
    assert waited(run) == [1.0]
    assert events(run, "approval_asked") == []
