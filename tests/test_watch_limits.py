"""A watch ends within its own limit and within the run's minutes, in the run's own time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.engine import drive, loop
from agent.replay import replay
from agent.values import CallStatus
from tests.lab.world_packages import VENV
from tests.lab.world_runs import Says, begin, call, events, goal, nobody, play
from tests.lab.worlds import World

DRIVERS = pytest.mark.parametrize("driver", [loop, drive], ids=["loop", "graph"])


def slow(load_s: float) -> World:
    world = World(load_s=load_s)
    world.versions["transformers"] = "5.24.0"
    return world


def the_watch(run: Any) -> Any:
    """Return the end of the first watch of a server."""
    return next(event for event in events(run, "call_ended") if event.tool == "watch_server")


@DRIVERS
@pytest.mark.parametrize("minutes", [1, 7])
def test_a_watch_ends_with_the_run_s_minutes(tmp_path: Path, driver: Any, minutes: int) -> None:
    run = play(tmp_path, slow(86_400), goal(limits={"minutes": minutes}), driver=driver)
    seen = the_watch(run)
    assert (seen.status, seen.observation["state"]) == (CallStatus.OK, "undecided")
    assert "undecided" in seen.message
    assert 60 * minutes <= seen.t < 60 * minutes + 1
    assert [event.name for event in events(run, "limit")] == ["minutes"]
    for other in (loop, drive):
        assert replay(run.folder.transcript, other).difference is None


@DRIVERS
@pytest.mark.parametrize("limit_s", [0.3, 20, 47])
def test_a_watch_ends_with_its_own_limit(tmp_path: Path, driver: Any, limit_s: float) -> None:
    world = slow(86_400)
    play(tmp_path / "before", world, goal(limits={"minutes": 1}))
    (job,) = world.jobs
    begun = begin(tmp_path, world, brain=Says())
    url = "http://127.0.0.1:8000/health"
    begun.run.brain = Says([call("watch_server", job=job, url=url, limit_s=limit_s)])
    driver(begun.run, nobody)
    begun.close()
    seen = the_watch(begun)
    assert seen.observation["state"] == "undecided"
    assert limit_s - 1 <= seen.duration_s <= limit_s + 0.5


@DRIVERS
def test_a_watch_of_any_job_ends_with_the_run_s_minutes(tmp_path: Path, driver: Any) -> None:
    world = slow(86_400)
    play(tmp_path / "before", world, goal(limits={"minutes": 1}))
    brain = Says([call("watch_job", job=job, limit_s=86_400) for job in world.jobs])
    begun = begin(tmp_path, world, goal(limits={"minutes": 5}), brain=brain)
    driver(begun.run, nobody)
    begun.close()
    seen = next(event for event in events(begun, "call_ended") if event.tool == "watch_job")
    assert (seen.status, seen.observation["state"]) == (CallStatus.OK, "running")
    assert 300 <= seen.t < 301
    assert replay(begun.folder.transcript).difference is None


def test_a_server_that_comes_up_at_the_last_moment_is_healthy(tmp_path: Path) -> None:
    run = play(tmp_path, slow(50), goal(limits={"minutes": 1}, allow={"paths": [VENV]}))
    assert the_watch(run).observation["state"] == "healthy"
