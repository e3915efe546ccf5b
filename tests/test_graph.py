"""The graph: the same run as the plain loop, small checkpoints, and no edge that is not drawn."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from agent.approve import heed
from agent.engine import Answer, drive, loop
from agent.graph import GOES_TO, build
from agent.phases import Phase, go, phase
from agent.run import Run
from agent.session import Session
from agent.values import Outcome
from tests.lab.world_packages import VENV, Need
from tests.lab.world_runs import Says, begin, call, events, goal, nobody, outcome, play, say
from tests.lab.worlds import MODEL, World

LOOK = call("config_probe", python=f"{VENV}/bin/python", model=MODEL)
PERSON: dict[str, Any] = {"mode": "supervised", "interactive": True}
RUNS: dict[str, tuple[Callable[[], World], dict[str, Any], Answer]] = {
    "ready": (World, {}, nobody),
    "a restart": (lambda: World(server_needs=(Need("einops"),)), {}, nobody),
    "an honest stop": (lambda: World(index={}), {}, nobody),
    "yes": (World, PERSON, say("yes")),
    "no": (World, PERSON, say("no")),
    "stop": (World, PERSON, say("stop")),
    "parked": (World, {"mode": "supervised"}, nobody),
    "a limit": (World, {"wanted": goal(limits={"steps": 2})}, nobody),
    "silence": (World, {"brain": Says([], [], [])}, nobody),
}


def told(run: Session) -> list[str]:
    """All that is on record but what differs from run to run: ids, markers and places."""
    view = run.run.view
    seed = view.header.seed if view.header else ""
    marks = [run.run.context(name).marker for name in view.calls]
    text = [
        event.model_dump_json(exclude={"prev", "run_id", "seed", "started_at", "host_dir"})
        for event in run.transcript.events
    ]
    for word in (run.folder.id, seed, *marks):
        text = [line.replace(word, "#") for line in text]
    return text


@pytest.mark.parametrize(("make", "more", "answer"), RUNS.values(), ids=RUNS)
def test_graph_and_loop_write_the_same(
    tmp_path: Path, make: Callable[[], World], more: dict[str, Any], answer: Answer
) -> None:
    ends: list[Outcome] = []
    written: list[list[str]] = []
    for name, driver in (("graph", drive), ("loop", loop)):
        begun = begin(tmp_path / name, make(), **more)
        ends.append(driver(begun.run, answer))
        begun.close()
        written.append(told(begun))
    assert written[0] == written[1]
    assert ends[0] is ends[1]


def phases(run: Session) -> Iterator[tuple[Phase, Phase]]:
    """The node after each node, as a run on the loop goes through them."""
    before = phase(run.run.view)
    while before is not Phase.END:
        one_step(run.run, before)
        after = phase(run.run.view)
        yield before, after
        before = after


def one_step(run: Run, now: Phase) -> None:
    if now is Phase.APPROVE:
        heed(run, {item.approval_id: "no" for item in run.view.pending_approvals})
    else:
        go(run, now)


@pytest.mark.parametrize(("make", "more", "answer"), RUNS.values(), ids=RUNS)
def test_every_step_is_an_edge(
    tmp_path: Path, make: Callable[[], World], more: dict[str, Any], answer: Answer
) -> None:
    begun = begin(tmp_path, make(), **more)
    for before, after in phases(begun):
        assert after in GOES_TO[before], f"{before} goes to {after}"
    begun.close()


def checkpoints(run: Session) -> list[dict[str, Any]]:
    with sqlite3.connect(run.checkpoint) as connection:
        saver = SqliteSaver(connection)
        found = [dict(item.checkpoint["channel_values"]) for item in saver.list(None)]
    connection.close()
    return found


def test_checkpoints_are_small_and_plain(tmp_path: Path) -> None:
    run = play(tmp_path, World())
    kept = checkpoints(run)
    assert len(kept) > 10
    for values in kept:
        own = {name: item for name, item in values.items() if not name.startswith("__")}
        assert len(json.dumps(own)) < 2048
        plain = {"run_id", "cursor", "turn", "phase"}
        assert {name for name in own if not name.startswith("branch:")} <= plain
    last = max(kept, key=lambda values: values.get("cursor", -1))
    assert last["cursor"] == run.run.view.cursor
    assert last["phase"] == "end"


def test_a_question_is_one_interrupt_with_all_that_is_asked(tmp_path: Path) -> None:
    begun = begin(tmp_path, World(), mode="supervised")
    graph = build(begun.run).compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "x"}, "recursion_limit": 1000}
    state = graph.invoke({"run_id": "x"}, config)
    (interrupt,) = state["__interrupt__"]
    assert interrupt.value == ["a1"]
    before = len(begun.transcript.events)
    graph.invoke(None, config)
    assert len(begun.transcript.events) == before, "asked again without an answer: nothing is new"
    graph.invoke(Command(resume={"a1": "yes"}), config)
    assert [event.answer for event in events(begun, "approval_answered")] == ["yes"]
    assert len(events(begun, "call_started")) > 5
    begun.close()


def test_a_long_turn_meets_no_limit_of_the_graph(tmp_path: Path) -> None:
    many = [call("nonsense")] * 900
    run = play(tmp_path, World(), goal(limits={"steps": 2}), brain=Says(many))
    assert outcome(run) is Outcome.NOT_REACHED
    assert len(events(run, "call_ended")) > 900


def test_what_a_node_raises_comes_out_and_leaves_a_run_to_go_on_with(tmp_path: Path) -> None:
    world = World()

    def broken(name: str, when: str) -> None:
        if name == "config":
            raise ZeroDivisionError("a defect of ours")

    world.trap = broken
    begun = begin(tmp_path, world)
    with pytest.raises(ZeroDivisionError):
        drive(begun.run, nobody, begun.checkpoint)
    assert begun.run.view.ended is None
    world.trap = None
    assert drive(begun.run, nobody, begun.checkpoint) is Outcome.READY
    begun.close()
