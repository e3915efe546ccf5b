"""One run of N steps with a brain and a target that answer at once, in a process of its own.

``python -m tests.bench.episode CASE STEPS FOLDER`` prints its figures as one JSON line; CASE is
``ours`` or ``naive``. What is measured is a step: from one question to the brain to the next.
"""

from __future__ import annotations

import itertools
import json
import operator
import sqlite3
import statistics
import sys
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

from agent import approval, engine, goal, runs, session
from agent.brains.base import Reply, Request
from agent.control import GiveUp
from agent.values import Outcome, ToolCall
from tests.bench.rounds import Figures
from tests.bench.target import PIECES, Instant, log_lines
from tools.files import ReadFile
from tools.search import Grep

WINDOW = 25
"""Steps at a run's beginning and end that are looked at on their own."""
SAYS = "The log says more further on; what comes before the first error is what matters here. " * 2
SECRETS = {"HF_TOKEN": "bench-token-0123456789", "API_KEY": "bench-key-9876543210"}
CHECKPOINT = "checkpoint.sqlite"
TRANSCRIPT = "transcript.jsonl"


class Looking:
    """A brain that keeps reading logs, each time further on, and gives up after so many steps."""

    name = "looking"

    def __init__(self, steps: int) -> None:
        self.asked: list[tuple[float, float]] = []
        """When it was asked."""
        self._steps = steps

    def reply(self, request: Request) -> Reply:
        """Look where the run stands first, then at one log or the other."""
        self.asked.append(_now())
        turn = len(self.asked) - 1
        if turn == 0:
            return Reply("A first look.", tuple(filter(None, (request.frontier.call,))))
        if turn > self._steps:
            args = {"cause": "the steps of the benchmark are done", "advice": "Nothing."}
            return Reply("Done.", (ToolCall(tool=GiveUp().name, args=args),))
        if turn % 2:
            where: dict[str, Any] = {"path": "/srv/logs/server.log", "offset_bytes": turn * 4000}
            return Reply(SAYS, (ToolCall(tool=ReadFile().name, args=where),))
        where = {"pattern": f"ERROR.*step {turn}", "path": "/srv/logs"}
        return Reply(SAYS, (ToolCall(tool=Grep().name, args=where),))


def ours(steps: int, folder: Path) -> Figures:
    """Drive a run as the command line does: graph, checkpoints, synced transcript, redaction."""
    wanted = goal.parse_goal(
        {
            "model": "/srv/models/tiny",
            "candidates": [{"venv": "/srv/env"}],
            "limits": {"steps": steps + 10, "minutes": 60},
        },
        base=folder,
        where="bench",
    )
    brain, target = Looking(steps), Instant()
    begun = session.begin(
        wanted,
        approval.policy_for(wanted, "auto"),
        runs.new_run(folder, name="run"),
        brain=brain,
        interactive=False,
        environ=SECRETS,
    )
    begun.run.connectors = {host.name: target for host in wanted.hosts}
    try:
        outcome = engine.drive(begun.run, lambda _: None, begun.checkpoint)
    finally:
        begun.close()
    if outcome is not Outcome.NOT_REACHED or len(brain.asked) != steps + 2:
        raise RuntimeError(f"a run of {steps} steps ended {outcome} after {len(brain.asked)}")
    return {
        **_per_step(brain.asked[1:]),
        "checkpoint_bytes": _size(begun.folder.folder, CHECKPOINT) / steps,
        "transcript_bytes": _size(begun.folder.folder, TRANSCRIPT) / steps,
        "payload_bytes": target.payload_bytes / steps,
    }


class Messages(TypedDict):
    """The state of most agents on LangGraph: all messages, added to by every node."""

    messages: Annotated[list[dict[str, Any]], operator.add]


def naive(steps: int, folder: Path) -> Figures:
    """Drive the usual loop: messages in the state, two nodes, a checkpoint after each."""
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    pieces = ["\n".join(log_lines(seed)) for seed in range(PIECES)]
    asked: list[tuple[float, float]] = []

    def agent(state: Messages) -> Messages:
        asked.append(_now())
        turn = len(asked)
        call = {"id": f"t{turn}", "name": "read_file", "args": {"offset": turn * 4000}}
        calls = [call] if turn <= steps else []
        return {"messages": [{"role": "assistant", "content": SAYS, "calls": calls}]}

    def tools(state: Messages) -> Messages:
        (call,) = state["messages"][-1]["calls"]
        text = pieces[len(asked) % PIECES]
        return {"messages": [{"role": "tool", "call": call["id"], "content": text}]}

    graph: Any = StateGraph(Messages)
    graph.add_node("agent", agent)
    graph.add_node("tools", tools)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges(
        "agent", lambda state: "tools" if state["messages"][-1]["calls"] else END, ["tools", END]
    )
    graph.add_edge("tools", "agent")
    saver = SqliteSaver(sqlite3.connect(folder / CHECKPOINT, check_same_thread=False))
    config = {"recursion_limit": 4 * steps + 50, "configurable": {"thread_id": "run"}}
    try:
        app = graph.compile(checkpointer=saver)
        app.invoke({"messages": [{"role": "user", "content": SAYS}]}, config, durability="sync")
    finally:
        saver.conn.close()
    return {**_per_step(asked), "checkpoint_bytes": _size(folder, CHECKPOINT) / steps}


def _now() -> tuple[float, float]:
    """Return the wall's and the processor's clock, in seconds."""
    return time.perf_counter(), time.process_time()


def _per_step(asked: list[tuple[float, float]]) -> Figures:
    """Return milliseconds a step, by the wall's and the processor's clock."""
    wall, cpu = ([at[clock] * 1e3 for at in asked] for clock in (0, 1))
    spent = [after - before for before, after in itertools.pairwise(wall)]
    return {
        "cpu_ms": (cpu[-1] - cpu[0]) / len(spent),
        "ms": statistics.fmean(spent),
        "first_ms": statistics.fmean(spent[:WINDOW]),
        "last_ms": statistics.fmean(spent[-WINDOW:]),
    }


def _size(folder: Path, name: str) -> int:
    """Return the size of a file and of those that SQLite keeps beside it, in bytes."""
    return sum(path.stat().st_size for path in folder.glob(f"{name}*"))


if __name__ == "__main__":
    case, number, place = sys.argv[1:]
    measured = {"ours": ours, "naive": naive}[case](int(number), Path(place))
    sys.stdout.write(json.dumps(measured) + "\n")
