"""Diagnosis: what a failure means, what a fix's check says of it, and what is tried next."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent import diagnose
from agent.fold import View
from agent.kinds.unknown import decisive_line
from agent.session import Session
from agent.values import FixVerdict, Outcome, Purpose, ToolCall
from tests.lab.world_packages import VENV, Need, old_transformers
from tests.lab.world_runs import Says, call, events, goal, outcome, play, result_of
from tests.lab.worlds import MODEL, World
from tools.command import Ending, Result

NEVER = "99"
"""A release that no index has."""
FIX = Purpose(kind="fix", ref="d1")


def fixes(run: Session) -> list[tuple[FixVerdict, str, str]]:
    return [(item.verdict, item.before, item.after) for item in events(run, "fix_closed")]


def report(run: Session) -> Mapping[str, Any]:
    (ended,) = events(run, "run_ended")
    found: Mapping[str, Any] = ended.report
    return found


def modern(**more: Any) -> World:
    """A host where everything is there."""
    world = World(**more)
    world.versions["transformers"] = "5.24.0"
    return world


UNKNOWN_TYPE = "unknown-model-type(model_type=qwen3_5_text)"


def test_gone_is_verified(tmp_path: Path) -> None:
    run = play(tmp_path, World())
    assert outcome(run) is Outcome.READY
    assert fixes(run) == [(FixVerdict.VERIFIED, UNKNOWN_TYPE, "")]


def test_the_same_is_refuted_and_not_tried_again(tmp_path: Path) -> None:
    world = World(config_needs=(old_transformers(), old_transformers(since=NEVER)))
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.NOT_REACHED
    assert fixes(run) == [(FixVerdict.REFUTED, UNKNOWN_TYPE, UNKNOWN_TYPE)]
    assert world.done == ["install transformers==5.24.0"]
    assert "5.24.0 should know the model type" in report(run)["cause"]


def test_another_failure_is_progress_with_a_diagnosis_of_its_own(tmp_path: Path) -> None:
    world = World(config_needs=(old_transformers(), Need("einops")))
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.READY
    assert fixes(run) == [
        (FixVerdict.PROGRESSED, UNKNOWN_TYPE, "module-missing(module=einops)"),
        (FixVerdict.VERIFIED, "module-missing(module=einops)", ""),
    ]
    kinds = [item.kind for item in events(run, "diagnosis")]
    assert kinds == ["version-pin", "missing-module"]
    first, second = events(run, "diagnosis")
    assert set(second.evidence) & {f"e{first.seq}"} == set()


def test_progress_into_the_unknown_is_told(tmp_path: Path) -> None:
    world = World(config_needs=(old_transformers(), Need("transformers", NEVER, "TypeError: rope")))
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.NOT_REACHED
    assert [item[0] for item in fixes(run)] == [FixVerdict.PROGRESSED]
    assert report(run)["cause"] == "config_parses fails: TypeError: rope"


def test_undecidable_is_inconclusive(tmp_path: Path) -> None:
    world = modern(server_needs=(Need("einops"),), load_s=math.inf)
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.LIMIT
    assert fixes(run) == [(FixVerdict.INCONCLUSIVE, "module-missing(module=einops)", "")]
    assert "the server has not answered after" in report(run)["cause"]


def test_a_check_that_cannot_be_run_is_no_verdict(tmp_path: Path) -> None:
    def broken(name: str, when: str) -> Result | None:
        fails = name == "config" and when == "before" and world.count("install") == 1
        return Result(Ending.EXITED, 139, stderr="Segmentation fault") if fails else None

    world = World(trap=broken)
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.NOT_REACHED
    assert [item[0] for item in fixes(run)] == [FixVerdict.INCONCLUSIVE]
    assert "Segmentation fault" in report(run)["cause"]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("[Errno 28] No space left on device", "is full"),
        ("OSError: [Errno 30] Read-only file system", "read-only file system"),
        ("ReadTimeoutError: the mirror is asleep", "the mirror is asleep"),
    ],
)
def test_a_fix_that_cannot_be_applied_is_the_nearer_cause(
    tmp_path: Path, said: str, named: str
) -> None:
    world = World(install_error=said)
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.NOT_REACHED
    assert named in report(run)["cause"]
    assert [item[0] for item in fixes(run)] == [FixVerdict.REFUTED]
    assert world.asked.count("pip install") == 1


@pytest.mark.parametrize(
    ("world", "cause", "advice"),
    [
        (World(python=""), "no usable Python environment", "Make it first"),
        (World(model="/elsewhere"), "no config.json at «model»", "Name a model directory"),
        (World(config="Expecting value (line 1, column 2)"), "line 1, column 2", "Fetch"),
        (World(write_error="Permission denied"), "cannot be written: Permission denied", "Mount"),
        (World(index={}), "pip cannot get transformers", "by hand"),
        (World(index={"transformers": ["5.0.0"]}), "pip cannot get transformers", "by hand"),
        (modern(server_needs=(Need("zzz"),)), "module zzz is missing", "`requirements`"),
        (
            modern(server_needs=(Need("zzz", "0", "RuntimeError: the flux is cold"),)),
            "health fails: RuntimeError: the flux is cold",
            "bringup show",
        ),
        (modern(load_s=math.inf, silent=True), "the server hangs", "bringup show"),
        (modern(held=dict.fromkeys(range(8000, 8030), "nginx")), "(nginx, user bob)", "End what"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_honest_stop_names_the_cause_and_what_to_do(
    tmp_path: Path, world: World, cause: str, advice: str
) -> None:
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.NOT_REACHED
    assert cause in report(run)["cause"]
    assert advice in report(run)["advice"]
    assert world.count("install") == 0
    cited = report(run)["evidence"]
    assert cited
    ended = {event.id for event in events(run, "call_ended")}
    assert set(cited) <= ended, "evidence is the result of a call"


@pytest.mark.parametrize(
    "probe",
    ["environment", "port", "config", "resolve", "imports", "help", "job_status", "server_sample"],
)
def test_a_look_that_fails_again_ends_the_run_with_its_words(tmp_path: Path, probe: str) -> None:
    def broken(name: str, when: str) -> Result | None:
        return Result(Ending.EXITED, 1, stderr="no such luck\n") if name == probe else None

    world = World(trap=broken) if probe == "resolve" else modern(trap=broken)
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.NOT_REACHED
    assert "no such luck" in report(run)["cause"]
    assert world.asked.count(probe) <= 3


def test_a_look_that_fails_once_is_tried_again(tmp_path: Path) -> None:
    def flaky(name: str, when: str) -> Result | None:
        first = name == "config" and world.asked.count("config") == 1
        return Result(Ending.EXITED, 1) if first else None

    world = World(trap=flaky)
    assert outcome(play(tmp_path, world)) is Outcome.READY


@pytest.mark.parametrize("reply", ["sh: out of memory\n", "@0 error=cannot make a folder\n"])
def test_a_start_that_fails_is_not_repeated_for_ever(tmp_path: Path, reply: str) -> None:
    def broken(name: str, when: str) -> Result | None:
        fails = name == "job_start" and when == "before"
        return Result(Ending.EXITED, 1, stderr=reply) if fails else None

    world = modern(trap=broken)
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.NOT_REACHED
    assert world.asked.count("job_start") == 1
    assert reply.strip() in report(run)["cause"]


def test_the_decisive_line_is_the_first_that_reads_like_an_error() -> None:
    assert decisive_line("a\nValueError: x\nKeyError: y") == "ValueError: x"
    assert decisive_line("one\n\ntwo\n") == "two"
    assert decisive_line("") == ""


def test_a_failure_keeps_its_name_when_only_numbers_change(tmp_path: Path) -> None:
    view = play(tmp_path, World()).run.view
    one = diagnose.signature_of(view, "health", "RuntimeError: pid 17 at 0x7f3a died")
    two = diagnose.signature_of(view, "health", "RuntimeError: pid 4242 at 0xdeadbeef died")
    other = diagnose.signature_of(view, "health", "RuntimeError: pid 17 at 0x7f3a slept")
    assert one == two != other


def test_a_brain_may_record_a_cause_of_its_own_and_is_judged_by_the_check(tmp_path: Path) -> None:
    look = call("config_probe", python=f"{VENV}/bin/python", model=MODEL)
    record: dict[str, Any] = {"kind": "unknown", "cause": "bad luck", "check": "config_parses"}
    install = call("pip_install", FIX, python=f"{VENV}/bin/python", requirements=["einops==0.8.1"])

    def citing(call_id: str) -> Callable[[View], list[ToolCall]]:
        def turn(view: View) -> list[ToolCall]:
            cited = [result_of(view, call_id)]
            said = call("record_diagnosis", evidence=cited, **record)
            return [said, install, call("applied", diagnosis="d1")]

        return turn

    unasked: dict[str, Any] = {"mode": "supervised", "yes": True}
    run = play(tmp_path / "1", World(), brain=Says([look], citing("t1.1")), **unasked)
    assert [item[0] for item in fixes(run)] == [FixVerdict.REFUTED]
    assert events(run, "fix_closed")[0].kept
    run = play(tmp_path / "2", World(), brain=Says([look], citing("s3")), **unasked)
    assert events(run, "diagnosis") == []
    assert "is about environment" in run.run.view.calls["t2.1"].message
    assert "no diagnosis d1" in run.run.view.calls["t2.2"].message


def test_a_model_that_no_release_knows(tmp_path: Path) -> None:
    world = World(config_needs=(old_transformers("gpt9", NEVER),))
    world.config = {"model_type": "gpt9"}
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.NOT_REACHED
    assert "transformers 5.24.0 does not know the model type gpt9" in report(run)["cause"]
    assert [item[0] for item in fixes(run)] == [FixVerdict.REFUTED], "the newest was tried"


def test_what_holds_needs_no_mending(tmp_path: Path) -> None:
    look = call("config_probe", python=f"{VENV}/bin/python", model=MODEL)

    def turn(view: View) -> list[ToolCall]:
        cited = [result_of(view, "t1.1")]
        words: dict[str, Any] = {"kind": "x", "cause": "y", "check": "config_parses"}
        return [call("record_diagnosis", evidence=cited, **words)]

    run = play(tmp_path, modern(), brain=Says([look], turn))
    assert events(run, "diagnosis") == []
    assert "config_parses holds" in run.run.view.calls["t2.1"].message


def test_what_a_module_is_called_is_no_proof_of_who_publishes_it(tmp_path: Path) -> None:
    world = modern(server_needs=(Need("zzz"),))
    world.index["zzz"] = ["1.0"]
    run = play(tmp_path / "1", world)
    assert outcome(run) is Outcome.NOT_REACHED
    assert "resolve" not in world.asked
    world = modern(server_needs=(Need("zzz"),))
    world.index["zzz"] = ["1.0", "2.0"]
    wanted = goal(candidates=[{"venv": VENV, "requirements": ["zzz<2"]}])
    run = play(tmp_path / "2", world, wanted)
    assert outcome(run) is Outcome.READY, "the goal names it"
    assert "install zzz==1.0" in world.done
