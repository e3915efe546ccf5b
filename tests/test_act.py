"""Acting on a turn: one result for each call, and what a refusal cancels."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent.session import Session
from agent.values import CallStatus, Outcome, Purpose, ToolCall
from tests.lab.world_packages import VENV
from tests.lab.world_runs import (
    Says,
    call,
    events,
    outcome,
    play,
    say,
)
from tests.lab.worlds import MODEL, World
from tools.registry import TOOLS

PYTHON = f"{VENV}/bin/python"
ADVANCE = Purpose(kind="advance", ref="chat", postcondition="chat")
LOOK = call("config_probe", python=PYTHON, model=MODEL)
INSTALL = call("pip_install", ADVANCE, python=PYTHON, requirements=["einops==0.8.1"])
AIMLESS = call("pip_install", python=PYTHON, requirements=["einops==0.8.1"])
START = call("start_server", ADVANCE, argv=[f"{VENV}/bin/serve", "--port", "8000"])


def statuses(run: Session, turn: int = 1) -> list[CallStatus | None]:
    view = run.run.view
    return [view.calls[name].status for name in view.turns[turn]]


def results_by_call(run: Session) -> Counter[str]:
    """How many results each call has, by id; 0 where it has none."""
    found = Counter({record.id: 0 for event in events(run, "reply") for record in event.calls})
    found.update({event.call.id: 0 for event in events(run, "call_queued")})
    found.update(event.call_id for event in events(run, "call_ended"))
    return found


UNASKED: dict[str, Any] = {"mode": "supervised", "yes": True}
"""A brain's own changes run: those that the playbook would not make are asked about in ``auto``."""
OK, REFUSED, CANCELLED = CallStatus.OK, CallStatus.REFUSED, CallStatus.CANCELLED
INVALID, FAILED = CallStatus.INVALID, CallStatus.FAILED


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        ([AIMLESS, LOOK, INSTALL, LOOK, START], [REFUSED, OK, CANCELLED, OK, CANCELLED]),
        ([LOOK, AIMLESS, LOOK], [OK, REFUSED, OK]),
        ([INSTALL, LOOK, AIMLESS, START], [OK, OK, REFUSED, CANCELLED]),
        ([INSTALL, INSTALL, START], [OK, OK, OK]),
        ([call("pip_instal"), INSTALL], [INVALID, OK]),
        ([call("record_diagnosis", cause="x"), LOOK], [INVALID, OK]),
        ([call("applied", diagnosis="d1"), INSTALL], [INVALID, OK]),
    ],
)
def test_a_refusal_cancels_the_later_changes_and_never_a_look(
    tmp_path: Path, turn: list[ToolCall], expected: list[CallStatus]
) -> None:
    run = play(tmp_path, World(), brain=Says(turn), **UNASKED)
    assert statuses(run) == expected
    assert set(results_by_call(run).values()) == {1}


def test_a_failed_change_cancels_the_later_ones_too(tmp_path: Path) -> None:
    world = World(install_error="No space left on device")
    run = play(tmp_path, world, brain=Says([INSTALL, LOOK, START], [START]), **UNASKED)
    assert statuses(run) == [FAILED, OK, CANCELLED]
    assert (
        "pip_install before it in this turn did not succeed" in run.run.view.calls["t1.3"].message
    )
    assert statuses(run, 2) == [OK], "another turn is another thought"


def test_what_a_person_refused_cancels_too(tmp_path: Path) -> None:
    turn = [INSTALL, LOOK, START]
    more: dict[str, Any] = {"mode": "supervised", "interactive": True, "answer": say("no")}
    run = play(tmp_path, World(), brain=Says(turn), **more)
    assert statuses(run) == [REFUSED, OK, CANCELLED]
    assert len(events(run, "approval_asked")) == 1


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (call("pip_instal", python=PYTHON), "did you mean pip_install"),
        (call("", python=PYTHON), "there is no tool"),
        (call("config_probe", python=PYTHON), "model: Field required"),
        (call("config_probe", python=PYTHON, model=MODEL, weights=1), "weights: Extra inputs"),
        (call("config_probe", python="", model=MODEL), "python: String should"),
        (call("config_probe", target="spark-9", python=PYTHON, model=MODEL), "no target spark-9"),
        (call("start_server", ADVANCE, argv=["x"], port=99999), "port: "),
        (call("start_server", ADVANCE, argv=[]), "argv: "),
        (call("stop_job", ADVANCE, job="../../etc"), "job: "),
        (call("pip_install", ADVANCE, python=PYTHON, requirements=["--pre"]), "requirements.0"),
        (call("use_port", ADVANCE, port=0), "port: "),
        (call("ask", question="What?", choices=["one"]), "choices: "),
    ],
)
def test_a_wrong_call_is_told_and_the_run_goes_on(
    tmp_path: Path, wrong: ToolCall, says: str
) -> None:
    world = World()
    run = play(tmp_path, world, brain=Says([wrong, LOOK]))
    assert statuses(run) == [INVALID, OK]
    assert says in run.run.view.calls["t1.1"].message
    assert world.done == []
    assert outcome(run) is Outcome.NOT_REACHED


