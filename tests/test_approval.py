"""Approvals: what the policy says, who is asked, and what the answers do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.approval import Mode, Policy, Word, decide, policy_for
from agent.approve import BadAnswer, heed
from agent.engine import drive
from agent.events import ApprovalAsked
from agent.goal import parse_goal
from agent.values import CallStatus, Outcome, Purpose, ToolCall
from tests.lab.world_packages import VENV
from tests.lab.world_runs import Says, begin, call, events, goal, nobody, outcome, play, say
from tests.lab.world_runs import take_up as taken_up
from tests.lab.worlds import World
from tools.base import Risk, Subject

CHANGE, READ, DESTROY = Risk.CHANGE, Risk.READ, Risk.DESTROY


def on(kind: str, key: str) -> Subject:
    return Subject(kind=kind, key=key)


def word(
    policy: Policy, tool: str, risk: Risk, *touches: Subject, always_asks: bool = False, **args: Any
) -> Word:
    made = ToolCall(id="t1.1", tool=tool, args=args)
    return decide(policy, made, risk, touches, always_asks=always_asks).word


@pytest.mark.parametrize("mode", ["read-only", "supervised", "auto"])
def test_looking_is_always_allowed_and_changes_are_not(mode: Mode) -> None:
    policy = policy_for(goal(), mode)
    environment = on("environment", VENV)
    changes = {"read-only": Word.DENY, "supervised": Word.ASK, "auto": Word.ALLOW}
    assert word(policy, "config_probe", READ, environment) is Word.ALLOW
    assert word(policy, "pip_install", CHANGE, environment) is changes[mode]
    destroys = Word.DENY if mode == "read-only" else Word.ASK
    assert word(policy, "shell", DESTROY, environment) is destroys
    assert word(policy, "ask", READ, always_asks=True) is Word.ASK


@pytest.mark.parametrize(
    ("path", "granted"),
    [
        ("/a/b", True),
        ("/a/b/", True),
        ("/a/b/c", True),
        ("/a/b/./c", True),
        ("/a/bc", False),
        ("/a", False),
        ("/", False),
        ("/a/b/../c", False),
        ("/a/b/..", False),
        ("/x/../a/b", False),
        ("a/b", False),
        ("//a/b", False),
        ("/A/b", False),
        ("~/a/b", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("kind", ["environment", "file", "model"])
def test_a_folder_is_granted_with_what_is_inside(kind: str, path: str, granted: bool) -> None:
    policy = Policy(mode="auto", paths=("/a/b",))
    wanted = Word.ALLOW if granted else Word.ASK
    assert word(policy, "pip_install", CHANGE, on(kind, path)) is wanted


def test_a_grant_holds_for_all_that_is_touched_or_not_at_all() -> None:
    policy = Policy(mode="auto", paths=("/a",), ports=("8000",))
    assert word(policy, "x", CHANGE, on("file", "/a/1"), on("port", "8000")) is Word.ALLOW
    assert word(policy, "x", CHANGE, on("file", "/a/1"), on("file", "/b")) is Word.ASK
    assert word(policy, "x", CHANGE, on("file", "/a/1"), on("service", "web")) is Word.ASK
    assert word(policy, "x", CHANGE, on("host", "host")) is Word.ASK
    assert word(policy, "x", CHANGE) is Word.ASK, "a change of nothing in particular"


@pytest.mark.parametrize(
    ("port", "granted"),
    [(8000, True), (8001, False), (8009, False), (8010, True), (8015, True), (8021, False)],
)
def test_ports_are_granted_by_number_and_range(port: int, granted: bool) -> None:
    policy = policy_for(goal(allow={"ports": ["8010-8020"]}), "auto")
    found = word(policy, "use_port", CHANGE, on("port", str(port)))
    assert found is (Word.ALLOW if granted else Word.ASK)


def test_a_command_of_ones_own_is_asked_about_however_much_is_granted() -> None:
    policy = Policy(mode="auto", paths=("/",), ports=("1-65535",))
    job = on("job", "anything")
    assert word(policy, "stop_job", CHANGE, job) is Word.ALLOW
    assert word(policy, "start_job", CHANGE, job, argv=["rm", "-r", "/home"]) is Word.ASK
    assert word(policy.model_copy(update={"jobs": False}), "stop_job", CHANGE, job) is Word.ASK


def test_gigabytes_are_asked_about_unless_they_are_allowed() -> None:
    environment = on("environment", VENV)
    wishes: dict[str, Any] = {"requirements": ["torch==2.13.0", "nvidia-cublas==13.0"]}
    policy = policy_for(goal(), "auto")
    assert word(policy, "pip_install", CHANGE, environment, **wishes) is Word.ASK
    allowed = policy_for(goal(allow={"paths": [VENV], "download_mb": 9000}), "auto")
    assert word(allowed, "pip_install", CHANGE, environment, **wishes) is Word.ALLOW


def test_relative_folders_of_a_goal_are_granted_where_they_are(tmp_path: Path) -> None:
    data = {"model": "m", "candidates": [{"venv": "../env"}], "allow": {"paths": ["../env"]}}
    wanted = parse_goal(data, base=tmp_path, where="test")
    environment = on("environment", wanted.candidates[0].venv)
    assert word(policy_for(wanted, "auto"), "pip_install", CHANGE, environment) is Word.ALLOW


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
    assert install.touches == (on("environment", VENV),)
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
