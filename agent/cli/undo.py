"""Take back what a run has done: its servers are stopped, and what it stopped is started again.

Images and weights stay, since they harm nobody; the commands that would remove them are shown.
Exit code 0 where all was undone, 1 where something was not. For example:

    bringup undo last
"""

from __future__ import annotations

import typer

from agent import runs, session, settings
from agent.cli import common, output
from agent.cli.resume import Name
from agent.undo import undo


def run(name: Name = runs.LAST, json: common.OneJson = False) -> None:
    """Undo it on its own record, and say what came of it."""
    folder = runs.find_run(runs.runs_dir(settings.load()), name)
    taken = session.take_up(folder, environ=settings.environment())
    try:
        done = undo(taken.run)
    finally:
        taken.close()
    if json:
        output.document(
            run=folder.id,
            stopped=done.stopped,
            removed=done.removed,
            started=done.started,
            taken_back=done.taken_back,
            left=done.left,
            kept=done.kept,
        )
    else:
        lines = [f"stopped {item}" for item in done.stopped]
        lines += [f"removed the container {item}" for item in done.removed]
        lines += [f"started {item} again" for item in done.started]
        lines += [f"took back {item}" for item in done.taken_back]
        lines += done.left
        lines = lines or ["nothing was left to undo"]
        lines += [f"kept; to remove it: {item}" for item in done.kept]
        output.write("".join(f"{folder.id}: {line}\n" for line in lines))
    raise typer.Exit(1 if done.left else 0)
