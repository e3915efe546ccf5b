"""List the runs, the last started first: name, state and model.

For example:

    bringup runs
"""

from __future__ import annotations

from agent import settings
from agent.cli import common, output
from agent.redact import Redactor
from agent.runs import RunError, RunSummary, list_runs, runs_dir
from agent.timeline_rows import one_line


def run(json: common.OneJson = False) -> None:
    """Print a line each."""
    found = list_runs(runs_dir(settings.load()))
    if json:
        rows = [{"id": item.run.id, "state": item.state, "model": _model(item)} for item in found]
        output.document(runs=rows)
        return
    if not found:
        output.say("no runs yet; `bringup demo` makes one")
    for item in found:
        line = f"{item.run.id}  {item.state.replace('_', ' '):<12} {one_line(_model(item))}"
        output.write(line.rstrip() + "\n")


def _model(item: RunSummary) -> str:
    """Return the model, with this machine's paths where they are kept."""
    if item.started is None:
        return ""
    goal = item.started.goal
    model = str(goal.get("model", "")) or ", ".join(goal.get("provide") or ())
    try:
        return Redactor.from_private(item.run.read_private(), {}).restore(model)
    except RunError:  # the list goes on; a verb that needs the paths says what is wrong
        return model
