"""Prints the table: ``python -m tests.bench [--quick] [--model] [--remote] [--hosts] …``.

See docs/benchmarks.md for the method.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from tests.bench import demo, hosts, model, remote, replays, ssh_commands, start, steps, transfers
from tests.bench.rounds import say
from tests.bench.table import Row, markdown

PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite", "pydantic")


@dataclass(frozen=True, slots=True)
class Effort:
    """How many rounds each part takes, and how long its cases are."""

    starts: int
    episodes: int
    longest_naive: int
    replays: int
    replayed: tuple[int, ...]
    pairs: int
    """Of a run over ssh and its script; only where asked for."""
    chats: int
    """Rounds of runs that a model decides; only where asked for."""
    fleets: int
    """Rounds of facts of many hosts; only where asked for."""


FULL = Effort(
    starts=15,
    episodes=5,
    longest_naive=400,
    replays=3,
    replayed=(200, 2000),
    pairs=3,
    chats=5,
    fleets=5,
)
QUICK = Effort(
    starts=5, episodes=2, longest_naive=200, replays=2, replayed=(200,), pairs=2, chats=2, fleets=2
)


def main() -> None:
    """Measure everything, one part after the other, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, within a minute")
    parser.add_argument("--model", action="store_true", help="runs that a model decides too")
    parser.add_argument("--remote", action="store_true", help="story A over ssh too: minutes more")
    parser.add_argument("--demo", type=Path, metavar="TRANSCRIPT", help="a demo's run to split up")
    parser.add_argument("--hosts", action="store_true", help="facts of sixteen hosts too")
    given = parser.parse_args()
    effort = QUICK if given.quick else FULL
    begin, before = time.monotonic(), os.getloadavg()[0]
    table: list[Row] = [
        *start.rows(effort.starts),
        *steps.rows(effort.episodes, longest_naive=effort.longest_naive),
        *model.rows(effort.chats if given.model else 0),
        *replays.rows(effort.replays, effort.replayed),
        *demo.rows(given.demo),
        *remote.rows(effort.pairs if given.remote else 0),
        *hosts.rows(effort.fleets if given.hosts else 0),
        *transfers.rows(effort.fleets if given.hosts else 0),
        *ssh_commands.rows(effort.fleets if given.hosts else 0),
    ]
    say("")
    sys.stdout.write(f"{_where(before, time.monotonic() - begin)}\n\n{markdown(table)}")


def _where(load: float, seconds: float) -> str:
    """Say when and on what kind of machine this was measured; a busy one shows in its load."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    return (
        f"{datetime.date.today()}, {machine}, load {load:.1f} before, {seconds:.0f} s in all; "
        f"Python {platform.python_version()}, {packages}"
    )


if __name__ == "__main__":
    main()
