"""Finds what looks like a secret in an inventory, so that it is refused and never shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agent.secret_forms import SHAPES, hints_in, secrets_of

ADVICE = "set it on the host, or in your environment"
_PASSWORD = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?[^\s/@:\[\]]*:[^\s/@]+@")
"""``user:password@``, at the start of an address or a URL."""
_ASSIGNED = re.compile(r"\s*([A-Za-z_]\w*)=(.*)")
_SECRET_NAME = re.compile(
    r"PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIAL|PWD(?=$|_)|(?:^|_)PW(?=$|_)|(?:^|_)AUTH$"
    r"|(?<!ASK)(?<!BY)(?<!COM)PASS\d*(?=$|_)|TOKENS?\d*(?=$|_)"
    r"|(?:^|_|API|AUTH|ACCESS|PRIVATE|SECRET)KEYS?\d*(?=$|_)"
)
_HARMLESS = (
    (r"(?:^|_)(?:FILE|PATH|DIR)S?$|CREDENTIALS$|^(?:OLD)?PWD$", r"(?:/|~/|\.\.?/).*"),
    (r"^(?!.*(?:SECRET|PASS|PWD|PW$|KEY|CREDENTIAL)).*TOKEN(?:S(?=$|_)|_(?!\d+$))", r"\d{1,7}"),
    (r"(?:^|_)(?:ALLOW|DISABLE|ENABLE|HIDE|REQUIRE|SKIP|USE)_", r"(?i:0|1|true|false)"),
)
"""Names that only sound secret, with what their values are then: places, counts, switches."""


def looks_secret(text: str) -> bool:
    """Whether a text holds the shape of a token, key or password."""
    found = hints_in(text)
    if _PASSWORD.match(text):
        return True
    return any(pattern.search(text) for hints, pattern in SHAPES if not found.isdisjoint(hints))


def secret_places(data: Any, at: str = "", variables: bool = False) -> Iterator[str]:
    """Yield where secrets seem to be in plain data, as dotted keys, without what they are.

    A value counts by its own shape, or by the name that it has: ``HF_TOKEN``, ``password``. Below
    ``env`` the name is enough, however short the value is; ``variables`` says that we are there.
    """
    if isinstance(data, dict):
        for key, value in data.items():
            name = "…" if looks_secret(str(key)) else str(key)
            here = f"{at}.{name}" if at else name
            if name == "…" or _named_secret(str(key), value, variables):
                yield here
            else:
                yield from secret_places(value, here, variables or key == "env")
    elif isinstance(data, list):
        for number, item in enumerate(data):
            yield from secret_places(item, f"{at}.{number}", variables)
    elif isinstance(data, str):
        assigned = _ASSIGNED.match(data) if variables else None
        if looks_secret(data) or (assigned and _named_secret(assigned[1], assigned[2], variables)):
            yield at


def _named_secret(name: str, value: Any, variable: bool) -> bool:
    """Whether a value is secret by its name."""
    if not variable:
        return isinstance(value, str) and bool(secrets_of({name: value}))
    name = name.upper()
    if value is None or value in ("", [], {}) or not _SECRET_NAME.search(name):
        return False
    return not any(
        re.search(names, name) and re.fullmatch(values, str(value)) for names, values in _HARMLESS
    )
