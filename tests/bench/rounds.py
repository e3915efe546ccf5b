"""Times cases fairly on a machine that others use too.

Every case runs once a round, in shuffled order, so that a slow spell meets all of them. Ratios are
taken round by round; what is quoted is the median over the rounds.
"""

from __future__ import annotations

import gc
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Figures = Mapping[str, float]
Case = Callable[[], Figures]
"""Does a thing once and returns what was measured, by name."""

SEED = 7
"""The orders are shuffled, and the same in every run."""


@dataclass
class Rounds:
    """What all cases measured, round by round."""

    figures: dict[str, list[Figures]] = field(default_factory=dict)

    def median(self, case: str, name: str) -> float:
        """Return a figure of one case."""
        return statistics.median(row[name] for row in self.figures[case])

    def ratio(self, case: str, base: str, name: str) -> float:
        """Return how many times a case's figure is another case's."""
        pairs = zip(self.figures[case], self.figures[base], strict=True)
        return statistics.median(ours[name] / theirs[name] for ours, theirs in pairs)


def interleave(cases: Mapping[str, Case], rounds: int, *, warmups: int = 1) -> Rounds:
    """Run every case once a round, after rounds that do not count."""
    order = list(cases)
    shuffle = random.Random(SEED).shuffle  # noqa: S311
    taken = Rounds({name: [] for name in cases})
    for number in range(-warmups, rounds):
        shuffle(order)
        for name in order:
            say(f"round {max(0, number + 1)} of {rounds}: {name}")
            gc.collect()
            figures = cases[name]()
            if number >= 0:
                taken.figures[name].append(figures)
    return taken


def timed(work: Callable[[], object]) -> Case:
    """Make a case of something that is only timed: its figure is ``s``, in seconds."""

    def case() -> Figures:
        begin = time.perf_counter()
        work()
        return {"s": time.perf_counter() - begin}

    return case


def say(text: str) -> None:
    """Tell whoever waits what is being measured; nothing where nobody looks."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()
