"""Acting on a turn: one result for each call, what a refusal cancels, and what Ctrl-C leaves."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.engine import drive, stop_servers
from agent.session import Session
from agent.values import CallStatus, Outcome, Purpose, ToolCall
from tests.lab.world_packages import VENV
from tests.lab.world_runs import (
    Says,
    begin,
    call,
    events,
    goal,
    nobody,
    outcome,
    play,
    say,
    take_up,
)
from tests.lab.worlds import MODEL, World
from tools.command import Ending, Result
from tools.errors import ConnectionFailed
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
    run = play(tmp_path, World(), brain=Says(turn))
    assert statuses(run) == expected
    assert set(results_by_call(run).values()) == {1}


def test_a_failed_change_cancels_the_later_ones_too(tmp_path: Path) -> None:
    world = World(install_error="No space left on device")
    run = play(tmp_path, world, brain=Says([INSTALL, LOOK, START], [START]))
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
    run = play(tmp_path, World(), brain=Says([LOOK, install, LOOK]))
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


@pytest.mark.parametrize("seed", range(40))
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


def interrupt(nth: int, when: str) -> Callable[[str, str], None]:
    """Return a trap that is a Ctrl-C at the nth command."""
    met = Counter[str]()

    def trap(name: str, now: str) -> None:
        met[now] += 1
        if now == when and met[now] == nth:
            raise KeyboardInterrupt

    return trap


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("on_interrupt", ["stop", "keep"])
def test_ctrl_c_in_any_command_closes_the_books(
    tmp_path: Path, when: str, on_interrupt: str
) -> None:
    met = Counter[bool]()
    for nth in range(1, 20):
        world = World(load_s=2.0, trap=interrupt(nth, when))
        run = play(tmp_path / str(nth), world, goal(on_interrupt=on_interrupt))
        assert outcome(run) is Outcome.INTERRUPTED
        ended = events(run, "run_ended")
        assert len(ended) == 1
        assert ended[0].exit_code == 130
        assert set(results_by_call(run).values()) == {1}
        running = {job.name for job in world.jobs.values() if job.runs(world.now)}
        started = [name for name in run.run.view.turns.get(7, ()) if world.count("start")]
        met[bool(running)] += 1
        assert running <= set(ended[0].report["running"]), "what is kept is named"
        assert not running or on_interrupt == "keep"
        assert started or not running
    assert met[True] == (0 if on_interrupt == "stop" else met[True])
    assert on_interrupt == "stop" or met[True] > 5


@pytest.mark.parametrize("where", ["brain", "answer", "sleep"])
def test_ctrl_c_between_commands(tmp_path: Path, where: str) -> None:
    def stop(*_: object) -> Any:
        raise KeyboardInterrupt

    world = World(load_s=60.0)
    begun = begin(tmp_path, world, mode="supervised", interactive=True)
    if where == "brain":
        begun.run.brain.reply = stop  # type: ignore[method-assign, assignment]
    if where == "sleep":
        begun.run.sleep = stop
    answered = drive(begun.run, stop if where == "answer" else say("yes"), begun.checkpoint)
    begun.close()
    assert answered is outcome(begun) is Outcome.INTERRUPTED
    assert set(results_by_call(begun).values()) == {1}
    assert len(events(begun, "run_ended")) == 1


def test_ctrl_c_after_the_end_changes_nothing(tmp_path: Path) -> None:
    begun = begin(tmp_path, World())

    def stop(event: Any) -> None:
        if event.type == "run_ended":
            raise KeyboardInterrupt

    begun.transcript.subscribe(stop)
    drive(begun.run, nobody, begun.checkpoint)
    begun.close()
    assert [event.outcome for event in events(begun, "run_ended")] == [Outcome.READY]


def test_a_lost_host_ends_the_run_with_its_name(tmp_path: Path) -> None:
    def lost(name: str, when: str) -> None:
        if name == "pip install" and when == "after":
            raise ConnectionFailed("local", "no route to host")

    world = World(trap=lost)
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.UNREACHABLE
    assert statuses(run, 3)[1:] == [CallStatus.UNKNOWN, CANCELLED]
    assert events(run, "run_ended")[0].report["cause"] == "local: no route to host"
    assert world.count("install") == 1


def test_what_cannot_be_stopped_is_told(tmp_path: Path) -> None:
    def survives(name: str, when: str) -> Result | None:
        if name != "job_stop" or when != "after":
            return None
        marker = mark[0]
        text = f"{marker} outcome=survived\n{marker} pid=1\n{marker} end=1\n"
        return Result(Ending.EXITED, 0, stdout=text)

    world = World(load_s=0.2)
    run = begin(tmp_path, world)
    drive(run.run, nobody)
    (job,) = run.run.view.servers
    mark = [run.run.context(f"x{run.run.view.cursor}").marker]
    world.trap = survives
    assert stop_servers(run.run) == [job]
    assert list(run.run.view.may_run) == [job]
    world.trap = None
    assert stop_servers(run.run) == []
    assert stop_servers(run.run) == []
    assert world.count("stop") == 1
    run.close()


def test_an_interrupted_run_cannot_be_taken_up_as_if_it_went_on(tmp_path: Path) -> None:
    world = World(trap=interrupt(3, "before"))
    run = play(tmp_path, world)
    taken = take_up(run.folder, world)
    before = len(taken.transcript.events)
    assert drive(taken.run, nobody, taken.checkpoint) is Outcome.INTERRUPTED
    assert len(taken.transcript.events) == before
    taken.close()
