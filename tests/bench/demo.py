"""How a demo's wall time splits up: pip, loading, other commands, and our own part."""

from __future__ import annotations

from pathlib import Path

from agent.events import RunStarted
from agent.timing import split
from agent.transcript import read
from tests.bench.table import Row, short
from tests.lab.checkout import ROOT

MOST_PERCENT = 5.0
"""Target: our own part of the whole."""


def rows(given: Path | None) -> list[Row]:
    """Split the given run, or the newest demo that the project has recorded; none is no row."""
    path = given or _newest()
    if path is None:
        return []
    spent = split(read(path).events)
    named = f"demo ({path.name})" if given is None else "demo"
    parts = {
        "pip": spent.pip_s,
        "loading": spent.load_s,
        "other commands": spent.commands_s,
        "a person": spent.person_s,
        "a model": spent.model_s,
    }
    share = spent.own_share * 100
    return [
        Row(f"{named}: header to end", short(spent.total_s, "s")),
        *(Row(f"demo: {part}", short(seconds, "s")) for part, seconds in parts.items() if seconds),
        Row(
            "demo: our own part",
            short(spent.own_s, "s"),
            "header to end",
            short(spent.total_s, "s"),
            spent.own_share,
            judged=share,
            at_most=MOST_PERCENT,
            unit="%",
        ),
    ]


def _newest() -> Path | None:
    """Return the recording of a demo that was started last."""
    found = {path: read(path).events[0] for path in ROOT.glob("transcripts/*demo*.jsonl")}
    started = {
        path: header.started_at for path, header in found.items() if isinstance(header, RunStarted)
    }
    return max(started, key=lambda path: started[path], default=None)
