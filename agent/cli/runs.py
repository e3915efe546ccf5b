"""List the runs, the last started first.

For example:

    bringup runs
"""

from __future__ import annotations

import json as json_module
import sys
from typing import Annotated

import typer

from agent import settings
from agent.redact import Redactor
from agent.runs import RunSummary, list_runs, runs_dir


def run(
    json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Print a line each."""
    found = list_runs(runs_dir(settings.load()))
    if json:
        rows = [{"id": item.run.id, "state": item.state, "model": _model(item)} for item in found]
        sys.stdout.write(json_module.dumps({"runs": rows}) + "\n")
        return
    if not found:
        sys.stderr.write("no runs yet; `bringup demo` makes one\n")
    for item in found:
        sys.stdout.write(f"{item.run.id}  {item.state:<12} {_model(item)}\n")


def _model(item: RunSummary) -> str:
    if item.started is None:
        return ""
    redactor = Redactor.from_private(item.run.read_private(), {})
    return redactor.restore(str(item.started.goal.get("model", "")))
