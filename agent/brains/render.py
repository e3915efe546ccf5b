"""Writes results for a model: our words plain, everything from hosts and files inside a fence.

The fence is a word of the run's own random source, so that no text from a host can close it. Long
text keeps its head and its tail, and says how much lies between.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.control import CONTROLS
from agent.records import CallRecord
from agent.values import CallStatus
from agent.visible import visible

MOST_TEXT = 6000
"""So many characters of one text field are shown."""
MOST_RESULT = 12_000
"""So many characters of one result are shown."""
MOST_ITEMS = 200
"""So many items of one list are shown."""
SHORT_LINE = 200
_DEEPEST = 6
_NESTED = (dict, list, tuple)
"""Observations are JSON: there are no others."""
_SPECIAL = re.compile(
    r"<(?=[|｜]|/?(?:s|think|tool_call|tool_response|function_calls|(?:start|end)_of_turn)>)"  # noqa: RUF001
    r"|\[(?=/?(?:INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|SYSTEM_PROMPT)\])"
)
"""Where a chat template's own tokens begin: servers may read them as such inside any text, so a
space is put behind the first sign."""
_MANY = 12
"""More plain values than this, such as the versions of packages, stand in one line."""
_ALIKE = 3
"""From so many rows on, what all say alike is said once."""
_ABSENT = object()


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Fence:
    """Marks what comes from hosts and files; the word is random for each run."""

    word: str
    clean: Callable[[Any], Any] = _as_it_is
    """Takes secrets out of a value before it is written: a flag and its word are still apart."""

    @classmethod
    def of(cls, seed: str, clean: Callable[[Any], Any] = _as_it_is) -> Fence:
        """Derive the word from the run's seed, which no host gets to see."""
        key = hmac.new(seed.encode(), b"fence", hashlib.sha256)
        return cls(key.hexdigest()[:10], clean)

    def block(self, text: str) -> str:
        """Fence several lines."""
        return f"<data-{self.word}>\n{self._clean(text)}\n</data-{self.word}>"

    def line(self, text: str, most: int = SHORT_LINE) -> str:
        """Fence a piece of one line."""
        flat = " ".join(self._clean(text).split())
        cut = flat if len(flat) <= most else f"{flat[: most - 1]}…"
        return f"<data-{self.word}>{cut}</data-{self.word}>"

    def _clean(self, text: str) -> str:
        text = visible(text)
        if "<" in text or "[" in text:
            text = _SPECIAL.sub(r"\g<0> ", text)
        if self.word not in text.lower():
            return text
        return re.sub(self.word, "(fence)", text, flags=re.IGNORECASE)


def result(record: CallRecord, fence: Fence, most: int = MOST_RESULT) -> str:
    """Write all of a call's result."""
    head = headline(record)
    if record.call.tool in CONTROLS or not _sent(record):
        return f"{head} {fence.clean(record.message)}".strip()
    seen = observation(fence.clean(record.observation), most)
    said = fence.clean(record.message)
    parts = [seen] if seen and record.status is CallStatus.OK else [said, seen]
    body = clip("\n".join(filter(None, parts)), most)
    return f"{head}\n{fence.block(body)}" if body else head


def short(record: CallRecord, fence: Fence) -> str:
    """Write one line of a call's result, for what is long past."""
    seen = observation(fence.clean(record.observation), 300) if not record.message else ""
    words = fence.clean(record.message) or next(iter(seen.splitlines()), "")
    if record.call.tool in CONTROLS or not _sent(record):
        return f"{headline(record)} {words}".strip()[:400]
    said = f" {fence.line(words)}" if words else ""
    return f"{headline(record)}{said} (shortened: call it again to see all)"


def headline(record: CallRecord) -> str:
    """Name the event, the call, where it ran and how it ended: our own words only."""
    status = record.status.value if record.status else "no result"
    where = "" if record.call.tool in CONTROLS else f" on {record.call.target}"
    event = f"e{record.ended} " if record.ended >= 0 else ""
    was_asked = record.approval and record.call.tool not in CONTROLS
    asked = f" (it was asked, the answer was {record.approval[:80]})" if was_asked else ""
    name = f"{record.call.id} {visible(record.call.tool)[:80]}".strip()
    return f"{event}{name}{where}: {status}{asked}"


