"""Asks again where that can help: backing off, as the server asks for, and never for long."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from agent.brains.failures import LONGEST, Failure, Kind, ModelFailed, one_line

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")

FIRST_S = 1.0
"""The first wait; each further one is twice as long."""
LONGEST_S = 60.0
"""The longest wait that nobody asked for."""
SEVERAL = {Kind.TIMEOUT: 1, Kind.NOT_A_REPLY: 2}
"""So often these kinds are tried again: a timeout was long already, and what answers with
something else than a reply mostly goes on so."""

_dice = random.SystemRandom()


def patiently(
    ask: Callable[[], T],
    *,
    on_failure: Callable[[Failure, float], None],
    sleep: Callable[[float], None] = time.sleep,
    total_s: float = 300,
    most: int = 6,
    jitter: Callable[[], float] = _dice.random,
) -> T:
    """Return what ``ask`` returns, asking again after failures that may pass.

    Only what ``Failure.retryable`` says may pass is tried again. Anything but ``ModelFailed`` goes
    through at once, Ctrl-C too.

    Args:
        ask: makes one attempt.
        on_failure: is told each failed attempt and the seconds that are waited now, 0 at the last.
        sleep: waits.
        total_s: all waits together are no longer; one that would be is not begun.
        most: attempts in all.
        jitter: from 0 to 1; spreads waits between half and all of their length.

    Raises:
        ModelFailed: of the last attempt, saying why no further one was made.
    """
    try:
        return ask()  # so it is mostly: what waits is not even loaded
    except ModelFailed as error:
        failed = [error]
    from tenacity import Retrying, retry_if_exception

    waits = _Waits(total_s, most, jitter)

    def again() -> T:
        if failed:
            raise failed.pop()
        return ask()

    def tell(state: RetryCallState) -> None:
        on_failure(_failure_of(state), state.upcoming_sleep)

    retrying = Retrying(
        retry=retry_if_exception(_may_pass),
        wait=waits.next,
        stop=waits.over,
        before_sleep=tell,
        sleep=sleep,
        reraise=True,
    )
    try:
        return retrying(again)
    except ModelFailed as error:
        failure = waits.explained(error.failure)
        on_failure(failure, 0.0)
        if failure is error.failure:
            raise
        raise ModelFailed(failure) from (error.__cause__ or error)


class _Waits:
    """How long is waited, and when no longer."""

    def __init__(self, total_s: float, most: int, jitter: Callable[[], float]) -> None:
        self._total_s, self._most, self._jitter = total_s, most, jitter
        self._waited = 0.0
        self._why = ""
        self._seen: Counter[Kind] = Counter()

    def next(self, state: RetryCallState) -> float:
        """Return the wait after a failure: at least what the server asks for."""
        own: float = min(LONGEST_S, FIRST_S * 2.0 ** (state.attempt_number - 1))
        own *= 0.5 + 0.5 * self._jitter()
        return max(own, _failure_of(state).retry_after_s or 0.0)

    def over(self, state: RetryCallState) -> bool:
        """Tell whether no further attempt is made."""
        failure, wait = _failure_of(state), state.upcoming_sleep
        self._seen[failure.kind] += 1
        if state.attempt_number >= self._most or self._seen[failure.kind] > SEVERAL.get(
            failure.kind, self._most
        ):
            self._why = f"given up after {_attempts(state.attempt_number)}"
        elif self._waited + wait > self._total_s:
            asked = "it asks to wait" if failure.retry_after_s == wait else "the next wait would be"
            self._why = f"{asked} {wait:.0f} s, and at most {self._total_s:g} s are waited in all"
        self._waited += wait
        return bool(self._why)

    def explained(self, failure: Failure) -> Failure:
        """Return a failure that says why it was the last."""
        if not self._why:
            return failure
        tail = f"; {self._why}"
        return replace(failure, text=one_line(failure.text, LONGEST - len(tail)) + tail)


def _attempts(number: int) -> str:
    return "1 attempt" if number == 1 else f"{number} attempts"


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, ModelFailed) and error.failure.retryable


def _failure_of(state: RetryCallState) -> Failure:
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, ModelFailed):
        return error.failure
    raise TypeError(f"a failure was expected, not {error!r}")
