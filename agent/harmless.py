"""Tells at one glance that a value holds nothing to hide, so that it need not be walked.

Most events and observations hold neither a secret nor a path. Their JSON is searched once for all
that redaction starts from; where anything is found the value is walked as ever.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from agent.secret_forms import flat, hints_in

INDEX_HINTS = ("Looking in ", "://", ".whl")
"""One of these stands wherever pip names an index or a wheel's place."""
_PAIR, _CONTROL = "\\\\", "\x01"
_CONTROLS = re.compile(r"\\(?:u00[01][0-9a-f]|[bf])")
"""How JSON writes a control character that is no line break and no tab."""
_OWN_WAY = re.compile(r'\\[^nrt"]')
"""What else JSON could write otherwise than it is."""


class Harmless:
    """Knows what a redactor looks for."""

    def __init__(self, forms: Iterable[str], path: re.Pattern[str] | None, most_deep: int) -> None:
        """Take the forms of known secrets, what finds a path, and how deep data may be nested."""
        self._forms = tuple(
            {_without_breaks(_single(_as_json(flat(form))[1:-1])) for form in forms}
        )
        self._path, self._most_deep = path, most_deep

    def __call__(self, text: str | None) -> bool:
        """Return whether redaction would surely leave a value with this JSON as it is."""
        if text is None or text.count("{") + text.count("[") > self._most_deep:
            return False
        if any(map(text.__contains__, INDEX_HINTS)) or hints_in(text):
            return False
        text = _single(text)
        if _OWN_WAY.search(text):
            return False
        if self._forms and any(map(_without_breaks(text).__contains__, self._forms)):
            return False
        return not (self._path and self._path.search(text.replace("\0", _PAIR)))


def written(value: Any) -> str | None:
    """Return a value's JSON; ``None`` where it has none, or a character that UTF-8 lacks."""
    try:
        if isinstance(value, BaseModel):
            return value.model_dump_json()
        text = _as_json(value)
        return text if text.isascii() else text.encode().decode()
    except (TypeError, ValueError, RecursionError):
        return None


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _single(text: str) -> str:
    """Write each backslash and each control character as one sign, as it is one in the value."""
    if _PAIR in text:
        text = text.replace(_PAIR, "\0")
    return _CONTROLS.sub(_CONTROL, text) if "\\u" in text or "\\b" in text else text


def _without_breaks(text: str) -> str:
    return text.replace("\\n", "").replace("\\r", "")
