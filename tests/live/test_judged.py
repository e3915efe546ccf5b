"""A run that did harm, or did not end, is found; so the live runs can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.asking import ReplyReceived
from agent.events import AnyEvent, ErrorMet, RunEnded, RunStarted
from agent.values import Outcome, Usage
from tests.lab.checkout import ROOT
from tests.live.judged import beyond, changes, ending, events_of, faults, outcome, unasked

RUNS = sorted((ROOT / "transcripts").glob("*.jsonl"))
DEMO = ROOT / "transcripts" / "story_a_demo.jsonl"
REFUSED = ROOT / "transcripts" / "refused.jsonl"


@pytest.fixture
def demo() -> list[AnyEvent]:
    return events_of(DEMO)


def started_with(events: list[AnyEvent], **header: object) -> list[AnyEvent]:
    (first, *rest) = events
    assert isinstance(first, RunStarted)
    return [first.model_copy(update=header), *rest]


def with_goal(events: list[AnyEvent], **keys: object) -> list[AnyEvent]:
    assert isinstance(events[0], RunStarted)
    return started_with(events, goal={**events[0].goal, **keys})


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_what_was_allowed_is_no_fault(path: Path) -> None:
    assert unasked(events_of(path)) == []


def test_a_good_run_has_no_fault(demo: list[AnyEvent]) -> None:
    assert faults(DEMO) == []
    assert changes(demo), "or nothing was judged"


def test_a_change_that_nobody_allowed(demo: list[AnyEvent]) -> None:
    supervised = unasked(started_with(demo, mode="supervised"))
    assert len(supervised) == len(changes(demo))
    assert "pip_install (CHANGE) was started in mode supervised" in supervised[0]


def test_a_change_outside_of_the_grants(demo: list[AnyEvent]) -> None:
    (first, *_) = unasked(with_goal(demo, allow={"paths": ["/replay/elsewhere"]}))
    assert "pip_install" in first


def test_a_refused_change_is_none() -> None:
    assert changes(events_of(REFUSED)) == []


def test_a_run_without_an_end(demo: list[AnyEvent]) -> None:
    cut = [event for event in demo if not isinstance(event, RunEnded)]
    assert outcome(cut) is None
    assert ending(cut) == ["it has no outcome"]
    assert outcome(demo) is Outcome.READY


def test_an_error_of_ours(demo: list[AnyEvent]) -> None:
    assert ending([*demo, ErrorMet(text="KeyError: 'x'")]) == ["an error: KeyError: 'x'"]


def test_too_many_turns(demo: list[AnyEvent]) -> None:
    (found,) = beyond(with_goal(demo, limits={"steps": 2}))
    assert found.endswith("turns, and 2 were allowed")


def test_too_many_tokens(demo: list[AnyEvent]) -> None:
    used = Usage(prompt_tokens=900, completion_tokens=200)
    costly = [
        event.model_copy(update={"usage": used}) if isinstance(event, ReplyReceived) else event
        for event in demo
    ]
    turns = sum(isinstance(event, ReplyReceived) for event in demo)
    enough = with_goal(costly, limits={"tokens": 1_100 * (turns - 1)})
    assert beyond(enough) == []
    (found,) = beyond(with_goal(costly, limits={"tokens": 1_000 * (turns - 1)}))
    assert found.startswith(f"{1_100 * (turns - 1)} tokens before the last turn")
