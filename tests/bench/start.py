"""How long a person waits for help: whole processes, beside an empty Python and the peers' tools."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.bench.processes import run
from tests.bench.rounds import interleave, timed
from tests.bench.table import Row, short

MOST = 6.0
"""Target: ``bringup --help`` takes at most so many times what an empty Python does."""
PEERS = ("ansible", "fab", "llm", "mini", "pyinfra", "sparkrun")
"""Command lines of the peers; those that are installed take part."""
OURS, EMPTY = "bringup --help", "python -c pass"


def rows(rounds: int) -> list[Row]:
    """Measure; the console script is the one of the Python that runs this."""
    script = Path(sys.executable).with_name("bringup")
    cases = {
        EMPTY: run(sys.executable, "-c", "pass"),
        OURS: run(script, "--help"),
        "bringup show --help": run(script, "show", "--help"),
    }
    found = {f"{name} --help": path for name in PEERS if (path := shutil.which(name))}
    cases |= {name: run(path, "--help") for name, path in found.items()}
    taken = interleave({name: timed(work) for name, work in cases.items()}, rounds)

    def row(ours: str, theirs: str, at_most: float | None = None) -> Row:
        ratio = taken.ratio(ours, theirs, "s")
        return Row(
            f"start: `{ours}`",
            short(taken.median(ours, "s") * 1e3, "ms"),
            f"`{theirs}`",
            short(taken.median(theirs, "s") * 1e3, "ms"),
            ratio,
            judged=ratio,
            at_most=at_most,
            unit="×",
        )

    table = [row(OURS, EMPTY, MOST), row("bringup show --help", EMPTY)]
    return table + [row(OURS, name) for name in found]
