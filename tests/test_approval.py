"""Approvals in a run: who is asked, and what the answers do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.approval import Mode
from agent.approve import BadAnswer, heed
from agent.engine import drive
from agent.events import ApprovalAsked, NoteAdded
from agent.fold import View
from agent.values import CallStatus, Outcome, Purpose, ToolCall
from tests.lab.world_packages import VENV
from tests.lab.world_runs import Says, begin, call, events, nobody, outcome, play, say
from tests.lab.world_runs import take_up as taken_up
from tests.lab.worlds import World
from tools.base import Risk, Subject


def test_supervised_asks_for_each_change_and_says_what_it_is(tmp_path: Path) -> None:
    world = World()
    asked: list[ApprovalAsked] = []

    def yes(items: list[ApprovalAsked]) -> Mapping[str, Any]:
        asked.extend(items)
        return {item.approval_id: "yes" for item in items}

    run = play(tmp_path, world, mode="supervised", interactive=True, answer=yes)
    assert outcome(run) is Outcome.READY
    assert [item.approval_id for item in asked] == ["a1", "a2"]
    install, start = asked
    assert "pip" in install.command
    assert "transformers==5.24.0" in install.command
    assert install.touches == (Subject(kind="environment", key=VENV),)
    assert install.undo
    assert install.why
    assert "serve" in start.command
    assert start.risk is Risk.CHANGE
    assert world.count("install") == world.count("start") == 1


def test_without_a_person_the_run_parks_and_goes_on_when_it_is_answered(tmp_path: Path) -> None:
    world = World()
    parked = play(tmp_path, world, mode="supervised")
    assert world.done == []
    assert events(parked, "run_ended") == []
    (pending,) = parked.run.view.pending_approvals
    assert pending.approval_id == "a1"

    taken = taken_up(parked.folder, world)
    assert drive(taken.run, nobody, taken.checkpoint) is Outcome.PARKED, "asked again, not done"
    heed(taken.run, {"a1": {"answer": "yes", "note": "go on"}})
    assert drive(taken.run, nobody, taken.checkpoint) is Outcome.PARKED
    taken.close()
    assert world.done == ["install transformers==5.24.0"]

    last = taken_up(parked.folder, world)
    heed(last.run, {"a2": "yes"})
    assert drive(last.run, nobody, last.checkpoint) is Outcome.READY
    last.close()
    assert world.count("install") == world.count("start") == 1
    assert [event.note for event in events(last, "approval_answered")] == ["go on", ""]


def test_yes_by_flag_answers_changes(tmp_path: Path) -> None:
    run = play(tmp_path, World(), mode="supervised", yes=True)
    assert outcome(run) is Outcome.READY
    assert {event.by for event in events(run, "approval_answered")} == {"flag"}


SHELL = call("shell", Purpose(kind="advance", ref="chat", postcondition="chat"), command="ls")
QUESTION = call("ask", question="Which one?", choices=["left", "right"])


@pytest.mark.parametrize("mode", ["supervised", "auto"])
def test_yes_by_flag_answers_neither_what_may_lose_data_nor_questions(
    tmp_path: Path, mode: Mode
) -> None:
    for place, made in (("shell", SHELL), ("ask", QUESTION)):
        world = World()
        run = play(tmp_path / place, world, mode=mode, yes=True, brain=Says([made]))
        assert len(run.run.view.pending_approvals) == 1
        assert "bash" not in world.asked


def test_on_ask_deny_refuses_what_would_be_asked(tmp_path: Path) -> None:
    world = World()
    run = play(tmp_path, world, mode="supervised", on_ask="deny")
    assert outcome(run) is Outcome.NOT_REACHED
    assert world.done == []
    (answer,) = events(run, "approval_answered")
    assert (answer.answer, answer.by) == ("no", "policy")
    (ended,) = events(run, "run_ended")
    assert "does not know the model type" in ended.report["cause"]
    assert "refused" in ended.report["advice"]


def test_on_ask_deny_refuses_questions_too(tmp_path: Path) -> None:
    run = play(tmp_path, World(), on_ask="deny", brain=Says([QUESTION]))
    assert outcome(run) is Outcome.NOT_REACHED
    asked = run.run.view.calls["t1.1"]
    assert asked.status is CallStatus.REFUSED
    assert "nobody can be asked" in asked.message


def test_on_ask_deny_leaves_questions_to_a_person_who_is_there(tmp_path: Path) -> None:
    more: dict[str, Any] = {"mode": "supervised", "on_ask": "deny", "interactive": True}
    run = play(tmp_path, World(), answer=say("yes"), **more)
    assert outcome(run) is Outcome.READY


def test_read_only_changes_nothing_and_asks_nothing(tmp_path: Path) -> None:
    world = World()
    run = play(tmp_path, world, mode="read-only", yes=True)
    assert outcome(run) is Outcome.NOT_REACHED
    assert world.done == []
    assert events(run, "approval_asked") == []


def test_no_is_heard_and_not_asked_again(tmp_path: Path) -> None:
    world = World()
    no: dict[str, Any] = {"answer": "no", "note": "not today"}
    asker: dict[str, Any] = {"mode": "supervised", "interactive": True}
    run = play(tmp_path, world, answer=lambda asked: {asked[0].approval_id: no}, **asker)
    assert outcome(run) is Outcome.NOT_REACHED
    assert world.done == []
    assert len(events(run, "approval_asked")) == 1
    refused = next(c for c in run.run.view.calls.values() if c.call.tool == "pip_install")
    assert refused.status is CallStatus.REFUSED
    assert refused.message == "person said no: not today"


def test_stop_ends_the_run_and_every_call(tmp_path: Path) -> None:
    world = World()
    run = play(tmp_path, world, mode="supervised", interactive=True, answer=say("stop"))
    assert outcome(run) is Outcome.INTERRUPTED
    assert world.done == []
    view = run.run.view
    assert all(record.status is not None for record in view.calls.values())
    left = [view.calls[name] for name in view.turns[view.turn]]
    assert [record.status for record in left[1:]] == [CallStatus.CANCELLED] * 2


def test_a_question_takes_its_own_choices(tmp_path: Path) -> None:
    run = play(tmp_path, World(), interactive=True, brain=Says([QUESTION]), answer=say("right"))
    asked = run.run.view.calls["t1.1"]
    assert asked.status is CallStatus.OK
    assert asked.observation["answer"] == "right"
    assert events(run, "approval_asked")[0].title == "Which one?"


@pytest.mark.parametrize(
    "answers",
    [
        {"a9": "yes"},
        {"": "yes"},
        {"a1": "perhaps"},
        {"a1": ""},
        {"a1": "left"},
        {"a1": {"note": "yes"}},
        {"a1": "yes", "a2": "yes"},
    ],
)
def test_answers_to_nothing_are_refused_and_leave_no_trace(
    tmp_path: Path, answers: dict[str, Any]
) -> None:
    world = World()
    parked = play(tmp_path, world, mode="supervised")
    taken = taken_up(parked.folder, world)
    before = len(taken.transcript.events)
    with pytest.raises(BadAnswer):
        heed(taken.run, answers)
    assert len(taken.transcript.events) == before
    heed(taken.run, {"a1": "yes"})
    with pytest.raises(BadAnswer, match="a1 is not waiting"):
        heed(taken.run, {"a1": "yes"})
    taken.close()


def test_two_open_approvals_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    begun = begin(tmp_path, World(), mode="supervised", brain=Says([QUESTION, QUESTION]))
    drive(begun.run, nobody)
    (first,) = begun.run.view.pending_approvals
    second = first.model_copy(update={"approval_id": "a2", "call_id": "t1.2"})
    begun.run.record(second)
    assert [item.approval_id for item in begun.run.view.pending_approvals] == ["a1", "a2"]
    heed(begun.run, {"a2": "right"})
    assert [item.approval_id for item in begun.run.view.pending_approvals] == ["a1"]
    heed(begun.run, {"a1": "left"})
    drive(begun.run, nobody)
    begun.close()
    answers = [begun.run.view.calls[name].observation["answer"] for name in ("t1.1", "t1.2")]
    assert answers == ["left", "right"]
    assert len(events(begun, "approval_asked")) == 2


def test_a_note_of_the_person_is_a_purpose_and_no_yes(tmp_path: Path) -> None:
    def wish(view: View) -> list[ToolCall]:
        purpose = Purpose(kind="requested", ref=next(iter(view.notes)))
        return [call("pip_install", purpose, python=f"{VENV}/bin/python", requirements=["x==1"])]

    world = World()
    begun = begin(tmp_path, world, mode="auto", brain=Says(wish))
    begun.run.record(NoteAdded(text="take your time"))
    assert drive(begun.run, nobody) is Outcome.PARKED
    begun.close()
    (asked,) = begun.run.view.pending_approvals
    assert asked.reason == "it is not what the playbook would do here"
    assert world.done == []
