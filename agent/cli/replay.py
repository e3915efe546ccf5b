"""Play transcripts again, offline, and compare: today's code on what was recorded.

Exit code 0 where all are the same; 1 where one differs, and its first difference is shown; 2 where
one cannot be read. For example:

    bringup replay last
    bringup replay transcripts/*.jsonl
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from agent.cli import common, output
from agent.cli.shell import WRONG_INPUT
from agent.cli.show import transcript_of
from agent.problems import Problem
from agent.replay import Replayed, replay
from agent.timeline_rows import one_line
from agent.transcript import TranscriptError, read

Files = Annotated[list[str], typer.Argument(metavar="FILE|RUN", help="Transcripts, or runs.")]


def run(files: Files, json: common.OneJson = False) -> None:
    """Replay each file and say what came of it."""
    rows = [_replayed(name) for name in files]
    if json:
        output.document(replays=[_as_data(*pair) for pair in zip(files, rows, strict=True)])
    else:
        for name, row in zip(files, rows, strict=True):
            _tell(name, row)
    if any(isinstance(row, Problem) for row in rows):
        raise typer.Exit(WRONG_INPUT)
    raise typer.Exit(0 if all(isinstance(row, Replayed) and row.same for row in rows) else 1)


def _replayed(name: str) -> Replayed | Problem:
    try:
        path = transcript_of(name)
        return _replay(path)
    except Problem as problem:
        return problem


def _replay(path: Path) -> Replayed:
    """Replay a transcript; one with holes may go wrong anywhere.

    Raises:
        TranscriptError: it is damaged.
    """
    try:
        return replay(path)
    except (LookupError, TypeError, ValueError) as error:
        damage = read(path).problems
        if not damage:
            raise
        raise TranscriptError(f"{damage[0]}; it can be shown, and not replayed") from error


def _as_data(name: str, row: Replayed | Problem) -> dict[str, object]:
    if isinstance(row, Problem):
        return {"path": name, "error": str(row)}
    return dataclasses.asdict(row) | {"same": row.same}


def _tell(name: str, row: Replayed | Problem) -> None:
    if isinstance(row, Problem):
        output.complain(str(row), as_json=False, code=WRONG_INPUT)
        return
    found = row.difference
    if found is None:
        output.write(f"same     {name}: {row.total} events\n")
        return
    output.write(
        f"differs  {name}: at {found.event}, {found.field}, after {row.compared} of {row.total}\n"
        f"  recorded  {one_line(found.recorded)}\n"
        f"  now       {one_line(found.now)}\n"
    )
