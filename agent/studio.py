"""The graph as LangGraph Studio wants it: built per run, without a checkpointer of ours.

The goal file and the mode come as configuration (``goal``, ``mode``). Where no goal is given, a
goal that only looks is used, so that the picture can be drawn.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from agent import approval, inventory, session, settings
from agent.brains import choose
from agent.goal import Goal, load_goal, parse_goal
from agent.graph import build
from agent.runs import new_run, runs_dir


def graph(config: dict[str, Any]) -> Any:
    """Return the compiled graph of a new run.

    Args:
        config: ``configurable`` may hold ``goal`` (path of a goal file) and ``mode``.

    Raises:
        GoalError: the goal file cannot be used.
    """
    given = config.get("configurable") or {}
    chosen = settings.load(mode=given.get("mode"))
    wanted = _wanted(given["goal"], chosen) if given.get("goal") else _only_looks()
    choice = choose.chosen_by(chosen)
    brain = choose.brain_of(choice, chosen, wanted, lambda words: None)
    begun = session.begin(
        wanted,
        approval.policy_for(wanted, chosen.mode, torch_index=chosen.torch_index),
        new_run(runs_dir(chosen)),
        brain=brain,
        endpoint=choice.endpoint,
        interactive=True,
        environ=settings.environment(),
    )
    return build(begun.run).compile()


def _wanted(goal: str, chosen: settings.Settings) -> Goal:
    return load_goal(Path(goal), lambda: inventory.found(chosen.inventory))


def _only_looks() -> Goal:
    here = {"venv": sys.prefix}
    return parse_goal(
        {"kind": "diagnose", "model": "config.json", "candidates": [here]},
        base=Path.cwd(),
        where="studio",
    )
