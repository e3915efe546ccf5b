"""Bring a goal's server up, and prove it.

The goal is a YAML file, and docs/goal.md tells all its keys. A small one:

    model: ./models/my-model
    candidates:
      - venv: ./env
    port: 8000

For example:

    bringup deploy goal.yaml
    bringup deploy goal.yaml --mode auto --json
    bringup deploy goal.yaml --model qwen3 --base-url http://gpu-box:8000/v1
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from agent import approval, goal, inventory, runs, session, settings
from agent.brains import choose
from agent.brains.base import Brain
from agent.cli import common
from agent.cli.output import say
from agent.problems import Problem


def run(
    goal_file: Annotated[Path, typer.Argument(metavar="GOAL", help="The goal file.")],
    brain: common.BrainName = None,
    base_url: common.BaseUrl = None,
    model: common.ModelName = None,
    mode: common.Mode = None,
    yes: common.Yes = False,
    on_ask: common.OnAsk = None,
    json: common.Json = False,
) -> None:
    """Read the goal, begin a run, drive it."""
    chosen = settings.load(brain=brain, base_url=base_url, model=model, mode=mode, on_ask=on_ask)
    wanted = goal.load_goal(goal_file, lambda: inventory.found(chosen.inventory))
    raise typer.Exit(start(wanted, chosen, yes=yes, as_json=json))


Decider = tuple[choose.Choice, Brain]
"""Who decides: the choice, and the brain that is ready to be asked."""


def decided_by(chosen: settings.Settings, wanted: goal.Goal) -> Decider:
    """Return who decides; a model's endpoint is examined."""
    choice = choose.chosen_by(chosen)
    return choice, choose.brain_of(choice, chosen, wanted, say)


Began = Callable[[runs.RunFolder], None]
"""Told the run's folder once the run has begun."""


def start(
    wanted: goal.Goal,
    chosen: settings.Settings,
    *,
    yes: bool,
    as_json: bool,
    began: Began | None = None,
    decider: Decider | None = None,
) -> int:
    """Begin a run of a goal, drive it, and return the exit code.

    Args:
        wanted: the goal.
        chosen: the settings.
        yes: whether a flag answers what it may.
        as_json: whether events go to standard output.
        began: is told the run's folder.
        decider: who decides, where that was found out before.
    """
    choice, brain = decider or decided_by(chosen, wanted)
    policy = approval.policy_for(
        wanted,
        chosen.mode,
        yes=yes,
        on_ask=chosen.on_ask,
        torch_index=chosen.torch_index,
    )
    folder = runs.new_run(runs.runs_dir(chosen))
    try:
        begun = session.begin(
            wanted,
            policy,
            folder,
            brain=brain,
            endpoint=choice.endpoint,
            interactive=common.interactive() and not as_json,
            environ=settings.environment(),
        )
    except Problem:
        runs.drop_empty(folder)
        common.close(brain)
        raise
    if began is not None:
        began(begun.folder)
    return common.finish(begun, as_json=as_json)
