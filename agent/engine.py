"""Drives a run: through the graph, live; or the same nodes in a plain loop, for a replay."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.act import settle
from agent.approve import heed
from agent.brains.base import BrainFailed
from agent.dispatch import execute, prepare, queue
from agent.effects import UNSURE
from agent.events import ApprovalAsked, CallEnded
from agent.launch import stop_call
from agent.phases import Phase, go, phase
from agent.report import ended
from agent.run import Run
from agent.values import CallStatus, Outcome, ToolCall
from tools.containers import InspectContainer
from tools.errors import ConnectionFailed

Answer = Callable[[list[ApprovalAsked]], Mapping[str, Any] | None]
"""Asks a person; ``None`` where nobody can be asked: the run parks."""

STOPS = "the run stops what it started"
"""Why a server is stopped that no brain has asked to stop."""
STARTS = ("start_server", "start_job")
"""Tools whose effect goes on running."""
MOST_STEPS = 1_000_000
"""Supersteps of LangGraph: never what ends a run, which has limits of its own."""


def drive(run: Run, answer: Answer, checkpoint: Path | None = None) -> Outcome:
    """Run the graph to its end, to a question that nobody answers, or to an interrupt.

    Args:
        run: the run; its transcript may already hold events, which are not repeated.
        answer: asked whenever approvals are open.
        checkpoint: SQLite file for LangGraph's checkpoints; ``None`` for none.
    """
    try:
        return _drive(run, answer, checkpoint)
    except BrainFailed:
        return Outcome.UNREACHABLE  # the run has not ended: it waits for `bringup resume`
    except KeyboardInterrupt:
        return interrupted(run)


def _drive(run: Run, answer: Answer, checkpoint: Path | None) -> Outcome:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.types import Command

    from agent.graph import build

    if checkpoint is None:
        saver: Any = InMemorySaver()
    else:
        saver = SqliteSaver(sqlite3.connect(checkpoint, check_same_thread=False))
        saver.conn.execute("PRAGMA synchronous=NORMAL")  # only the transcript has to last
    try:
        graph = build(run).compile(checkpointer=saver)
        header = run.view.header
        name = f"{header.run_id if header else 'run'}@{run.view.cursor}"
        config: Any = {"configurable": {"thread_id": name}, "recursion_limit": MOST_STEPS}
        given: Any = {"run_id": header.run_id if header else ""}
        settle(run)
        gc.freeze()  # what is loaded by now stays: a collection need not go through it
        while True:
            graph.invoke(given, config, durability="async")
            if phase(run.view) is not Phase.APPROVE:
                break
            answers = answer(run.view.pending_approvals)
            if answers is None:
                return Outcome.PARKED
            given = Command(resume=dict(answers))
    finally:
        gc.unfreeze()
        if checkpoint is not None:
            saver.conn.close()
    return run.view.ended.outcome if run.view.ended else Outcome.NOT_REACHED


def loop(run: Run, answer: Answer) -> Outcome:
    """Drive the same nodes by the same rule without LangGraph, for fast replays."""
    settle(run)
    with suppress(BrainFailed):
        return _loop(run, answer)
    return Outcome.UNREACHABLE


def _loop(run: Run, answer: Answer) -> Outcome:
    while (now := phase(run.view)) is not Phase.END:
        if now is Phase.APPROVE:
            answers = answer(run.view.pending_approvals)
            if answers is None:
                return Outcome.PARKED
            heed(run, dict(answers))
        else:
            go(run, now)
    return run.view.ended.outcome if run.view.ended else Outcome.NOT_REACHED


def interrupted(run: Run) -> Outcome:
    """Close the books after Ctrl-C; what runs is kept or stopped, as the goal says."""
    view = run.view
    if view.ended is not None:
        return view.ended.outcome
    for record in list(view.calls.values()):
        if record.ended < 0:
            started = record.started >= 0
            status = CallStatus.UNKNOWN if started else CallStatus.CANCELLED
            words = "interrupted while it was under way" if started else "interrupted"
            run.record(
                CallEnded(
                    call_id=record.call.id, tool=record.call.tool, status=status, message=words
                )
            )
    if view.need_goal().on_interrupt == "stop":
        stop_servers(run)
    run.record(ended(view, Outcome.INTERRUPTED))
    return Outcome.INTERRUPTED


def stop_servers(run: Run) -> list[str]:
    """Stop every server that this run started, and return those that would not end."""
    view = run.view
    started = [
        record
        for record in view.calls.values()
        if record.call.tool in STARTS and record.started >= 0
    ]
    left: list[str] = []
    for record in started:
        job = view.job_of(record)
        gone = job in view.effects.stopped or _stop(run, record.call, job)
        if not gone and record.status is not CallStatus.FAILED:
            left.append(job)
    for name, record in list(view.effects.services.items()):
        if record.status in UNSURE:
            _look_whose(run, name, record.call)
        alive = name in view.effects.services and name not in view.effects.removed
        if alive and not _stop(run, record.call, name):
            left.append(name)
    return left


def _look_whose(run: Run, name: str, started: ToolCall) -> None:
    """See whether a container whose start broke off is there, and is the one that was meant."""
    tool = InspectContainer().name
    carry_out(run, ToolCall(tool=tool, args={"name": name}, target=started.target, why=STOPS))


def _stop(run: Run, started: ToolCall, name: str) -> bool:
    carry_out(run, stop_call(name, started, STOPS))
    return name in run.view.effects.stopped | run.view.effects.removed


def carry_out(run: Run, call: ToolCall) -> CallStatus:
    """Make a call of the person's, outside of any brain, on the run's record."""
    ready = prepare(run, call.model_copy(update={"id": f"x{run.view.cursor}"}))
    queue(run, ready, "brain")
    try:
        return execute(run, ready).status
    except ConnectionFailed:
        return CallStatus.UNKNOWN
