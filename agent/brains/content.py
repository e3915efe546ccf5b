"""What stands in a message's ``content``: a string, or a list of typed parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_MOST_PARTS = 10_000
_THOUGHTS = ("thinking", "reasoning", "reasoning_content", "summary")


@dataclass(frozen=True, slots=True)
class Content:
    """The content by what it is for."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: tuple[Any, ...] = ()
    """Calls that came as parts, each as an entry of ``tool_calls``."""


def read_content(content: Any) -> Content:
    """Read any content; what is not known is left out."""
    if isinstance(content, str):
        return Content(content)
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, list):
        return Content()
    found: dict[str, list[Any]] = {"text": [], "reasoning": [], "refusal": [], "call": []}
    for piece in content[:_MOST_PARTS]:
        kind, value = _part(piece)
        found[kind].append(value)
    text, reasoning, refusal = ("".join(found[kind]) for kind in ("text", "reasoning", "refusal"))
    return Content(text, reasoning, refusal, tuple(found["call"]))


def _part(piece: Any) -> tuple[str, Any]:
    if isinstance(piece, str):
        return "text", piece
    if not isinstance(piece, Mapping):
        return "text", ""
    kind = piece.get("type")
    if kind in ("tool_use", "tool_call", "function_call") and "name" in piece:
        given = piece.get("input", piece.get("arguments"))
        return "call", {"id": piece.get("id"), "function": {**piece, "arguments": given}}
    if kind in _THOUGHTS:
        return "reasoning", text_of(piece.get(kind, piece.get("text")))
    if kind == "refusal":
        return "refusal", text_of(piece.get("refusal"))
    return "text", text_of(piece.get("text", piece.get("content")))


def text_of(value: Any) -> str:
    """Return a string, or the strings in a list of parts, one after the other."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, list):
        return ""
    return "".join(_strings(value[:_MOST_PARTS]))


def _strings(parts: Iterable[Any]) -> Iterable[str]:
    for piece in parts:
        if isinstance(piece, Mapping):
            piece = piece.get("text")
        if isinstance(piece, str):
            yield piece
