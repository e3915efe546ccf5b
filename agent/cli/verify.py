"""Run a run's checks again, now, without any brain; good for cron.

Exit code 0 where all hold, 1 where one does not. Example:

    bringup verify last
"""

from __future__ import annotations

import json as json_module
import sys
from typing import Annotated

import typer

from agent import runs, session, settings
from agent.checking import run_check
from agent.transcript import MemoryTranscript, read


def run(
    name: Annotated[str, typer.Argument(metavar="RUN", help="A run, or `last`.")] = runs.LAST,
    json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Run the checks beside the record: nothing is added to it."""
    folder = runs.find_run(runs.runs_dir(settings.load()), name)
    again = session.beside(folder, read(folder.transcript).events, MemoryTranscript())
    rows = []
    for check in again.view.need_goal().all_checks:
        verdict = run_check(again, check, f"again.{check}", "verify").verdict
        rows.append(
            {"name": check, "passed": verdict.passed, "text": verdict.failure or verdict.text}
        )
    if json:
        sys.stdout.write(json_module.dumps({"run": folder.id, "checks": rows}) + "\n")
    else:
        for row in rows:
            mark = "holds" if row["passed"] else "fails"
            sys.stdout.write(f"{mark}  {row['name']}: {row['text']}\n")
    raise typer.Exit(0 if all(row["passed"] for row in rows) else 1)
