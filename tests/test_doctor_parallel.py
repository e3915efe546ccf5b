"""Many at once: a slow one gives up its place, one that hangs is given up, order is kept."""

from __future__ import annotations

import threading
import time

import pytest

from agent.doctor import parallel
from agent.doctor.parallel import Standing, in_parallel


def test_results_come_in_the_order_of_the_names() -> None:
    waits = {"a": 0.15, "b": 0.0, "c": 0.05}

    def work(name: str) -> str:
        time.sleep(waits[name])
        return name.upper()

    found = in_parallel(waits, work, limit_s=10)
    assert [*found.items()] == [("a", "A"), ("b", "B"), ("c", "C")]
    assert in_parallel([], work, limit_s=1) == {}


def test_no_more_work_at_once_than_allowed() -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def work(name: str) -> int:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.02)
        with lock:
            now[0] -= 1
        return 1

    assert sum(filter(None, in_parallel(map(str, range(20)), work, limit_s=30, at_once=3).values()))
    assert most[0] == 3


def test_one_that_hangs_is_given_up_and_dropped() -> None:
    over = threading.Event()

    def work(name: str) -> str:
        if name == "hangs":
            over.wait(20)
        return "done"

    found = in_parallel(["hangs", "a", "b"], work, limit_s=0.3, at_once=16)
    over.set()
    assert found == {"hangs": None, "a": "done", "b": "done"}


def test_slow_ones_hold_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than places: all others are asked all the same, long before these end."""
    monkeypatch.setattr(parallel, "SLOW_S", 0.1)
    over, names = threading.Event(), [f"hangs{it}" for it in range(4)]
    seen: list[set[str]] = []

    def work(name: str) -> str:
        if name.startswith("hangs"):
            over.wait(20)
        return "done"

    def look(standing: Standing[str]) -> None:
        seen.append(set(standing.out))
        if set(standing.back) == {"a", "b"}:
            over.set()

    found = in_parallel([*names, "a", "b"], work, limit_s=15, at_once=2, look=look)
    assert set(found.values()) == {"done"}
    assert over.is_set(), "a and b were back while all others still hung"
    assert any(out >= set(names) for out in seen)


def test_it_is_told_how_far_it_has_come() -> None:
    told: list[tuple[int, int, int]] = []

    def look(standing: Standing[str]) -> None:
        told.append((len(standing.waiting), len(standing.out), len(standing.back)))

    in_parallel(["a", "b", "c"], str.upper, limit_s=5, at_once=1, look=look)
    assert all(sum(row) == 3 for row in told)
    assert told[0] == (2, 1, 0)
