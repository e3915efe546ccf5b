"""Go on with a run that was parked, or that broke off.

What has a result is not done again; what is asked is asked again. For example:

    bringup resume last
"""

from __future__ import annotations

from typing import Annotated

import typer

from agent import runs, session, settings
from agent.cli import common

Name = Annotated[str, typer.Argument(metavar="RUN", help="A run, or `last`.")]


def run(name: Name = runs.LAST, json: common.Json = False) -> None:
    """Take the run up and drive it on."""
    taken = take_up(name)
    raise typer.Exit(common.finish(taken, as_json=json))


def take_up(name: str) -> session.Session:
    """Open a run again that has not ended.

    Raises:
        RunError: there is no such run, or it has ended.
        TranscriptError: it is being written, or damaged.
    """
    folder = runs.find_run(runs.runs_dir(settings.load()), name)
    taken = session.take_up(folder, environ=settings.environment())
    ended = taken.run.view.ended
    if ended is not None:
        taken.close()
        how = ended.outcome.value.replace("_", " ")
        raise runs.RunError(
            f"{folder.id}: the run has ended ({how}); `bringup deploy` begins a new one, which "
            "finds what is there"
        )
    return taken
