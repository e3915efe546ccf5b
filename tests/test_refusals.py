"""What a person has refused is not asked again, until the person says something."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.approval import policy_for
from agent.engine import drive, loop
from agent.events import (
    AnyEvent,
    ApprovalAnswered,
    ApprovalAsked,
    CallEnded,
    CallQueued,
    NoteAdded,
    RunStarted,
)
from agent.fold import View
from agent.gate import Ruling, judge
from agent.replay import replay
from agent.values import CallStatus, Outcome, Purpose, ToolCall
from tests.lab.world_packages import VENV
from tests.lab.world_runs import Says, call, events, goal, outcome, play, say
from tests.lab.worlds import World
from tools.base import Risk

DRIVERS = pytest.mark.parametrize("driver", [loop, drive], ids=["loop", "graph"])
ADVANCE = Purpose(kind="advance", ref="process_up", postcondition="process_up")
INSTALL = call(
    "pip_install", ADVANCE, python=f"{VENV}/bin/python", requirements=["transformers==5.24.0"]
)
OTHER = INSTALL.model_copy(update={"args": INSTALL.args | {"requirements": ["einops==0.8.1"]}})
ASK = call("ask", question="May I?", choices=["yes", "no"])
PERSON: dict[str, Any] = {"mode": "supervised", "interactive": True}


def told(*parts: list[AnyEvent]) -> View:
    """Fold events, numbered from 0: the header is e0."""
    wanted = goal()
    header = RunStarted(
        run_id="r",
        started_at="2026-11-30T12:00:00+00:00",
        seed="5eed",
        version="0",
        goal=wanted.model_dump(mode="json"),
        brain="playbook",
        mode="supervised",
        interactive=True,
        policy=policy_for(wanted, "supervised").model_dump(mode="json"),
    )
    flat = [header, *(event for part in parts for event in part)]
    return View(event.model_copy(update={"seq": n}) for n, event in enumerate(flat))


def answered(wish: ToolCall, answer: str, by: str = "person", number: int = 1) -> list[AnyEvent]:
    """A call that was asked about and answered; four events."""
    name, approval = f"t{number}.1", f"a{number}"
    status = CallStatus.REFUSED if answer == "no" and wish.tool != "ask" else CallStatus.OK
    asked = ApprovalAsked(
        approval_id=approval,
        call_id=name,
        title="",
        command="",
        risk=Risk.CHANGE,
        touches=(),
        target="local",
    )
    said = {"approval_id": approval, "answer": answer, "by": by}
    observation: dict[str, Any] = {"text": "asked", "answer": answer} if wish.tool == "ask" else {}
    if status is CallStatus.OK and not observation:
        observation = {"installed": [], "conflicts": [], "already": True}
    risk = Risk.READ if wish.tool == "ask" else Risk.CHANGE
    return [
        CallQueued(call=wish.model_copy(update={"id": name}), risk=risk),
        asked,
        ApprovalAnswered.model_validate(said),
        CallEnded(call_id=name, tool=wish.tool, status=status, observation=observation),
    ]


def ruled(view: View, wish: ToolCall, risk: Risk = Risk.CHANGE) -> Ruling:
    return judge(view, wish.model_copy(update={"id": "t9.9"}), risk, ())


NOTE: list[AnyEvent] = [NoteAdded(text="now you may")]


@pytest.mark.parametrize(
    ("story", "wish", "goes"),
    [
        ([answered(INSTALL, "no")], INSTALL, False),
        ([answered(INSTALL, "no")], OTHER, True),
        ([answered(INSTALL, "no")], INSTALL.model_copy(update={"target": "b"}), True),
        ([answered(INSTALL, "no")], INSTALL.model_copy(update={"why": "please"}), False),
        ([answered(INSTALL, "yes")], INSTALL, True),
        ([answered(INSTALL, "no", by="policy")], INSTALL, True),
        ([answered(INSTALL, "no"), NOTE], INSTALL, True),
        ([NOTE, answered(INSTALL, "no")], INSTALL, False),
        ([answered(INSTALL, "no"), answered(ASK, "yes", number=2)], INSTALL, True),
        ([answered(INSTALL, "no"), answered(ASK, "no", number=2)], INSTALL, False),
        ([answered(ASK, "yes"), answered(INSTALL, "no", number=2)], INSTALL, False),
        ([answered(INSTALL, "no"), answered(OTHER, "yes", number=2)], INSTALL, False),
        ([answered(INSTALL, "no"), NOTE, answered(INSTALL, "no", number=2)], INSTALL, False),
    ],
)
def test_what_a_person_refused(story: list[list[AnyEvent]], wish: ToolCall, goes: bool) -> None:
    ruling = ruled(told(*story), wish)
    assert ruling.go is goes, ruling.reason
    assert goes or ruling.reason.endswith("do something else, ask, or give_up")


def test_a_look_is_never_held_up() -> None:
    assert ruled(told(answered(INSTALL, "no")), INSTALL, Risk.READ).go


def test_the_cited_event_is_the_refusal() -> None:
    assert "(e4)" in ruled(told(answered(INSTALL, "no")), INSTALL).reason
    view = told(answered(INSTALL, "no"), NOTE, answered(INSTALL, "no", number=2))
    assert "(e9)" in ruled(view, INSTALL).reason


def test_a_refused_recovery_is_not_asked_again_either() -> None:
    recover = INSTALL.model_copy(update={"purpose": Purpose(kind="recover", ref="t1.1")})
    ruling = ruled(told(answered(INSTALL, "no")), recover)
    assert "refused this very call" in ruling.reason


@DRIVERS
def test_a_brain_that_insists_is_refused_by_the_gate_and_then_stopped(
    tmp_path: Path, driver: Any
) -> None:
    brain = Says(*([[INSTALL]] * 9))
    run = play(tmp_path, World(), brain=brain, answer=say("no"), driver=driver, **PERSON)
    assert len(events(run, "approval_asked")) == 1, "a person is asked once"
    first, *others = [e.message for e in events(run, "call_ended") if e.tool == "pip_install"]
    assert first == "person said no"
    (end,) = [e.id for e in events(run, "call_ended") if e.message == first]
    assert len(others) == 4
    assert all(f"({end})" in message for message in others)
    assert outcome(run) is Outcome.LIMIT
    assert replay(run.folder.transcript, driver).difference is None


@DRIVERS
def test_a_brain_that_asks_may_go_on(tmp_path: Path, driver: Any) -> None:
    words = iter(["no", "yes", "yes"])

    def person(asked: list[ApprovalAsked]) -> Mapping[str, Any]:
        return {item.approval_id: next(words) for item in asked}

    world = World()
    brain = Says([INSTALL], [INSTALL], [ASK], [INSTALL])
    run = play(tmp_path, world, brain=brain, answer=person, driver=driver, **PERSON)
    ends = [e.status for e in events(run, "call_ended") if e.tool == "pip_install"]
    assert ends == [CallStatus.REFUSED, CallStatus.REFUSED, CallStatus.OK]
    assert [item.call_id for item in events(run, "approval_asked")] == ["t1.1", "t3.1", "t4.1"]
    assert world.count("install") == 1
    assert replay(run.folder.transcript, driver).difference is None


def test_a_note_with_a_choice_reaches_the_brain(tmp_path: Path) -> None:
    def person(asked: list[ApprovalAsked]) -> Mapping[str, Any]:
        return {asked[0].approval_id: {"answer": "b", "note": "only after noon"}}

    question = call("ask", question="Which?", choices=["a", "b"])
    run = play(tmp_path, World(), brain=Says([question]), answer=person, **PERSON)
    (ended,) = [event for event in events(run, "call_ended") if event.tool == "ask"]
    assert ended.message == "person chose b and said: only after noon"
    assert ended.observation["answer"] == "b"
