"""Play transcripts again, offline, and compare: today's code on what was recorded.

Exit code 0 where all are the same, 1 where one differs; the first difference is shown. Example:

    bringup replay transcripts/*.jsonl
"""

from __future__ import annotations

import dataclasses
import json as json_module
import sys
from pathlib import Path
from typing import Annotated

import typer

from agent.cli.show import transcript_of
from agent.replay import Replayed, replay


def run(
    files: Annotated[list[Path], typer.Argument(metavar="FILE|RUN…", help="Transcripts.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Replay each file and say what came of it."""
    results = [replay(transcript_of(str(path))) for path in files]
    if json:
        rows = [dataclasses.asdict(row) | {"same": row.same} for row in results]
        sys.stdout.write(json_module.dumps({"replays": rows}) + "\n")
    else:
        for row in results:
            sys.stdout.write(_text(row))
    raise typer.Exit(0 if all(row.same for row in results) else 1)


def _text(row: Replayed) -> str:
    name = Path(row.path).name
    found = row.difference
    if found is None:
        return f"same     {name}: {row.total} events\n"
    return (
        f"differs  {name}: at {found.event}, {found.field}, after {row.compared} of {row.total}\n"
        f"  recorded  {found.recorded}\n"
        f"  now       {found.now}\n"
    )
