"""The gate: each rule with a call that passes and one that does not."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from agent.approval import policy_for
from agent.events import (
    AnyEvent,
    ApprovalAnswered,
    ApprovalAsked,
    CallEnded,
    CallQueued,
    CallStarted,
    DiagnosisRecorded,
    FixClosed,
    FixOpened,
    NoteAdded,
    RunStarted,
)
from agent.fold import View
from agent.gate import Ruling, evidence_ruling, judge
from agent.values import CallStatus, FixVerdict, Purpose, ToolCall
from tests.lab.world_packages import VENV
from tests.lab.world_runs import goal
from tests.lab.worlds import MODEL
from tools.base import Risk, Subject

ENVIRONMENT = Subject(kind="environment", key=VENV)
OTHER = Subject(kind="environment", key="/srv/other")
PORT = Subject(kind="port", key="8000")
OBSERVED: dict[str, dict[str, Any]] = {
    "config_probe": {"config_found": True},
    "pip_install": {"installed": ["einops==0.8.1"], "conflicts": [], "already": False},
}
FIX = Purpose(kind="fix", ref="d1")
ADVANCE = Purpose(kind="advance", ref="process_up", postcondition="process_up")


def header() -> RunStarted:
    wanted = goal()
    return RunStarted(
        run_id="r",
        started_at="2026-11-30T12:00:00+00:00",
        seed="5eed",
        version="0",
        goal=wanted.model_dump(mode="json"),
        brain="playbook",
        mode="auto",
        interactive=False,
        policy=policy_for(wanted, "auto").model_dump(mode="json"),
    )


def told(*parts: AnyEvent | Sequence[AnyEvent]) -> View:
    """Fold events, numbered from 0: the header is e0."""
    flat = itertools.chain.from_iterable(
        part if isinstance(part, Sequence) else (part,) for part in (header(), *parts)
    )
    return View(event.model_copy(update={"seq": n}) for n, event in enumerate(flat))


def did(
    call_id: str,
    tool: str = "config_probe",
    touches: tuple[Subject, ...] = (ENVIRONMENT,),
    *,
    risk: Risk = Risk.READ,
    status: CallStatus = CallStatus.OK,
    purpose: Purpose | None = None,
    target: str = "local",
) -> list[AnyEvent]:
    """All of one call: taken up, started, ended; three events."""
    call = ToolCall(id=call_id, tool=tool, target=target, purpose=purpose or Purpose())
    seen = OBSERVED.get(tool, {}) if status is CallStatus.OK else {}
    return [
        CallQueued(call=call, risk=risk, touches=touches),
        CallStarted(call_id=call_id),
        CallEnded(call_id=call_id, tool=tool, status=status, observation=seen),
    ]


def diagnosed(name: str = "d1", subject: Subject = ENVIRONMENT) -> DiagnosisRecorded:
    return DiagnosisRecorded(
        diagnosis_id=name,
        kind="version-pin",
        cause="too old",
        evidence=("e3",),
        subject=subject,
        check="config_parses",
    )


def opened(subject: Subject = ENVIRONMENT, target: str = "local") -> FixOpened:
    return FixOpened(fix_id="f1", diagnosis_id="d1", subject=subject, target=target)


def closed(verdict: FixVerdict = FixVerdict.REFUTED) -> FixClosed:
    return FixClosed(fix_id="f1", verdict=verdict, before="a", after="a", evidence=("e9",))


def ruled(
    view: View,
    purpose: Purpose,
    touches: tuple[Subject, ...] = (ENVIRONMENT,),
    *,
    risk: Risk = Risk.CHANGE,
    target: str = "local",
) -> Ruling:
    call = ToolCall(id="t9.1", tool="pip_install", purpose=purpose, target=target)
    return judge(view, call, risk, touches)


@pytest.mark.parametrize(
    ("purpose", "risk", "goes", "says"),
    [
        (Purpose(), Risk.READ, True, ""),
        (Purpose(), Risk.CHANGE, False, "needs a purpose"),
        (Purpose(), Risk.DESTROY, False, "needs a purpose"),
        (FIX, Risk.CHANGE, True, ""),
        (Purpose(kind="fix", ref="d7"), Risk.CHANGE, False, "no diagnosis d7"),
        (Purpose(kind="fix"), Risk.CHANGE, False, "none named"),
        (ADVANCE, Risk.CHANGE, True, ""),
        (ADVANCE.model_copy(update={"ref": "nonsense"}), Risk.CHANGE, False, "`nonsense` is not a"),
        (ADVANCE.model_copy(update={"ref": ""}), Risk.CHANGE, False, "is not a check"),
        (ADVANCE.model_copy(update={"postcondition": ""}), Risk.CHANGE, False, "as postcondition"),
        (ADVANCE.model_copy(update={"postcondition": "no"}), Risk.CHANGE, False, "postcondition"),
        (Purpose(kind="recover", ref="t1.1"), Risk.CHANGE, False, "t1.1 has none"),
        (Purpose(kind="recover", ref="t1.2"), Risk.CHANGE, True, ""),
        (Purpose(kind="recover", ref="t4.4"), Risk.CHANGE, False, "t4.4 has none"),
        (Purpose(kind="recover"), Risk.CHANGE, False, "has none"),
        (Purpose(kind="requested", ref="e8"), Risk.CHANGE, True, ""),
        (Purpose(kind="requested", ref="e3"), Risk.CHANGE, False, "not e3"),
        (Purpose(kind="requested", ref="t1.2"), Risk.CHANGE, False, "not t1.2"),
    ],
)
def test_a_purpose_has_to_be_true(purpose: Purpose, risk: Risk, goes: bool, says: str) -> None:
    view = told(
        did("t1.1"),
        did("t1.2", "pip_install", risk=Risk.CHANGE, purpose=FIX),
        diagnosed(),
        NoteAdded(text="please do"),
    )
    assert view.notes.keys() == {"e8"}
    ruling = ruled(view, purpose, risk=risk)
    assert ruling.go is goes, ruling.reason
    assert says in ruling.reason
    assert goes or ruling.reason


def test_advance_names_a_check_that_does_not_hold() -> None:
    wanted = goal()
    args = {"python": f"{VENV}/bin/python", "model": MODEL, "registry": []}
    purpose = Purpose(kind="advance", ref="config_parses", postcondition="config_parses")
    call = ToolCall(id="t1.1", tool="config_probe", args=args)
    for parses in (True, False):
        seen = {"config_found": True, "parses": parses}
        view = told(
            CallQueued(call=call, touches=(ENVIRONMENT,)),
            CallStarted(call_id="t1.1"),
            CallEnded(call_id="t1.1", tool="config_probe", status=CallStatus.OK, observation=seen),
        )
        assert view.goal == wanted
        ruling = ruled(view, purpose)
        assert ruling.go is not parses
        assert ("holds already" in ruling.reason) is parses


@pytest.mark.parametrize("verdict", list(FixVerdict))
def test_a_judged_fix_is_not_used_again(verdict: FixVerdict) -> None:
    story: list[AnyEvent | list[AnyEvent]] = [did("t1.1"), diagnosed(), opened()]
    assert ruled(told(*story), FIX).go
    ruling = ruled(told(*story, closed(verdict)), FIX)
    assert not ruling.go
    assert "judged already" in ruling.reason


def test_an_answered_question_can_be_what_was_requested() -> None:
    def asked(answer: str) -> View:
        ask = ToolCall(id="t1.1", tool="ask", args={"question": "May I?"})
        return told(
            CallQueued(call=ask),
            ApprovalAsked(
                approval_id="a1",
                call_id="t1.1",
                title="May I?",
                command="ask",
                risk=Risk.READ,
                touches=(),
                target="local",
            ),
            ApprovalAnswered(approval_id="a1", answer=answer, by="person"),
            CallEnded(call_id="t1.1", tool="ask", status=CallStatus.OK),
        )

    purpose = Purpose(kind="requested", ref="t1.1")
    assert ruled(asked("yes"), purpose).go
    assert ruled(asked("the second one"), purpose).go
    assert not ruled(asked("no"), purpose).go


OPEN = (
    did("t1.1"),
    diagnosed(),
    opened(),
    did("t1.2", "pip_install", risk=Risk.CHANGE, purpose=FIX),
)


def test_an_open_fix_holds_up_other_changes_of_its_subject_only() -> None:
    view = told(*OPEN)
    ruling = ruled(view, ADVANCE)
    assert not ruling.go
    assert f"f1 of d1 is open on environment {VENV}" in ruling.reason
    assert ruled(view, ADVANCE, (OTHER,)).go
    assert ruled(view, ADVANCE, (PORT,)).go
    assert not ruled(view, ADVANCE, (PORT, ENVIRONMENT)).go
    assert ruled(view, ADVANCE, target="another").go
    assert ruled(told(*OPEN, closed()), ADVANCE).go


def test_an_open_fix_also_covers_what_its_calls_touch() -> None:
    call = did("t1.3", "pip_install", (PORT,), risk=Risk.CHANGE, purpose=FIX)
    assert not ruled(told(*OPEN, call), ADVANCE, (PORT,)).go


def test_another_diagnosis_has_to_wait_as_well() -> None:
    view = told(*OPEN, diagnosed("d2"), diagnosed("d3", OTHER))
    assert not ruled(view, Purpose(kind="fix", ref="d2")).go
    assert ruled(view, Purpose(kind="fix", ref="d3"), (OTHER,)).go
    assert ruled(view, FIX).go, "a fix's own calls follow each other"


def test_reads_and_recovery_are_never_held_up() -> None:
    view = told(*OPEN)
    assert ruled(view, Purpose(), risk=Risk.READ).go
    assert ruled(view, Purpose(kind="recover", ref="t1.2")).go


@pytest.mark.parametrize("status", list(CallStatus))
def test_what_was_started_may_have_had_an_effect(status: CallStatus) -> None:
    view = told(did("t1.1", "pip_install", risk=Risk.CHANGE, status=status))
    assert ruled(view, Purpose(kind="recover", ref="t1.1")).go


def test_recover_touches_only_what_the_call_had_an_effect_on() -> None:
    view = told(did("t1.1", risk=Risk.CHANGE))
    assert str(OTHER) in ruled(view, Purpose(kind="recover", ref="t1.1"), (OTHER,)).reason


def test_what_was_refused_has_no_effect() -> None:
    call = ToolCall(id="t1.1", tool="pip_install")
    refused = CallEnded(call_id="t1.1", tool="pip_install", status=CallStatus.REFUSED)
    view = told(CallQueued(call=call, risk=Risk.CHANGE, touches=(ENVIRONMENT,)), refused)
    assert not ruled(view, Purpose(kind="recover", ref="t1.1")).go
    assert not evidence_ruling(view, "local", ENVIRONMENT, ("e2",)).go


def change(touches: tuple[Subject, ...] = (ENVIRONMENT,)) -> list[AnyEvent]:
    return did("t2.1", "pip_install", touches, risk=Risk.CHANGE)


@pytest.mark.parametrize(
    ("story", "evidence", "says"),
    [
        ([did("t1.1")], ("e3",), ""),
        ([did("t1.1")], (), "needs evidence"),
        ([did("t1.1")], ("e4",), "e4 is not the result"),
        ([did("t1.1")], ("e1",), "e1 is not the result"),
        ([did("t1.1")], ("e-1",), "e-1 is not the result"),
        ([did("t1.1")], ("t1.1",), "t1.1 is not the result"),
        ([did("t1.1")], ("e3", "e99"), "e99 is not the result"),
        ([did("t1.1", touches=(OTHER,))], ("e3",), "none of e3 is about"),
        ([did("t1.1", touches=(OTHER, ENVIRONMENT))], ("e3",), ""),
        ([did("t1.1", touches=())], ("e3",), ""),
        ([did("t1.1", target="another")], ("e3",), "none of e3 is about"),
        ([did("t1.1"), change()], ("e3",), "older than the last change"),
        ([did("t1.1"), change((OTHER,))], ("e3",), ""),
        ([did("t1.1"), change(), did("t3.1")], ("e9",), ""),
        ([did("t1.1"), change(), did("t3.1")], ("e3", "e9"), ""),
        ([did("t1.1"), change(), did("t3.1", touches=(OTHER,))], ("e3", "e9"), "older than"),
        ([did("t1.1"), change()], ("e6",), ""),
    ],
    ids=str,
)
def test_evidence(story: list[list[AnyEvent]], evidence: tuple[str, ...], says: str) -> None:
    ruling = evidence_ruling(told(*story), "local", ENVIRONMENT, evidence)
    assert ruling.go is (says == "")
    assert says in ruling.reason


def test_a_change_under_way_makes_evidence_old() -> None:
    begun = change()[:2]
    ruling = evidence_ruling(told(did("t1.1"), begun), "local", ENVIRONMENT, ("e3",))
    assert not ruling.go
    assert not evidence_ruling(told(begun), "local", ENVIRONMENT, ("e-1",)).go
