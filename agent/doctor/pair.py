"""Two hosts side by side: what the second lacks, for moving a service to it; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.doctor.ask import Answer
from agent.doctor.checkup import FOUND, OK, UNREACHABLE, Checkup
from agent.doctor.findings import Difference, compare


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers, and how the second differs from the first."""

    a: Answer
    b: Answer
    differences: Sequence[Difference]

    @property
    def whole(self) -> bool:
        """Whether there are facts of both."""
        return self.a.facts is not None and self.b.facts is not None

    @property
    def exit_code(self) -> int:
        """What a script should know; notes do not count."""
        if not (self.a.reached and self.b.reached):
            return UNREACHABLE
        lacks = any(it.level != "note" for it in self.differences)
        return FOUND if lacks or not self.whole else OK


def pair_of(checkup: Checkup) -> Pair:
    """Return the two hosts of a checkup, compared where there are facts of both."""
    a, b = checkup.answers
    if a.facts is None or b.facts is None:
        return Pair(a, b, ())
    return Pair(a, b, compare(a.facts, b.facts))
