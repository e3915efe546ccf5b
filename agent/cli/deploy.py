"""Bring a goal's server up, and prove it.

The goal is a YAML file, and docs/goal.md tells all its keys. A small one:

    model: ./models/my-model
    candidates:
      - venv: ./env
    port: 8000

For example:

    bringup deploy goal.yaml
    bringup deploy goal.yaml --mode auto --json
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from agent import approval, goal, runs, session, settings
from agent.cli import common
from agent.problems import Problem


def run(
    goal_file: Annotated[Path, typer.Argument(metavar="GOAL", help="The goal file.")],
    brain: common.BrainName = None,
    mode: common.Mode = None,
    yes: common.Yes = False,
    on_ask: common.OnAsk = None,
    json: common.Json = False,
) -> None:
    """Read the goal, begin a run, drive it."""
    chosen = settings.load(brain=brain, mode=mode, on_ask=on_ask)
    wanted = goal.load_goal(goal_file)
    raise typer.Exit(start(wanted, chosen, yes=yes, as_json=json))


Began = Callable[[runs.RunFolder], None]
"""Told the run's folder once the run has begun."""


def start(
    wanted: goal.Goal,
    chosen: settings.Settings,
    *,
    yes: bool,
    as_json: bool,
    began: Began | None = None,
) -> int:
    """Begin a run of a goal, drive it, and return the exit code."""
    policy = approval.policy_for(
        wanted,
        chosen.mode,
        yes=yes,
        on_ask=chosen.on_ask,
        torch_index=chosen.torch_index,
    )
    brain = session.brain_named(chosen.brain)
    folder = runs.new_run(runs.runs_dir(chosen))
    try:
        begun = session.begin(
            wanted,
            policy,
            folder,
            brain=brain,
            interactive=common.interactive() and not as_json,
            environ=settings.environment(),
        )
    except Problem:
        runs.drop_empty(folder)
        raise
    if began is not None:
        began(begun.folder)
    return common.finish(begun, as_json=as_json)
