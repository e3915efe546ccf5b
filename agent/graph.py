"""The graph of a run: nodes and edges, and nothing else.

::

    survey ─► decide ─► act ─► approve ─┐
                ▲        ▲  ◄───────────┘
                └────────┤
                         └─ claimed ready ─► verify ─► report

``phase`` is the only rule of order, a function of the fold; the graph here and the plain loop of a
replay both follow it. Checkpoints hold a cursor and the phase: the transcript is the truth.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from agent.approve import heed
from agent.phases import NODES, Phase, go, phase
from agent.run import Run

GOES_TO: dict[str, tuple[Phase, ...]] = {
    START: tuple(Phase),
    Phase.SURVEY: (Phase.DECIDE, Phase.REPORT),
    Phase.DECIDE: (Phase.ACT, Phase.DECIDE, Phase.REPORT),
    Phase.ACT: (Phase.ACT, Phase.APPROVE, Phase.DECIDE, Phase.VERIFY, Phase.REPORT),
    Phase.APPROVE: (Phase.ACT, Phase.APPROVE, Phase.REPORT),
    Phase.VERIFY: (Phase.ACT, Phase.DECIDE, Phase.REPORT),
    Phase.REPORT: (Phase.END,),
}
"""Every edge there is. A run begins anywhere, since it may go on from a transcript."""


class RunState(TypedDict, total=False):
    """What a checkpoint holds: less than 2 KB, JSON primitives only."""

    run_id: str
    cursor: int
    turn: int
    phase: str


def build(run: Run) -> StateGraph[RunState, None, RunState, RunState]:
    """Lay the nodes of one run out; the caller compiles it with a checkpointer or without."""
    graph: StateGraph[RunState, None, RunState, RunState] = StateGraph(RunState)
    for name in NODES:
        graph.add_node(name, _node(run, name))
    graph.add_node(Phase.APPROVE.value, _approve(run))
    for start, ends in GOES_TO.items():
        targets: dict[Hashable, str] = {end.value: end.value for end in ends}
        if Phase.END in ends:
            targets[Phase.END.value] = END
        graph.add_conditional_edges(start, lambda _: phase(run.view).value, targets)
    return graph


def _node(run: Run, name: str) -> Any:
    def node(state: RunState) -> dict[str, Any]:
        go(run, name)
        return _state(run)

    return node


def _approve(run: Run) -> Any:
    """A node of its own: LangGraph runs it again from its first line when it is resumed."""

    def node(state: RunState) -> dict[str, Any]:
        asked = [item.approval_id for item in run.view.pending_approvals]
        heed(run, interrupt(asked))
        return _state(run)

    return node


def _state(run: Run) -> dict[str, Any]:
    view = run.view
    return {"cursor": view.cursor, "turn": view.turn, "phase": phase(view).value}
