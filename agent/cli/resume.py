"""Go on with a run that was parked, or that broke off.

What has a result is not done again; what is asked is asked again. Without a terminal, a step that
waits for an operator counts as done: a look tells. For example:

    bringup resume last
"""

from __future__ import annotations

from typing import Annotated

import typer

from agent import runs, session, settings
from agent.approve import heed
from agent.asking import DeciderChanged
from agent.brains import choose
from agent.brains.base import Brain
from agent.cli import common
from agent.cli.output import say
from agent.events import RunStarted
from agent.goal import recorded_goal
from tools.host_changes import OperatorStep

Name = Annotated[str, typer.Argument(metavar="RUN", help="A run, or `last`.")]


def run(
    name: Name = runs.LAST,
    brain: common.BrainName = None,
    base_url: common.BaseUrl = None,
    model: common.ModelName = None,
    json: common.Json = False,
) -> None:
    """Take the run up and drive it on."""
    taken = take_up(name, choose.Asked(brain, base_url, model))
    if not common.interactive():
        _say_done(taken)
    raise typer.Exit(common.finish(taken, as_json=json))


def _say_done(taken: session.Session) -> None:
    """Take the run's being taken up for the word that what was to be done by hand is done."""
    view = taken.run.view
    steps = [
        item.approval_id
        for item in view.pending_approvals
        if view.calls[item.call_id].call.tool == OperatorStep().name
    ]
    heed(taken.run, {item: {"answer": "yes", "note": "the run was resumed"} for item in steps})


def take_up(name: str, asked: choose.Asked) -> session.Session:
    """Open a run again that has not ended, with the brain that it was begun with.

    Args:
        name: a run's id, or ``last``.
        asked: flags; a brain or a model that they name goes before the run's own.

    Raises:
        RunError: there is no such run, or it has ended.
        TranscriptError: it is being written, or damaged.
    """
    chosen = settings.load()
    folder = runs.find_run(runs.runs_dir(chosen), name)

    choices: list[choose.Choice] = []

    def again(header: RunStarted) -> Brain:
        choices.append(choose.chosen_then(header, chosen, asked))
        goal = recorded_goal(header.goal, header.version)
        return choose.brain_of(choices[0], chosen, goal, say)

    taken = session.take_up(folder, environ=settings.environment(), choose=again)
    ended = taken.run.view.ended
    if ended is not None:
        taken.close()
        how = ended.outcome.value.replace("_", " ")
        raise runs.RunError(
            f"{folder.id}: the run has ended ({how}); `bringup deploy` begins a new one, which "
            "finds what is there"
        )
    _note_change(taken, choices[0])
    return taken


def _note_change(taken: session.Session, choice: choose.Choice) -> None:
    """Put on record that another brain decides from now on."""
    view = taken.run.view
    if (choice.name, choice.endpoint) != (view.brain, view.endpoint):
        taken.run.record(DeciderChanged(brain=choice.name, endpoint=choice.endpoint))
