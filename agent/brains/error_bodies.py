"""Reads the body of a refusal, whatever its vendor's shape; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_LONGEST = 100_000
"""Characters of a body that are looked at."""
_DEEPEST = 8
_SENTENCES = ("error", "message", "detail", "msg", "errors", "error_msg")
"""Where vendors put what people are to read."""


class ErrorBody:
    """What a body says."""

    def __init__(self, body: str) -> None:
        self._body = body[:_LONGEST]
        self._data = _json(self._body)
        self.said = self._body if self._data is None else "\n".join(_leaves(self._data))
        """Of a JSON body one line ``name=value`` for each value, also for JSON quoted inside it."""

    def status(self) -> int | None:
        """Return the status that an error object names, as in ``{"error": {"code": 502}}``."""
        error = self._data[0] if isinstance(self._data, list) and self._data else self._data
        for _ in range(2):
            if not isinstance(error, dict):
                return None
            for key in ("code", "status", "status_code"):
                if re.fullmatch(r"[45]\d\d", str(error.get(key))):
                    return int(error[key])
            error = error.get("error")
        return None

    def message(self) -> str:
        """Return the sentence for people; of a web page its title."""
        if self._data is not None:
            return _message(self._data)
        title = re.search(r"(?is)<title[^<>]{0,200}>(.{0,2000}?)</title>", self._body)
        if title:
            return f"a web page, {title[1].strip()[:200]!r}"
        return re.sub(r"<[^<>]*>", " ", self._body).strip()


def _json(text: str) -> Any:
    text = text.strip()
    if not text.startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _leaves(value: Any, name: str = "", depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST or value is None:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, str(key), depth + 1)
    elif isinstance(value, list):
        yield from _items(value, name, depth)
    else:
        yield f"{name}={value}"
        if isinstance(value, str):
            yield from _leaves(_json(value), name, depth + 1)


def _items(values: list[Any], name: str, depth: int) -> Iterator[str]:
    if all(isinstance(item, str | int) for item in values):
        yield f"{name}={'.'.join(map(str, values))}"
        return
    for inner in values:
        yield from _leaves(inner, name, depth + 1)


def _message(data: Any, depth: int = 0) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, list):
        return "; ".join(filter(None, (_message(item, depth + 1) for item in data[:3])))
    if not isinstance(data, dict) or depth > _DEEPEST:
        return ""
    for key in _SENTENCES:
        words = _message(data.get(key), depth + 1)
        if words:
            where = data.get("loc")
            place = ".".join(map(str, where)) if isinstance(where, list) else ""
            return f"{place}: {words}" if place else words
    return ""
