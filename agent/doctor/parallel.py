"""Does the same on many hosts at once; a host that hangs holds up nobody else."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

AT_ONCE = 16
"""How many hosts are asked at the same time."""
SLOW_S = 5.0
"""A host that takes longer gives its place to the next one; it is waited for all the same."""
TURN_S = 0.1

T = TypeVar("T")


@dataclass
class Standing(Generic[T]):
    """How far it has come: who waits for a place, who is out, and what came back."""

    waiting: deque[str]
    out: dict[str, float] = field(default_factory=dict)
    """When each was asked."""
    back: dict[str, T | None] = field(default_factory=dict)
    """Answers; ``None`` where there was none in time."""


Look = Callable[[Standing[T]], None]
"""Is shown how far it has come, again and again."""


def in_parallel(
    names: Iterable[str],
    work: Callable[[str], T],
    *,
    limit_s: float,
    at_once: int = AT_ONCE,
    look: Look[T] = lambda standing: None,
    clock: Callable[[], float] = time.monotonic,
) -> Mapping[str, T | None]:
    """Do something for each name in a thread of its own, and return what each gave, in order.

    A thread that has not ended in time is left alone: its result is dropped.

    Args:
        names: each once.
        work: what to do; it raises nothing.
        limit_s: how long each may take; ``None`` is its result where it takes longer.
        at_once: how many threads work at the same time, slow ones not counted.
        look: is shown how far it has come.
        clock: what limits are reckoned by, in seconds; it may stand still while a person is asked.
    """
    order = list(names)
    standing: Standing[T] = Standing(deque(order))
    results: queue.SimpleQueue[tuple[str, T | None]] = queue.SimpleQueue()

    def one(name: str) -> None:
        given = None
        try:
            given = work(name)
        finally:
            results.put((name, given))

    while standing.waiting or standing.out:
        now = clock()
        _give_up(standing, now, limit_s)
        busy = sum(now - begun < SLOW_S for begun in standing.out.values())
        while standing.waiting and busy < at_once:
            name = standing.waiting.popleft()
            standing.out[name] = now
            threading.Thread(target=one, args=(name,), name=f"ask {name}", daemon=True).start()
            busy += 1
        look(standing)
        _take(standing, results)
    return {name: standing.back[name] for name in order}


def _give_up(standing: Standing[T], now: float, limit_s: float) -> None:
    for name in [name for name, begun in standing.out.items() if now - begun >= limit_s]:
        del standing.out[name]
        standing.back[name] = None


def _take(standing: Standing[T], results: queue.SimpleQueue[tuple[str, T | None]]) -> None:
    """Wait a moment for a result, and take all that there are; what came too late is dropped."""
    try:
        name, given = results.get(timeout=TURN_S if standing.out else 0)
        while True:
            if name in standing.out:
                del standing.out[name]
                standing.back[name] = given
            name, given = results.get_nowait()
    except queue.Empty:
        return
