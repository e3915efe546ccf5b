"""Stop what a run left running: its servers, by the jobs that it started.

Exit code 0 where nothing runs any more, 1 where something would not end. For example:

    bringup stop last
"""

from __future__ import annotations

import typer

from agent import runs, session, settings
from agent.cli import common, output
from agent.cli.resume import Name
from agent.engine import stop_servers


def run(name: Name = runs.LAST, json: common.OneJson = False) -> None:
    """Stop its servers and say what came of it."""
    folder = runs.find_run(runs.runs_dir(settings.load()), name)
    stopped, left, others = stop(folder)
    if json:
        output.document(run=folder.id, stopped=stopped, left=left, still_stopped=others)
    else:
        words = f"stopped {', '.join(stopped)}" if stopped else "nothing was left running"
        lines = [words] if stopped or not left else []
        lines += [f"{job} would not end; `bringup show {folder.id}` names it" for job in left]
        lines += [
            f"{name} is still stopped; `bringup undo {folder.id}` starts it" for name in others
        ]
        output.write("".join(f"{folder.id}: {line}\n" for line in lines))
    raise typer.Exit(1 if left else 0)


def stop(folder: runs.RunFolder) -> tuple[list[str], list[str], list[str]]:
    """Stop a run's servers, on its own record.

    Returns:
        What was stopped, what would not end, and services of others that the run ended before.
    """
    taken = session.take_up(folder, environ=settings.environment())
    try:
        effects = taken.run.view.effects
        before = [*taken.run.view.servers, *effects.working, *effects.serving]
        left = stop_servers(taken.run)
    finally:
        taken.close()
        ended = {
            str(record.call.args.get("job"))
            for record in taken.run.view.calls.values()
            if record.observation.get("outcome") == "was_not_running"
        }
    done = [job for job in before if job not in left and job not in ended]
    return done, left, list(taken.run.view.effects.ended_others)
