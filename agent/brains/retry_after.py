"""When a server says that it may be asked again: headers and durations, in seconds."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_S = 86_400.0
"""Longer waits than a day are cut to it: nobody waits for them, and some are nonsense."""

_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|d|h|m|s)[a-z]*")
_DURATION = re.compile(rf"(?:{_PART.pattern}\s*)+")
_EPOCH = 10**9
"""A plain number from here on is a moment since 1970, in seconds or milliseconds."""
_RESETS = re.compile(r"(?:x-|anthropic-)?ratelimit-(?:\w+-)?reset(?:-\w+)?")


def retry_after(
    headers: Mapping[str, str], now: float | None = None, *, windows: bool = True
) -> float | None:
    """Return how long to wait as the headers say; ``None`` where they do not.

    Read are ``retry-after-ms``, ``retry-after`` (seconds or an HTTP date) and what rate limiters
    say of their windows: ``x-ratelimit-reset-requests: 6m0s`` (OpenAI, Groq),
    ``x-ratelimit-reset-tokens: 12`` (Azure), ``x-ratelimit-reset: 1741305600000`` (OpenRouter),
    ``anthropic-ratelimit-requests-reset: 2026-01-01T00:00:00Z``. Of several windows the used-up
    one counts; where none says so, of those that do not say what remains the one that opens last.

    Args:
        headers: of the reply; names in any case.
        now: seconds since 1970; by default the clock's.
        windows: whether windows count: servers state them in replies to which they do not matter.
    """
    now = time.time() if now is None else now
    low = {name.lower(): value.strip() for name, value in headers.items()}
    exact = _number(low.get("retry-after-ms", ""))
    if exact is not None:
        return _capped(exact / 1000)
    said = seconds(low.get("retry-after", ""), now)
    return _window(low, now) if said is None and windows else said


def seconds(text: str, now: float = 0.0) -> float | None:
    """Return seconds from now for ``12``, ``1h2m3.5s``, ``20ms``, a date or a moment since 1970."""
    text = text.strip()
    number = _number(text)
    if number is not None:
        if number >= _EPOCH * 1000:
            number = number / 1000
        return _capped(number - now if number >= _EPOCH else number)
    if _DURATION.fullmatch(text):
        parts = _PART.findall(text)
        return _capped(
            sum(float(n) * _UNITS[unit.replace("illisecond", "")[:2]] for n, unit in parts)
        )
    moment = _moment(text)
    return None if moment is None else _capped(moment - now)


def _window(headers: Mapping[str, str], now: float) -> float | None:
    spent: list[float] = []
    unknown: list[float] = []
    for name, value in headers.items():
        wait = seconds(value, now) if _RESETS.fullmatch(name) else None
        remaining = headers.get(name.replace("-reset", "-remaining"))
        if wait is not None and remaining is None:
            unknown.append(wait)
        elif wait is not None and _number(remaining or "") == 0:
            spent.append(wait)
    return max(spent or unknown, default=None)


def _moment(text: str) -> float | None:
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(text)
        except (ValueError, TypeError, IndexError):
            continue
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,15}(?:\.\d{1,9})?", text) else None


def _capped(wait: float) -> float:
    return min(max(wait, 0.0), LONGEST_S)
