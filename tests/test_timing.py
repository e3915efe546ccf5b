"""Where a run's time went: every second has one cause, and what has none is our own."""

from __future__ import annotations

from typing import Any

import pytest

from agent import events as e
from agent.brains.base import OWN_BRAIN
from agent.brains.playbook import Playbook
from agent.timing import LOAD_TOOLS, PIP_TOOLS, Split, split
from agent.values import CallStatus, Outcome, ToolCall
from tests.lab import sample_run
from tools.base import Risk
from tools.command import Ending, Result
from tools.registry import TOOLS


def header(**more: Any) -> e.RunStarted:
    return sample_run.header().model_copy(update=more)


def begun(t: float, call_id: str, tool: str) -> list[e.AnyEvent]:
    return [
        e.CallQueued(t=t, call=ToolCall(id=call_id, tool=tool)),
        e.CallStarted(t=t, call_id=call_id),
    ]


def sample(t: float, call_id: str, n: int, duration_s: float) -> e.CallSampled:
    result = Result(Ending.EXITED, code=0, duration_s=duration_s)
    return e.CallSampled(t=t, call_id=call_id, n=n, argv=("true",), result=result)


def end(t: float, call_id: str, tool: str, status: CallStatus = CallStatus.OK) -> e.CallEnded:
    return e.CallEnded(t=t, call_id=call_id, tool=tool, status=status)


def over(t: float) -> e.RunEnded:
    return e.RunEnded(t=t, outcome=Outcome.READY, exit_code=0, summary="ready")


def called(t: float, call_id: str, tool: str, duration_s: float) -> list[e.AnyEvent]:
    """A call that takes a tenth of a second more than its command."""
    until = t + duration_s + 0.1
    return [
        *begun(t, call_id, tool),
        sample(until, call_id, 1, duration_s),
        end(until, call_id, tool),
    ]


def parts(spent: Split) -> dict[str, float]:
    """What is not zero, as a person would say it."""
    names = ("total_s", "pip_s", "load_s", "commands_s", "person_s", "model_s", "own_s")
    found = {name: round(getattr(spent, name), 3) for name in names}
    return {name: value for name, value in found.items() if value}


def test_commands_are_told_apart_and_the_rest_is_our_own() -> None:
    run = [
        header(),
        *called(0.5, "s1", "host_facts", 1.0),
        *called(2.0, "t1.1", "pip_install", 6.0),
        over(9.0),
    ]
    spent = split(run)
    assert parts(spent) == {"total_s": 9.0, "pip_s": 6.0, "commands_s": 1.0, "own_s": 2.0}
    assert spent.own_share == pytest.approx(2 / 9)


def test_loading_is_the_looks_and_the_waits_between_them() -> None:
    run = [
        header(),
        *begun(1.0, "t1.1", LOAD_TOOLS[0]),
        sample(1.3, "t1.1", 1, 0.2),
        sample(2.0, "t1.1", 2, 0.2),
        sample(3.5, "t1.1", 3, 0.3),
        end(3.5, "t1.1", LOAD_TOOLS[0]),
        over(4.0),
    ]
    assert parts(split(run)) == {"total_s": 4.0, "load_s": 2.4, "own_s": 1.6}


def test_a_person_who_thinks_is_not_our_time() -> None:
    asked = sample_run.ASKED.model_copy(update={"t": 1.0, "risk": Risk.CHANGE})
    answered = e.ApprovalAnswered(t=61.0, approval_id="a1", answer="yes", by="person")
    assert parts(split([header(), asked, answered, over(62.0)])) == {
        "total_s": 62.0,
        "person_s": 60.0,
        "own_s": 2.0,
    }


@pytest.mark.parametrize(
    ("brain", "expected"),
    [
        (OWN_BRAIN, {"total_s": 9.0, "own_s": 9.0}),
        ("some-model", {"total_s": 9.0, "model_s": 7.0, "own_s": 2.0}),
    ],
)
def test_a_model_that_thinks_is_not_our_time(brain: str, expected: dict[str, float]) -> None:
    turns: list[e.AnyEvent] = [
        e.RequestMade(t=1.0, turn=1, digest="d"),
        e.ReplyReceived(t=4.0, turn=1),
        e.RequestMade(t=5.0, turn=2, digest="d"),
        e.ReplyReceived(t=9.0, turn=2),
    ]
    assert parts(split([header(brain=brain), *turns])) == expected


def test_a_call_that_was_broken_off_counts_until_then() -> None:
    run = [
        header(),
        *begun(1.0, "t1.1", "pip_install"),
        end(5.0, "t1.1", "pip_install", CallStatus.UNKNOWN),
        *begun(5.0, "t2.1", LOAD_TOOLS[0]),
        sample(5.5, "t2.1", 1, 0.5),
        end(7.5, "t2.1", LOAD_TOOLS[0], CallStatus.UNKNOWN),
        over(8.0),
    ]
    assert parts(split(run)) == {"total_s": 8.0, "pip_s": 4.0, "load_s": 2.5, "own_s": 1.5}


def test_a_look_that_is_sent_again_after_a_crash_counts_what_each_sending_took() -> None:
    started = e.CallStarted(t=3.0, call_id="s1")
    run = [header(), *begun(1.0, "s1", "host_facts"), started, sample(4.0, "s1", 1, 0.8)]
    assert parts(split(run)) == {"total_s": 4.0, "commands_s": 0.8, "own_s": 3.2}


def test_what_is_done_after_the_end_does_not_count() -> None:
    run = [header(), over(2.0), *called(50.0, "x9", "stop_job", 1.0)]
    assert parts(split(run)) == {"total_s": 2.0, "own_s": 2.0}


def test_rounded_times_never_make_our_part_negative() -> None:
    run = [header(), *begun(0.0, "s1", "grep"), sample(0.001, "s1", 1, 0.0014)]
    assert split(run).own_s == 0.0


def test_nothing_is_nothing() -> None:
    assert split([]).own_share == 0.0


def test_the_names_are_those_of_the_project() -> None:
    names = {tool.name for tool in TOOLS}
    assert set(PIP_TOOLS) == {name for name in names if "pip" in name} | {"build_image"}
    assert set(LOAD_TOOLS) <= names
    assert Playbook.name == OWN_BRAIN
