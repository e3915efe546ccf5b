"""What a step costs in time and on disk, and whether that grows with the length of the run."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.bench.processes import figures
from tests.bench.rounds import Case, Figures, Rounds, interleave
from tests.bench.table import Row, short

MOST_MS, MOST_GROWTH, MOST_KB = 4.5, 1.2, 10.0
"""Targets: a step at 200 steps; a step at 400 against one at 200; checkpoints a step."""
LENGTHS = (50, 200, 400)
NAIVE = "LangGraph, messages in the state"


def rows(rounds: int, *, longest_naive: int) -> list[Row]:
    """Measure episodes of all lengths; of the naive loop only those that are not too long."""
    cases = {f"ours {steps}": _episode("ours", steps) for steps in LENGTHS}
    for steps in LENGTHS:
        if steps <= longest_naive:
            cases[f"naive {steps}"] = _episode("naive", steps)
    taken = interleave(cases, rounds, warmups=0)
    table = [
        _row(taken, steps, "ms", "ms", at_most=MOST_MS if steps == 200 else None)
        for steps in LENGTHS
    ]
    table += [_row(taken, 200, "cpu_ms", "ms", what=", processor time")]
    table += [_row(taken, steps, "last_ms", "ms", what=", the last 25") for steps in (50, 400)]
    table += [_growth(taken)]
    table += [
        _row(taken, steps, "checkpoint_bytes", "kB", 1e-3, what=": checkpoints", at_most=MOST_KB)
        for steps in LENGTHS
    ]
    return [*table, _transcript(taken)]


def _episode(case: str, steps: int) -> Case:
    def run() -> Figures:
        folder = Path(tempfile.mkdtemp(prefix="bringup-bench-"))
        try:
            return figures("episode", case, str(steps), folder)
        finally:
            shutil.rmtree(folder)

    return run


def _row(
    taken: Rounds,
    steps: int,
    name: str,
    unit: str,
    scale: float = 1.0,
    *,
    what: str = "",
    at_most: float | None = None,
) -> Row:
    ours, theirs = f"ours {steps}", f"naive {steps}"
    value = taken.median(ours, name) * scale
    row = Row(
        f"a step of {steps}{what}", short(value, unit), judged=value, at_most=at_most, unit=unit
    )
    if theirs not in taken.figures:
        return row
    found = short(taken.median(theirs, name) * scale, unit)
    return replace(row, beside=NAIVE, theirs=found, ratio=taken.ratio(ours, theirs, name))


def _growth(taken: Rounds) -> Row:
    """Compare long runs with shorter ones: 1 is flat."""
    value = taken.ratio("ours 400", "ours 200", "ms")
    row = Row(
        "a step of 400 ÷ one of 200",
        short(value, "times"),
        judged=value,
        at_most=MOST_GROWTH,
        unit="times",
    )
    if "naive 400" not in taken.figures:
        return row
    return replace(
        row, beside=NAIVE, theirs=short(taken.ratio("naive 400", "naive 200", "ms"), "times")
    )


def _transcript(taken: Rounds) -> Row:
    """Say how much is written for what was seen: raw result, observation, and the rest."""
    written = taken.median("ours 200", "transcript_bytes")
    seen = taken.median("ours 200", "payload_bytes")
    return Row(
        "a step of 200: transcript",
        short(written / 1e3, "kB"),
        "what the target said",
        short(seen / 1e3, "kB"),
        written / seen,
    )
