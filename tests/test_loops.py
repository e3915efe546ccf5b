"""Loops and waiting: rows 36, 37, 38 and 47 of the robustness list, and what they rest on."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.engine import drive, loop
from agent.fold import View
from agent.loops import LONGEST_ROUND, SAME_FAILURES, SAME_TURNS
from agent.replay import replay
from agent.session import Session
from agent.values import CallStatus, Outcome, Purpose, ToolCall
from tests.lab.world_containers import NAME, ContainerWorld
from tests.lab.world_packages import VENV
from tests.lab.world_runs import Says, call, events, goal, outcome, play
from tests.lab.worlds import MODEL, World
from tools.command import Ending, Result

LOOK = call("config_probe", python=f"{VENV}/bin/python", model=MODEL)
OTHER = call("port_owner", python="python3", port=8000)
AIMLESS = call("pip_install", python="python", requirements=["einops"])
START = call(
    "start_server",
    Purpose(kind="advance", ref="chat", postcondition="chat"),
    argv=[f"{VENV}/bin/serve", "--port", "8000"],
)
MANY = goal(limits={"steps": 60, "minutes": 600})
DRIVERS = pytest.mark.parametrize("driver", [loop, drive], ids=["loop", "graph"])
WINDOW = SAME_TURNS * LONGEST_ROUND
Turn = list[ToolCall] | Callable[[View], list[ToolCall]]


def played(folder: Path, world: World, *turns: Turn, **more: Any) -> Session:
    run = play(folder, world, MANY, brain=Says(*turns), yes=True, **{"driver": loop, **more})
    done = replay(run.folder.transcript)
    assert done.difference is None, done.difference
    return run


def limit_of(run: Session) -> Any:
    assert outcome(run) is Outcome.LIMIT
    return events(run, "limit")[0]


def hinted(run: Session) -> list[tuple[str, int]]:
    return [(hint.name, hint.turn) for hint in events(run, "hint")]


# --- row 36: the same failing call for ever, and 38: no end without a word before

BROKEN = Result(Ending.EXITED, 1, stderr="no luck")
FAILING: dict[str, ToolCall] = {
    "failed": LOOK,
    "refused": AIMLESS,
    "invalid": call("config_probe", python=f"{VENV}/bin/python"),
    "no such tool": call("nonsense"),
    "not readable": call("port_owner").model_copy(update={"problem": "its arguments are no JSON"}),
}


def broken_world() -> World:
    return World(trap=lambda name, _: BROKEN if name == "config" else None)


@DRIVERS
@pytest.mark.parametrize("wrong", FAILING.values(), ids=FAILING)
def test_36_38_the_same_failing_call_in_a_row_is_told_and_then_ends(
    tmp_path: Path, wrong: ToolCall, driver: Any
) -> None:
    run = played(tmp_path, broken_world(), *([[wrong]] * 20), driver=driver)
    limit = limit_of(run)
    assert (limit.name, run.run.view.turn) == ("repetition", SAME_TURNS)
    assert wrong.tool in limit.text
    assert hinted(run) == [("repetition", SAME_TURNS - 1)]
    assert wrong.tool in events(run, "hint")[0].text


@DRIVERS
@pytest.mark.parametrize("wrong", FAILING.values(), ids=FAILING)
def test_36_38_the_same_failing_call_among_others_is_told_and_then_ends(
    tmp_path: Path, wrong: ToolCall, driver: Any
) -> None:
    others = iter([[call("host_facts", python="python3", paths=[f"/{n}"])] for n in range(40)])
    turns = [turn for n in range(10) for turn in ([wrong], *itertools.islice(others, n % 3))]
    run = played(tmp_path, broken_world(), *turns, driver=driver)
    limit = limit_of(run)
    assert limit.name == "failing"
    assert wrong.tool in limit.text
    ((name, turn),) = hinted(run)
    assert (name, turn < run.run.view.turn) == ("failing", True)
    tools = [item.tool for reply in events(run, "reply") for item in reply.calls]
    assert tools.count(wrong.tool) == SAME_FAILURES


def test_38_a_brain_that_heeds_the_hint_goes_on(tmp_path: Path) -> None:
    turns = [*([[LOOK]] * 3), [OTHER], *([[LOOK]] * 3), [OTHER]]
    run = played(tmp_path, World(), *turns)
    assert outcome(run) is Outcome.NOT_REACHED
    assert hinted(run) == [("repetition", 3), ("repetition", 7)]


@DRIVERS
@pytest.mark.parametrize(
    "round_", [[[LOOK, OTHER]], [[LOOK], [OTHER]], [[LOOK], [OTHER], [LOOK, OTHER]]], ids=len
)
def test_36_38_rounds_of_up_to_three_turns(
    tmp_path: Path, round_: list[list[ToolCall]], driver: Any
) -> None:
    run = played(tmp_path, World(), *(round_ * 9), driver=driver)
    assert limit_of(run).name == "repetition"
    assert run.run.view.turn == SAME_TURNS * len(round_)
    assert hinted(run) == [("repetition", (SAME_TURNS - 1) * len(round_))]


def test_36_numbers_that_differ_each_time_hide_no_failure(tmp_path: Path) -> None:
    numbers = itertools.count(4242)

    def trap(name: str, when: str) -> Result | None:
        n = next(numbers)
        words = f"pid {n}: port {n + 40_000} at {n:#x}, 12:00:{n % 60:02}, after {n / 7:.1f} s"
        return Result(Ending.EXITED, 1, stderr=words) if name == "config" else None

    run = played(tmp_path / "1", World(trap=trap), *([[LOOK], [OTHER, LOOK]] * 9))
    assert limit_of(run).name == "failing"
    run = played(tmp_path / "2", World(trap=trap), *([[LOOK]] * 9))
    assert limit_of(run).name == "repetition"


def test_36_a_failure_that_changes_is_no_loop(tmp_path: Path) -> None:
    shares = itertools.count(1)

    def trap(name: str, when: str) -> Result | None:
        words = f"{next(shares)} of 90 files are there"
        return Result(Ending.EXITED, 1, stderr=words) if name == "config" else None

    run = played(tmp_path, World(trap=trap), *([[LOOK]] * 12))
    assert (outcome(run), hinted(run)) == (Outcome.NOT_REACHED, [])


@DRIVERS
def test_47_a_success_of_the_same_call_forgets_its_failures(tmp_path: Path, driver: Any) -> None:
    fails = itertools.cycle([True, True, True, False])
    timeout = Result(Ending.TIMED_OUT, stderr="too late", duration_s=60.0)

    def trap(name: str, when: str) -> Result | None:
        return timeout if name == "config" and when == "before" and next(fails) else None

    others = [[call("port_owner", python="python3", port=9000 + n)] for n in range(16)]
    turns = [turn for other in others for turn in ([LOOK], other)]
    run = played(tmp_path, World(trap=trap), *turns, driver=driver)
    assert outcome(run) is Outcome.NOT_REACHED
    statuses = [r.status for r in run.run.view.calls.values() if r.call.tool == LOOK.tool]
    assert statuses[:4] == [*([CallStatus.TIMED_OUT] * 3), CallStatus.OK]


def test_47_failures_of_one_turn_count_once_and_what_was_not_run_counts_not(
    tmp_path: Path,
) -> None:
    often = [call("nonsense") for _ in range(SAME_FAILURES + 1)]
    run = played(tmp_path / "1", World(), often, [LOOK])
    assert (outcome(run), hinted(run)) == (Outcome.NOT_REACHED, [])
    first = [call("pip_install", python="python", requirements=[f"a{n}"]) for n in range(9)]
    run = played(tmp_path / "2", World(), *([item, START] for item in first))
    statuses = [record.status for record in run.run.view.calls.values()]
    assert statuses.count(CallStatus.CANCELLED) == len(first)
    assert outcome(run) is Outcome.NOT_REACHED


# --- row 37: waiting is no loop


def of_job(tool: str) -> Callable[[View], ToolCall]:
    return lambda view: call(tool, job=next(iter(view.effects.servers)))


def of_container(tool: str) -> Callable[[View], ToolCall]:
    return lambda _: call(tool, name=NAME)


LOOKS: dict[str, Callable[[View], ToolCall]] = {
    "job_status": of_job("job_status"),
    "job_logs": of_job("job_logs"),
    "container_logs": of_container("container_logs"),
    "container_use": of_container("container_use"),
}
LIVES: dict[str, Callable[[], World]] = {
    "works": lambda: ContainerWorld(load_s=math.inf),
    "silent": lambda: ContainerWorld(load_s=math.inf, silent=True, works=False),
    "dead": lambda: ContainerWorld(load_s=math.inf, silent=True, ended=True),
}
"""``works`` writes the same words as long as it is looked at, and computes."""


def rounds(look: Callable[[View], ToolCall], how: str) -> Iterator[Turn]:
    """The same look again and again, with waiting between, and with other words for it."""

    def at_once(wait: ToolCall) -> Callable[[View], list[ToolCall]]:
        return lambda view: [wait, look(view)]

    yield [START]
    for n in itertools.count(1):
        wait = call("wait", seconds=30 + n, reason=f"look number {n}")
        if how == "wait, then look":
            yield [wait]
        yield at_once(wait) if how == "at once" else lambda view: [look(view)]


@pytest.mark.parametrize("how", ["look", "wait, then look", "at once"])
@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("tool", LOOKS)
def test_37_polling_is_waiting_where_something_works_and_a_loop_where_not(
    tmp_path: Path, tool: str, life: str, how: str
) -> None:
    world = LIVES[life]()
    if life == "dead":
        world.server_needs = (World().config_needs[0],)
    settle: list[Turn] = [[call("wait", seconds=20)]] if life == "dead" else []
    turns = list(itertools.islice(rounds(LOOKS[tool], how), WINDOW + 4))
    run = played(tmp_path, world, turns[0], *settle, *turns[1:])
    seen = [r.observation for r in run.run.view.calls.values() if r.call.tool == tool]
    assert all(seen), "each look found something"
    if life == "works":
        assert (outcome(run), hinted(run)) == (Outcome.NOT_REACHED, [])
        assert len({str(item.get("text", item.get("tail"))) for item in seen}) == 1, "same words"
        return
    assert limit_of(run).name == "repetition"
    assert tool in limit_of(run).text
    assert len(seen) == SAME_TURNS
    assert [name for name, _ in hinted(run)] == ["repetition"]


@DRIVERS
def test_37_thirty_looks_at_changing_words_are_allowed(tmp_path: Path, driver: Any) -> None:
    words = itertools.count()

    class Talks(ContainerWorld):
        def run(self, command: Any, on_output: Any = None) -> Result:
            self.words = f"step {next(words)}"
            return super().run(command, on_output)

    turns = [[call("container_logs", name=NAME)]] * 30
    run = played(tmp_path, Talks(works=False), *turns, driver=driver)
    assert (outcome(run), run.run.view.turn) == (Outcome.NOT_REACHED, 31)


def test_37_a_container_that_is_started_again_and_again_does_not_work(tmp_path: Path) -> None:
    world = ContainerWorld(restarts=True)
    run = played(tmp_path, world, *([[call("inspect_container", name=NAME)]] * 9))
    assert limit_of(run).name == "repetition"
    assert "container_use" in events(run, "hint")[0].text, "it names what tells of life"


def test_37_a_look_at_something_that_works_may_stand_beside_one_that_tells_nothing(
    tmp_path: Path,
) -> None:
    both = [call("inspect_container", name=NAME), call("container_use", name=NAME)]
    run = played(tmp_path / "1", ContainerWorld(), *([both] * WINDOW))
    assert (outcome(run), hinted(run)) == (Outcome.NOT_REACHED, [])
    run = played(tmp_path / "2", ContainerWorld(works=False), *([both] * WINDOW))
    assert limit_of(run).name == "repetition"


@DRIVERS
def test_36_claims_whose_checks_find_the_same_are_a_loop(tmp_path: Path, driver: Any) -> None:
    claims = ([call("claim_ready", text=f"as e{n} shows")] for n in range(9))
    run = played(tmp_path, broken_world(), *claims, driver=driver)
    assert (limit_of(run).name, len(events(run, "claim"))) == ("repetition", SAME_TURNS)


def test_37_claims_whose_checks_find_something_else_each_time_are_none(tmp_path: Path) -> None:
    shares = itertools.count(1)

    def trap(name: str, when: str) -> Result | None:
        words = f"{next(shares)}% of the weights are there"
        return Result(Ending.EXITED, 1, stderr=words) if name == "config" else None

    wanted = goal(limits={"steps": 60}, checks=["config_parses"])
    brain = Says(*([[call("claim_ready")]] * WINDOW))
    run = play(tmp_path, World(trap=trap), wanted, brain=brain, driver=loop)
    assert (outcome(run), hinted(run)) == (Outcome.NOT_REACHED, [])


def test_36_the_same_diagnosis_with_other_numbers_is_a_loop(tmp_path: Path) -> None:
    def again(view: View) -> list[ToolCall]:
        seen = max(r.ended for r in view.calls.values() if r.call.tool == LOOK.tool)
        args: dict[str, Any] = {"kind": "unknown", "cause": "too old", "check": "config_parses"}
        return [LOOK, call("record_diagnosis", **args, evidence=[f"e{seen}"])]

    run = played(tmp_path, World(), [LOOK], *([again] * 9))
    assert limit_of(run).name == "repetition"
    assert len(run.run.view.diagnoses) == SAME_TURNS
