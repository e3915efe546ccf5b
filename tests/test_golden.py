"""Recorded runs play again: today's code comes to what they came to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.engine import Answer, drive, loop
from agent.events import ApprovalAsked, CallEnded, RunEnded, RunStarted
from agent.replay import replay
from agent.run import Run
from agent.transcript import read
from agent.values import CallStatus, Outcome
from tests.lab.checkout import ROOT
from tools.docker_run import PROBE_ENV

TRANSCRIPTS = sorted((ROOT / "transcripts").glob("*.jsonl"))


def graph(run: Run, answer: Answer) -> Outcome:
    return drive(run, answer)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
@pytest.mark.parametrize("driver", [loop, graph], ids=["loop", "graph"])
def test_a_recorded_run_plays_again(path: Path, driver: Callable[[Run, Answer], Outcome]) -> None:
    done = replay(path, driver)
    assert done.difference is None, done.difference
    assert done.compared == done.total > 20


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_recorded_run_is_whole_and_holds_no_place(path: Path) -> None:
    loaded = read(path)
    assert loaded.problems == ()
    assert isinstance(loaded.events[0], RunStarted)
    assert isinstance(loaded.events[-1], RunEnded)
    text = path.read_text(encoding="utf-8")
    for inside in PROBE_ENV.values():
        text = text.replace(f"={inside}", "=")  # a folder inside a container
    for place in (str(Path.home()), str(ROOT), "/opt/", "/tmp/"):  # noqa: S108
        assert place not in text


def test_the_recorded_story_a_is_whole() -> None:
    """Recorded beside another run, it may lack the service that was in the way."""
    path = ROOT / "transcripts" / "story_a_spark.jsonl"
    ended = [event for event in read(path).events if isinstance(event, CallEnded)]
    tools = [event.tool for event in ended if event.status is CallStatus.OK]
    assert tools.count("image_probe") == 3, "one container start for each image"
    wanted = ["trust_host_key", "fetch_config", "use_candidate", "build_image"]
    wanted += ["fetch_weights", "stop_container", "start_service", "chat_check"]
    assert [tool for tool in dict.fromkeys(tools) if tool in wanted] == wanted
    asked = [event for event in read(path).events if isinstance(event, ApprovalAsked)]
    assert len(asked) <= 8


def test_ready_and_honest_stops_are_both_there() -> None:
    outcomes = {path.stem: read(path).events[-1] for path in TRANSCRIPTS}
    kinds = {event.outcome for event in outcomes.values() if isinstance(event, RunEnded)}
    assert kinds >= {Outcome.READY, Outcome.NOT_REACHED}
