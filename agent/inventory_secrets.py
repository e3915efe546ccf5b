"""Finds what looks like a secret in an inventory, so that it is refused and never shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agent.secret_forms import SHAPES, hints_in, secrets_of

ADVICE = "set it on the host, or in your environment"
_PASSWORD = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?[^\s/@:\[\]]*:[^\s/@]+@")
"""``user:password@``, at the start of an address or a URL."""


def looks_secret(text: str) -> bool:
    """Whether a text holds the shape of a token, key or password."""
    found = hints_in(text)
    if _PASSWORD.match(text):
        return True
    return any(pattern.search(text) for hints, pattern in SHAPES if not found.isdisjoint(hints))


def secret_places(data: Any, at: str = "") -> Iterator[str]:
    """Yield where secrets seem to be in plain data, as dotted keys, without what they are.

    A value counts by its own shape, or by the name that it has: ``HF_TOKEN``, ``password``.
    """
    if isinstance(data, dict):
        for key, value in data.items():
            name = "…" if looks_secret(str(key)) else str(key)
            here = f"{at}.{name}" if at else name
            if name == "…" or (isinstance(value, str) and secrets_of({str(key): value})):
                yield here
            else:
                yield from secret_places(value, here)
    elif isinstance(data, list):
        for number, item in enumerate(data):
            yield from secret_places(item, f"{at}.{number}")
    elif isinstance(data, str) and looks_secret(data):
        yield at
