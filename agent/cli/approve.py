"""Answer what a parked run asks, and go on with it.

For example:

    bringup approve last
    bringup approve last --answer no --note "not on this port"
"""

from __future__ import annotations

from typing import Annotated

import typer

from agent import runs
from agent.approve import heed
from agent.brains import choose
from agent.cli import common
from agent.cli.resume import Name, take_up
from agent.problems import Problem


def run(
    name: Name = runs.LAST,
    answer: Annotated[str, typer.Option(help="yes, no, stop, or one of the choices.")] = "yes",
    approval: Annotated[
        str | None, typer.Option(help="Only this approval, such as a1; default: all open ones.")
    ] = None,
    note: Annotated[str, typer.Option(help="A reason; the brain reads it.")] = "",
    json: common.Json = False,
) -> None:
    """Record the answers and drive the run on."""
    taken = take_up(name, choose.Asked())
    try:
        open_ones = [item.approval_id for item in taken.run.view.pending_approvals]
        if not open_ones:
            raise runs.RunError(f"{taken.folder.id}: nothing is asked; `bringup resume` goes on")
        wanted = [approval] if approval else open_ones
        heed(taken.run, {item: {"answer": answer, "note": note} for item in wanted})
    except Problem:
        taken.close()
        raise
    raise typer.Exit(common.finish(taken, as_json=json))
