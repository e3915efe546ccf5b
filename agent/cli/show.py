"""Show a run or a transcript as a timeline.

For example:

    bringup show last
    bringup show transcripts/demo.jsonl
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agent import runs, settings
from agent.cli import common, output
from agent.events import AnyEvent, ApprovalAnswered, ApprovalAsked, RunEnded
from agent.redact import Redactor
from agent.timing import split
from agent.transcript import read

What = Annotated[str, typer.Argument(metavar="RUN|FILE", help="A run, `last`, or a file.")]


def run(what: What = runs.LAST, json: common.OneJson = False) -> None:
    """Read the transcript and render it; a run of this machine with this machine's paths."""
    path = transcript_of(what)
    loaded = read(path)
    here = Redactor.from_private(runs.RunFolder(path.parent, path.parent.name).read_private(), {})
    events = [here.restore(event) for event in loaded.events]
    if json:
        rows = [event.model_dump(mode="json") for event in events]
        output.document(path=str(path), events=rows, problems=loaded.problems)
        return
    notes = [f"time: {split(events).text}", *_waiting(events)]
    notes += [f"note: {problem}" for problem in loaded.problems]
    output.write(_rendered(events, notes))


def transcript_of(what: str) -> Path:
    """Return the transcript that a run's name or a file's path means.

    Raises:
        RunError: it is neither.
    """
    path = Path(what)
    if path.is_file():
        return path
    if "/" in what or path.suffix == ".jsonl":
        reason = "not a file" if path.exists() else "no such file"
        raise runs.RunError(f"{what}: {reason}; name a transcript, or a run (`bringup runs`)")
    return runs.find_run(runs.runs_dir(settings.load()), what).transcript


def _waiting(events: list[AnyEvent]) -> list[str]:
    """Say how what a parked run asks is answered."""
    if any(isinstance(event, RunEnded) for event in events):
        return []
    answered = {event.approval_id for event in events if isinstance(event, ApprovalAnswered)}
    asked = [event.approval_id for event in events if isinstance(event, ApprovalAsked)]
    name = getattr(events[0], "run_id", "RUN")
    is_open = any(item not in answered for item in asked)
    return [f"it waits for an answer: bringup approve {name}"] if is_open else []


def _rendered(events: list[AnyEvent], notes: list[str]) -> str:
    from rich.console import Console

    from agent.timeline import render

    console = Console()
    with output.guarded(), console.capture() as captured:
        console.print(render(events))
        for note in notes:
            console.print(_plain(note), soft_wrap=True)
    return captured.get()


def _plain(text: str) -> Any:
    from rich.text import Text

    from agent.visible import visible

    return Text(visible(text))
