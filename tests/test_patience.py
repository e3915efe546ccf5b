"""When a model is asked again, and how long is waited before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from agent.brains.failures import Failure, Kind, ModelFailed, classify
from agent.brains.patience import FIRST_S, patiently
from agent.brains.retry_after import LONGEST_S, retry_after

NOW = 1_760_000_000.0


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"RETRY-AFTER": "Thu, 09 Oct 2025 08:53:50 GMT"}, 30),
        ({"retry-after": "Thu, 09 Oct 2025 08:53:00 GMT"}, 0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"x-ratelimit-reset-requests": "6m0s"}, 360),
        ({"x-ratelimit-reset-tokens": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-reset-tokens": "17ms"}, 0.017),
        ({"x-ratelimit-reset-tokens": "12"}, 12),
        ({"X-RateLimit-Reset": "1760000012"}, 12),
        ({"X-RateLimit-Reset": "1760000012500"}, 12.5),
        ({"ratelimit-reset": "9"}, 9),
        ({"anthropic-ratelimit-requests-reset": "2025-10-09T08:53:50Z"}, 30),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "2s",
                "x-ratelimit-remaining-tokens": "900",
                "x-ratelimit-reset-tokens": "50s",
            },
            2,
        ),
        ({"x-ratelimit-reset-requests": "2s", "x-ratelimit-reset-tokens": "50s"}, 50),
        ({"x-ratelimit-remaining-requests": "150", "x-ratelimit-reset-requests": "7m12s"}, None),
        ({"x-ratelimit-remaining": "3", "x-ratelimit-reset": "1760000012"}, None),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "9"}, 9),
        (
            {
                "anthropic-ratelimit-requests-remaining": "5",
                "anthropic-ratelimit-requests-reset": "2025-10-09T09:53:50Z",
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2025-10-09T08:53:50Z",
            },
            30,
        ),
        (
            {
                "x-ratelimit-remaining-requests": "150",
                "x-ratelimit-reset-requests": "7m12s",
                "x-ratelimit-reset-tokens": "3s",
            },
            3,
        ),
        (
            {
                "retry-after": "4",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "7m12s",
            },
            4,
        ),
        ({"retry-after": "99999999"}, LONGEST_S),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"x-ratelimit-limit": "5"}, None),
        ({}, None),
    ],
)
def test_when_to_ask_again_is_read_from_headers(
    headers: dict[str, str], wait: float | None
) -> None:
    assert retry_after(headers, NOW) == (None if wait is None else pytest.approx(wait, abs=1e-3))


def test_headers_go_before_words() -> None:
    body = '{"error": {"message": "Rate limit. Please try again in 20s."}}'
    assert classify(429, {"retry-after": "3"}, body).retry_after_s == 3
    assert classify(429, {}, body).retry_after_s == 20


@pytest.mark.parametrize("status", [400, 401, 408, 500, 502, 503, 504, 529])
@pytest.mark.parametrize("remaining", ["150", "0"])
def test_windows_count_for_rates_alone(status: int, remaining: str) -> None:
    windows = {
        "x-ratelimit-remaining-requests": remaining,
        "x-ratelimit-reset-requests": "7m12s",
    }
    assert classify(status, windows, "").retry_after_s is None
    assert classify(status, {**windows, "Retry-After": "5"}, "").retry_after_s == 5
    assert classify(429, windows, "").retry_after_s == (432 if remaining == "0" else None)


# Patience


class Asks:
    """Fails as it is told, and then answers; notes what is waited and told."""

    def __init__(self, *failures: Failure) -> None:
        self.failures = list(failures)
        self.made = 0
        self.waits: list[float] = []
        self.told: list[tuple[Kind, float]] = []

    def __call__(self) -> str:
        self.made += 1
        if self.failures:
            failure = self.failures.pop(0)
            raise ModelFailed(failure) from ConnectionResetError(failure.status, "reset")
        return "here"

    def run(self, jitter: Callable[[], float] = lambda: 1.0, **limits: float) -> str:
        return patiently(
            self,
            on_failure=lambda failure, wait: self.told.append((failure.kind, wait)),
            sleep=self.waits.append,
            jitter=jitter,
            **limits,  # type: ignore[arg-type]
        )


def failing(kind: Kind, **fields: object) -> Failure:
    return replace(Failure(kind, f"it is {kind}", 503), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kind", [Kind.KEY, Kind.NOT_FOUND, Kind.REQUEST, Kind.QUOTA, Kind.OVERFLOW]
)
def test_what_cannot_pass_is_not_tried_again(kind: Kind) -> None:
    asks = Asks(failing(kind, retry_after_s=1.0))
    with pytest.raises(ModelFailed, match=f"^it is {kind}$"):
        asks.run()
    assert (asks.made, asks.waits, asks.told) == (1, [], [(kind, 0.0)])


@pytest.mark.parametrize(
    "kind", [Kind.RATE, Kind.SERVER, Kind.NETWORK, Kind.TIMEOUT, Kind.NOT_A_REPLY]
)
def test_what_may_pass_is_tried_again(kind: Kind) -> None:
    asks = Asks(failing(kind))
    assert asks.run() == "here"
    assert asks.told == [(kind, asks.waits[0])]


def test_a_network_failure_that_stays_is_not_tried_again() -> None:
    asks = Asks(failing(Kind.NETWORK, final=True))
    with pytest.raises(ModelFailed):
        asks.run()
    assert asks.made == 1


def test_waits_grow_and_end_by_count() -> None:
    asks = Asks(*[failing(Kind.SERVER)] * 9)
    with pytest.raises(ModelFailed, match="it is server; given up after 6 attempts"):
        asks.run()
    assert asks.waits == [FIRST_S * factor for factor in (1, 2, 4, 8, 16)]
    assert asks.told == [(Kind.SERVER, wait) for wait in (*asks.waits, 0.0)]


def test_waits_end_by_their_sum() -> None:
    asks = Asks(*[failing(Kind.RATE, retry_after_s=40.0)] * 9)
    with pytest.raises(ModelFailed, match="at most 100 s are waited in all"):
        asks.run(total_s=100)
    assert asks.waits == [40.0, 40.0]


def test_a_wait_beyond_the_bound_ends_at_once() -> None:
    asks = Asks(failing(Kind.RATE, retry_after_s=3600.0))
    with pytest.raises(ModelFailed, match="asks to wait 3600 s, and at most 300 s"):
        asks.run()
    assert (asks.made, asks.waits, asks.told) == (1, [], [(Kind.RATE, 0.0)])


def test_what_the_server_asks_for_is_waited() -> None:
    asks = Asks(failing(Kind.RATE, retry_after_s=12.5), failing(Kind.RATE, retry_after_s=0.01))
    assert asks.run() == "here"
    assert asks.waits == [12.5, 2.0]


@pytest.mark.parametrize(("kind", "attempts"), [(Kind.TIMEOUT, 2), (Kind.NOT_A_REPLY, 3)])
def test_what_was_long_or_strange_is_not_tried_often(kind: Kind, attempts: int) -> None:
    asks = Asks(*[failing(kind)] * 9)
    with pytest.raises(ModelFailed, match=f"given up after {attempts} attempts"):
        asks.run()
    assert asks.made == attempts


def test_waits_are_spread() -> None:
    for share, wait in ((0.0, 0.5), (0.5, 0.75), (1.0, 1.0)):
        asks = Asks(failing(Kind.SERVER))
        asks.run(jitter=[share].pop)
        assert asks.waits == [FIRST_S * wait]


def test_waits_are_spread_by_themselves() -> None:
    waits: list[float] = []
    for _ in range(30):
        asks = Asks(failing(Kind.SERVER))
        patiently(asks, on_failure=lambda *_: None, sleep=waits.append)
    assert len(set(waits)) > 20
    assert FIRST_S / 2 <= min(waits) <= max(waits) <= FIRST_S


def test_the_last_failure_is_raised_with_its_cause() -> None:
    asks = Asks(failing(Kind.SERVER), failing(Kind.REQUEST, parameter="tools", status=400))
    with pytest.raises(ModelFailed) as caught:
        asks.run()
    assert caught.value.failure.parameter == "tools"
    assert isinstance(caught.value.__cause__, ConnectionResetError)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_anything_else_goes_through_at_once(error: type[BaseException]) -> None:
    told: list[object] = []

    def ask() -> str:
        raise error

    with pytest.raises(error):
        patiently(ask, on_failure=lambda *failed: told.append(failed), sleep=told.append)
    assert told == []
