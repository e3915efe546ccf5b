"""Stop what a run left running: its servers, by the jobs that it started.

For example:

    bringup stop last
"""

from __future__ import annotations

import json as json_module
import sys
from typing import Annotated

import typer

from agent import runs, session, settings
from agent.engine import stop_servers


def run(
    name: Annotated[str, typer.Argument(metavar="RUN", help="A run, or `last`.")] = runs.LAST,
    json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Stop its servers and say what came of it."""
    folder = runs.find_run(runs.runs_dir(settings.load()), name)
    stopped, left = stop(folder)
    if json:
        sys.stdout.write(json_module.dumps({"stopped": stopped, "left": left}) + "\n")
    else:
        words = f"stopped {', '.join(stopped)}" if stopped else "nothing was left running"
        sys.stdout.write(f"{folder.id}: {words}\n")
        for job in left:
            sys.stdout.write(f"{folder.id}: {job} would not end; see its folder\n")
    raise typer.Exit(1 if left else 0)


def stop(folder: runs.RunFolder) -> tuple[list[str], list[str]]:
    """Stop a run's servers, on its own record; return the jobs stopped and those left."""
    taken = session.take_up(folder, environ=settings.environment())
    try:
        before = taken.run.view.may_run
        left = stop_servers(taken.run)
    finally:
        taken.close()
    return [job for job in before if job not in left], left
