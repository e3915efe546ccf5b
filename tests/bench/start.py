"""How long help takes to come: whole processes, beside an empty Python and the peers' tools."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
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
    peers = {f"{name} --help": run(path, "--help") for name, path in _installed().items()}
    cases |= peers
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
            unit="times",
        )

    table = [row(OURS, EMPTY, MOST), row("bringup show --help", EMPTY)]
    return table + [row(OURS, name) for name in peers]


def _installed() -> dict[str, str]:
    """Return the peers that are there and answer, by name."""
    found = {name: path for name in PEERS if (path := shutil.which(name))}
    working = {}
    for name, path in found.items():
        with suppress(RuntimeError):
            run(path, "--help")()
            working[name] = path
    return working
