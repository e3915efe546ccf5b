"""How acting ends early: by Ctrl-C anywhere, by a host that is lost, by a server that stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.engine import drive, stop_servers
from agent.values import CallStatus, Outcome
from tests.lab.world_runs import (
    begin,
    events,
    goal,
    nobody,
    outcome,
    play,
    say,
    take_up,
)
from tests.lab.worlds import World
from tests.test_act import results_by_call, statuses
from tools.command import Ending, Result
from tools.errors import ConnectionFailed


def interrupt(nth: int, when: str) -> Callable[[str, str], None]:
    """Return a trap that is a Ctrl-C at the nth command."""
    met = Counter[str]()

    def trap(name: str, now: str) -> None:
        met[now] += 1
        if now == when and met[now] == nth:
            raise KeyboardInterrupt

    return trap


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("on_interrupt", ["stop", "keep"])
def test_ctrl_c_in_any_command_closes_the_books(
    tmp_path: Path, when: str, on_interrupt: str
) -> None:
    met = Counter[bool]()
    for nth in range(1, 20, 2):
        world = World(load_s=2.0, trap=interrupt(nth, when))
        run = play(tmp_path / str(nth), world, goal(on_interrupt=on_interrupt))
        assert outcome(run) is Outcome.INTERRUPTED
        ended = events(run, "run_ended")
        assert len(ended) == 1
        assert ended[0].exit_code == 130
        assert set(results_by_call(run).values()) == {1}
        running = {job.name for job in world.jobs.values() if job.runs(world.now)}
        started = [name for name in run.run.view.turns.get(7, ()) if world.count("start")]
        met[bool(running)] += 1
        assert running <= set(ended[0].report["running"]), "what is kept is named"
        assert not running or on_interrupt == "keep"
        assert started or not running
    assert met[True] == (0 if on_interrupt == "stop" else met[True])
    assert on_interrupt == "stop" or met[True] > 3


@pytest.mark.parametrize("where", ["brain", "answer", "sleep"])
def test_ctrl_c_between_commands(tmp_path: Path, where: str) -> None:
    def stop(*_: object) -> Any:
        raise KeyboardInterrupt

    world = World(load_s=60.0)
    begun = begin(tmp_path, world, mode="supervised", interactive=True)
    if where == "brain":
        begun.run.brain.reply = stop  # type: ignore[method-assign, assignment]
    if where == "sleep":
        begun.run.sleep = stop
    answered = drive(begun.run, stop if where == "answer" else say("yes"), begun.checkpoint)
    begun.close()
    assert answered is outcome(begun) is Outcome.INTERRUPTED
    assert set(results_by_call(begun).values()) == {1}
    assert len(events(begun, "run_ended")) == 1


def test_ctrl_c_after_the_end_changes_nothing(tmp_path: Path) -> None:
    begun = begin(tmp_path, World())

    def stop(event: Any) -> None:
        if event.type == "run_ended":
            raise KeyboardInterrupt

    begun.transcript.subscribe(stop)
    drive(begun.run, nobody, begun.checkpoint)
    begun.close()
    assert [event.outcome for event in events(begun, "run_ended")] == [Outcome.READY]


def test_a_lost_host_ends_the_run_with_its_name(tmp_path: Path) -> None:
    def lost(name: str, when: str) -> None:
        if name == "pip install" and when == "after":
            raise ConnectionFailed("local", "no route to host")

    world = World(trap=lost)
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.UNREACHABLE
    assert statuses(run, 3)[1:] == [CallStatus.UNKNOWN, CallStatus.CANCELLED]
    assert events(run, "run_ended")[0].report["cause"] == "local: no route to host"
    assert world.count("install") == 1


def test_what_cannot_be_stopped_is_told(tmp_path: Path) -> None:
    def survives(name: str, when: str) -> Result | None:
        if name != "job_stop" or when != "after":
            return None
        marker = mark[0]
        text = f"{marker} outcome=survived\n{marker} pid=1\n{marker} end=1\n"
        return Result(Ending.EXITED, 0, stdout=text)

    world = World(load_s=0.2)
    run = begin(tmp_path, world)
    drive(run.run, nobody)
    (job,) = run.run.view.servers
    mark = [run.run.context(f"x{run.run.view.cursor}").marker]
    world.trap = survives
    assert stop_servers(run.run) == [job]
    assert list(run.run.view.may_run) == [job]
    world.trap = None
    assert stop_servers(run.run) == []
    assert stop_servers(run.run) == []
    assert world.count("stop") == 1
    run.close()


def test_an_interrupted_run_cannot_be_taken_up_as_if_it_went_on(tmp_path: Path) -> None:
    world = World(trap=interrupt(3, "before"))
    run = play(tmp_path, world)
    taken = take_up(run.folder, world)
    before = len(taken.transcript.events)
    assert drive(taken.run, nobody, taken.checkpoint) is Outcome.INTERRUPTED
    assert len(taken.transcript.events) == before
    taken.close()
