"""What watches share: arguments, samples that can be read, what counts as a sign of life."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from tools.base import Args, CallContext
from tools.command import Result
from tools.errors import ToolFailed
from tools.script import read_answers

LOST_SAMPLES = 5
"""So many samples that cannot be read end a watch."""

State = Literal["loading", "healthy", "exited", "stuck", "undecided"]
Python = Annotated[str, Field(pattern=r"^(.*/)?python[0-9.]*$")]


class WatchArgs(Args):
    """Where the server is asked, and when to give up."""

    url: str = Field(
        pattern=r"^https?://",
        description="The health URL, such as http://127.0.0.1:8000/health.",
    )
    stuck_after_s: float = Field(120.0, gt=0)
    """So many seconds without a byte of log, and next to no CPU time, mean that it hangs."""
    limit_s: float = Field(1800.0, gt=0, le=14_400)
    python: Python = "python3"
    """A Python ≥ 3.8 on the target, which asks the server there."""

    @property
    def port(self) -> int:
        """The port that the address names, or else that of its scheme."""
        parts = urlsplit(self.url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @field_validator("url")
    @classmethod
    def _has_a_port(cls, value: str) -> str:
        _ = urlsplit(value).port  # raises ValueError where it is no number of a port
        return value


IDLE = 0.01
"""Share of one processor below which a server does nothing: one that listened at another address
than the one asked for used a sixth of it."""
TICK_S = 0.05
"""CPU time that clocks cannot tell from none, in seconds."""
IO_BYTES, IO_BYTES_A_S = 4096, 1024
"""Bytes read and written that are none, and the trickle a second that is no work."""
MEMORY_KIB, MEMORY_KIB_A_S = 1024, 50
"""Resident memory that comes and goes by itself, and the trickle a second that is no work."""
GAP_S = 60.0
"""So much of the time between two samples counts at most: nobody looked, so nobody knows; and a
clock that was set, or a machine that slept, is no silence."""


class Sampled(Protocol):
    """What a verdict needs of a sample."""

    @property
    def state(self) -> State:
        """As far as the sample itself tells."""
        ...

    @property
    def http_status(self) -> int | None:
        """What its address answered."""
        ...

    @property
    def port_owner(self) -> str:
        """Who answered; ``other`` is none of the server's processes."""
        ...

    @property
    def waited_s(self) -> float:
        """Seconds since the watch began."""
        ...


def readable(call: CallContext, results: Iterator[Result]) -> Iterator[dict[str, str]]:
    """Yield the samples that can be read, until several in a row cannot."""
    lost = 0
    for result in results:
        try:
            answers = read_answers(call, result)
        except ToolFailed:
            answers = {}
        lost = 0 if "now" in answers else lost + 1
        if lost >= LOST_SAMPLES:
            return
        if "now" in answers:
            yield answers


@dataclass(frozen=True, slots=True)
class Spell:
    """A watch so far: its first and last sample that can be read, and how long nothing moved."""

    first: dict[str, str]
    last: dict[str, str]
    quiet_s: float
    """Seconds, by the samples' own clock, in which nothing moved; of a gap only ``GAP_S``."""

    @property
    def waited_s(self) -> float:
        """Seconds from the first to the last sample."""
        return float(self.last["now"]) - float(self.first["now"])


Sample = dict[str, str]


def count_of(sample: Sample, key: str) -> int:
    """Return a number of a sample; 0 where it is not told."""
    text = sample.get(key, "")
    return int(text) if text.isdecimal() else 0


def transfers(before: Sample, last: Sample, lasted_s: float) -> bool:
    """Whether files were read or written, or memory was filled or freed, more than by itself."""
    io = abs(count_of(last, "io") - count_of(before, "io"))
    memory = abs(count_of(last, "rss_kib") - count_of(before, "rss_kib"))
    return (
        io > IO_BYTES + IO_BYTES_A_S * lasted_s or memory > MEMORY_KIB + MEMORY_KIB_A_S * lasted_s
    )


def _never(before: Sample, last: Sample, lasted_s: float) -> bool:
    return False


def spell_of(
    call: CallContext,
    results: Sequence[Result],
    activity: Callable[[Sample], tuple[str, ...]],
    cpu_s: Callable[[Sample], float],
    moved: Callable[[Sample, Sample, float], bool] = _never,
) -> Spell:
    """Read all samples of a watch.

    Args:
        call: the watch's.
        results: its samples, oldest first.
        activity: says what moves while something works, such as its log.
        cpu_s: its CPU time so far, in seconds; a trickle of it, as of any server that waits to be
            asked, is no movement.
        moved: whether anything else moved from an older to the last sample, and the seconds that
            lie between them.

    Raises:
        ToolFailed: the target says that there is no such thing, or the last samples cannot be
            read.
    """
    recent = readable(call, reversed(results))
    last = next(recent, None)
    if last is None:
        read_answers(call, results[-1])
        raise ToolFailed(f"no sample could be read: {results[-1].tail}")
    first = next(readable(call, iter(results)), last)
    quiet_s, later = 0.0, last
    for sample in recent:
        gap = min(max(0.0, float(later["now"]) - float(sample["now"])), GAP_S)
        lasted = quiet_s + gap
        worked = cpu_s(last) - cpu_s(sample) > IDLE * lasted + TICK_S
        if worked or activity(sample) != activity(last) or moved(sample, last, lasted):
            break
        quiet_s, later = lasted, sample
    return Spell(first, last, quiet_s)


def verdict(args: WatchArgs, seen: Sampled, quiet_s: float, *, interval_s: float) -> State:
    """Say how far a server is.

    Args:
        args: the watch.
        seen: the last sample.
        quiet_s: seconds since its log or its CPU time last moved.
        interval_s: seconds between two samples.
    """
    if seen.state == "exited":
        return "exited"
    if seen.http_status == 200 and seen.port_owner != "other":
        return "healthy"
    if quiet_s >= args.stuck_after_s:
        return "stuck"
    over = seen.waited_s >= args.limit_s - 2 * interval_s
    return "undecided" if over else "loading"
