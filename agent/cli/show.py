"""Show a run or a transcript as a timeline.

For example:

    bringup show last
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agent import runs, settings
from agent.redact import Redactor
from agent.timing import split
from agent.transcript import read


def run(
    what: Annotated[str, typer.Argument(metavar="RUN|FILE", help="A run, `last`, or a file.")],
    json: Annotated[bool, typer.Option("--json", help="The events as one JSON document.")] = False,
) -> None:
    """Read the transcript and render it; a run of this machine with this machine's paths."""
    path = transcript_of(what)
    loaded = read(path)
    here = Redactor.from_private(runs.RunFolder(path.parent, path.parent.name).read_private(), {})
    if json:
        events = ",".join(event.model_dump_json() for event in loaded.events)
        sys.stdout.write(f'{{"path": "{path}", "events": [{events}]}}\n')
        return
    from rich.console import Console

    from agent.timeline import render

    console = Console()
    console.print(render([here.restore(event) for event in loaded.events]))
    console.print(f"time: {split(loaded.events).text}", markup=False)
    for problem in loaded.problems:
        console.print(f"note: {problem}", markup=False)


def transcript_of(what: str) -> Path:
    """Return the transcript that a run's name or a file's path means.

    Raises:
        RunError: it is neither.
    """
    path = Path(what)
    if path.is_file():
        return path
    return runs.find_run(runs.runs_dir(settings.load()), what).transcript
