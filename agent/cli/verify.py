"""Run a run's checks again, now, without any brain; good for cron.

Exit code 0 where all hold, 1 where one does not. For example:

    bringup verify last
"""

from __future__ import annotations

import typer

from agent import runs, session, settings
from agent.checking import run_check
from agent.cli import common, output
from agent.cli.resume import Name
from agent.judge import Verdict
from agent.kinds.unknown import decisive_line
from agent.timeline_rows import one_line
from agent.transcript import MemoryTranscript, read


def run(name: Name = runs.LAST, json: common.OneJson = False) -> None:
    """Run the checks beside the record: nothing is added to it."""
    folder = runs.find_run(runs.runs_dir(settings.load()), name)
    again = session.beside(folder, read(folder.transcript), MemoryTranscript())
    rows = []
    for check in again.view.need_goal().all_checks:
        verdict = run_check(again, check, f"again.{check}", "verify").verdict
        rows.append({"name": check, "passed": verdict.passed, "text": _text(verdict)})
    if json:
        output.document(run=folder.id, checks=rows)
    else:
        for row in rows:
            mark = "holds" if row["passed"] else "fails"
            output.write(f"{mark}  {row['name']}: {row['text']}\n")
    raise typer.Exit(0 if all(row["passed"] for row in rows) else 1)


def _text(verdict: Verdict) -> str:
    return one_line(decisive_line(verdict.failure) or verdict.text)