def test_a_look_after_a_change_sees_the_new_state(tmp_path: Path) -> None:
    install = INSTALL.model_copy(
        update={"args": {"python": PYTHON, "requirements": ["transformers==5.24.0"]}}
    )
    run = play(tmp_path, World(), brain=Says([LOOK, install, LOOK]), **UNASKED)
    parses = [run.run.view.calls[f"t1.{n}"].observation["parses"] for n in (1, 3)]
    assert parses == [False, True]


def test_what_is_left_when_the_run_ends_gets_its_result(tmp_path: Path) -> None:
    gave_up = call("give_up", cause="no")
    run = play(tmp_path, World(), brain=Says([LOOK, gave_up, LOOK, INSTALL]))
    assert statuses(run) == [OK, OK, CANCELLED, CANCELLED]
    assert run.run.view.calls["t1.4"].message == "not run: the run ended"
    assert events(run, "run_ended")[0].report["cause"] == "no"


def some_args(rng: random.Random, tool: str) -> dict[str, Any]:
    values: tuple[Any, ...] = (
        PYTHON,
        MODEL,
        "",
        "x",
        8000,
        -1,
        None,
        [],
        ["einops==0.8.1"],
        ["x", ""],
        {},
        True,
    )
    fields = next((item.args_type.model_fields for item in TOOLS if item.name == tool), {})
    args = {name: rng.choice(values) for name in fields if rng.random() < 0.8}
    if rng.random() < 0.5:
        args |= {name: PYTHON for name in fields if name == "python"}
    if rng.random() < 0.1:
        args["unknown"] = 1
    return args


def some_turns(rng: random.Random) -> list[list[ToolCall]]:
    """Turns of calls that make sense, that nearly do, and that are nonsense."""
    ready = [LOOK, INSTALL, AIMLESS, START, call("applied", diagnosis="d1")]
    ready += [call("use_port", ADVANCE, port=8001), call("give_up", cause="no")]
    ready += [call("record_diagnosis", kind="x", cause="y", evidence=["e19"], check="imports")]
    ready += [call("stop_job", Purpose(kind="recover", ref="t1.1"), job="r-t1.1")]
    names = [tool.name for tool in TOOLS] + ["nonsense", "ask", "claim_ready"]
    purposes = [Purpose(), ADVANCE, Purpose(kind="fix", ref="d1"), Purpose(kind="requested")]

    def one() -> ToolCall:
        if rng.random() < 0.6:
            return rng.choice(ready[: 6 if rng.random() < 0.9 else 9])
        name = rng.choice(names)
        return call(name, rng.choice(purposes), **some_args(rng, name))

    return [[one() for _ in range(rng.randrange(6))] for _ in range(3)]


@pytest.mark.parametrize("seed", range(30))
def test_whatever_a_brain_says_each_call_gets_exactly_one_result(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    turns = some_turns(rng)
    modes = ("auto", "supervised", "read-only")
    more: dict[str, Any] = {"mode": rng.choice(modes), "interactive": True}
    more["answer"] = say(rng.choice(["yes", "no"]))
    run = play(tmp_path, World(load_s=0.2), brain=Says(*turns), **more)
    assert events(run, "run_ended"), "it ended"
    results = results_by_call(run)
    assert {name: n for name, n in results.items() if n != 1} == {}
    for name, record in run.run.view.calls.items():
        if record.status is CANCELLED and record.message != "not run: the run ended":
            assert record.risk > 0, f"{name} only looks"
