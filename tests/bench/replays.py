"""How fast a recorded run is played again, strictly, beside merely reading it."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from agent.replay import replay
from agent.transcript import TranscriptError, read
from tests.bench.processes import figures
from tests.bench.rounds import interleave, say, timed
from tests.bench.table import Row, short
from tests.lab.checkout import ROOT


def rows(rounds: int, lengths: tuple[int, ...]) -> list[Row]:
    """Measure runs of so many steps, made for it, and the recorded ones of the project."""
    folder = Path(tempfile.mkdtemp(prefix="bringup-bench-"))
    try:
        table = [row for steps in lengths for row in _made(folder / str(steps), steps, rounds)]
    finally:
        shutil.rmtree(folder)
    return table + [_recorded(path, rounds) for path in sorted(ROOT.glob("transcripts/*.jsonl"))]


def _made(folder: Path, steps: int, rounds: int) -> list[Row]:
    folder.mkdir()
    say(f"a run of {steps} steps, to be replayed")
    figures("episode", "ours", str(steps), folder)
    (path,) = folder.rglob("transcript.jsonl")
    played, reading, lines = "replay", "read", "lines"
    taken = interleave(
        {
            played: timed(lambda: _same(path)),
            reading: timed(lambda: read(path)),
            lines: timed(lambda: [json.loads(line) for line in path.open("rb")]),
        },
        rounds,
    )
    events = len(read(path).events)

    def row(ours: str, what: str, theirs: str, beside: str) -> Row:
        return Row(
            f"{what} {steps:,} steps",
            short(events / taken.median(ours, "s"), "events/s"),
            beside,
            short(events / taken.median(theirs, "s"), "events/s"),
            1 / taken.ratio(ours, theirs, "s"),
        )

    return [
        row(played, "strict replay of", reading, "reading it"),
        row(reading, "reading", lines, "`json.loads` of its lines"),
    ]


def _recorded(path: Path, rounds: int) -> Row:
    """Time one of the project's own recordings; the imports are done by then."""
    try:
        events = len(read(path).events)
        taken = interleave({"replay": timed(lambda: _same(path))}, rounds)
    except (TranscriptError, RuntimeError, ValueError) as error:
        return Row(f"replay of {path.name}", f"failed: {str(error).splitlines()[0][:80]}")
    return Row(f"replay of {path.name}, {events} events", short(taken.median("replay", "s"), "s"))


def _same(path: Path) -> None:
    """Play it and insist that all is as recorded: one that ends early is fast and no figure."""
    met = replay(path).difference
    if met is not None:
        raise RuntimeError(f"differs at {met.event}, {met.field}")