def _sent(record: CallRecord) -> bool:
    """Whether a host had a say in the result; else it is ours: invalid, refused, cancelled."""
    return record.started >= 0


def observation(data: Mapping[str, Any], most: int) -> str:
    """Write an observation as ``name: value`` lines; what is empty is left out."""
    rows: list[str] = []
    room = most
    for name, value in _telling_first(data):
        text = _entry(name, value, 0)
        rows.append(text)
        room -= len(text)
        if room < 0:
            break
    return "\n".join(rows)


def _telling_first(data: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Order fields by how much they tell for their length; what is empty is left out."""
    rows = [(key, value) for key, value in data.items() if not _is_empty(value)]
    nested = sum(_is_nested(value) for _, value in rows)
    if nested > 1:
        return sorted(rows, key=lambda row: len(str(row[1])) if _is_nested(row[1]) else 0)
    return sorted(rows, key=lambda row: _is_nested(row[1]))


def _is_nested(value: Any) -> bool:
    return isinstance(value, _NESTED)


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value == [] or value == {} or value == ()


def _entry(name: str, value: Any, depth: int) -> str:
    pad = "  " * depth
    if isinstance(value, str) and "\n" in value.rstrip("\n"):
        return f"{pad}{name}: |\n{clip(value.rstrip(), MOST_TEXT)}"
    if isinstance(value, dict) and value and depth < _DEEPEST:
        if len(value) > _MANY and not any(map(_is_nested, value.values())):
            words = ", ".join(f"{key} {_scalar(item)}" for key, item in _some(value.items()))
            return f"{pad}{name}: {clip(words, MOST_TEXT)}"
        kept = _some(_telling_first(value))
        inner = [_entry(str(key), item, depth + 1) for key, item in kept]
        return f"{pad}{name}:\n" + "\n".join(inner)
    if isinstance(value, list | tuple) and value and depth < _DEEPEST:
        return f"{pad}{name}:{_items(value, depth)}"
    return f"{pad}{name}: {clip(_scalar(value), MOST_TEXT)}"


def _items(values: Any, depth: int) -> str:
    plain = not any(map(_is_nested, values))
    words = [_scalar(item) for item in _some(values)] if plain else []
    if plain and sum(map(len, words)) < SHORT_LINE and not any("\n" in word for word in words):
        return " " + ", ".join(words)
    pad = "  " * (depth + 1)
    if plain:
        return "\n" + "\n".join(f"{pad}- {word}" for word in words)
    shown = list(_some(values))
    common = _common(shown)
    head = f" (each with {_flat(common)})" if common else ""
    rows = [_flat(_without(item, common)) for item in shown]
    return f"{head}\n" + "\n".join(f"{pad}- {row}" for row in rows)


def _common(items: list[Any]) -> dict[str, Any]:
    """Return what all rows of a list say alike: it is said once."""
    if len(items) < _ALIKE or not all(isinstance(item, dict) for item in items):
        return {}
    first = items[0]
    return {
        key: value
        for key, value in first.items()
        if not _is_empty(value) and all(item.get(key, _ABSENT) == value for item in items[1:])
    }


def _without(item: Any, common: Mapping[str, Any]) -> Any:
    if not common:
        return item
    return {key: value for key, value in item.items() if key not in common}


def _flat(item: Any) -> str:
    """Write one row of a list in one line."""
    if isinstance(item, dict):
        pairs = (f"{key}={_flat(value)}" for key, value in item.items() if not _is_empty(value))
        return clip(" ".join(pairs), MOST_TEXT // 4)
    if isinstance(item, list | tuple):
        return "[" + ", ".join(_flat(value) for value in item) + "]"
    return _scalar(item)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _some(items: Any) -> Iterable[Any]:
    rows = list(items)
    if len(rows) <= MOST_ITEMS:
        return rows
    return rows[:MOST_ITEMS]


def clip(text: str, most: int) -> str:
    """Cut the middle out of a long text, and say how much that was; tails tell most."""
    if len(text) <= most:
        return text
    head = most // 3
    tail = most - head
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[… {left_out:,} characters left out …]\n{text[-tail:]}"
