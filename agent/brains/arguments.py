"""Arguments of a tool call as models and servers send them, read into one JSON object.

Nothing is dropped in silence and nothing is run by halves: what cannot be read with certainty
becomes a problem in words that a model can act on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agent.brains.fitting import fit
from agent.brains.loose_json import MAX_DEPTH, Broken, read_value

__all__ = ["MAX_BYTES", "capped", "fit", "read_arguments"]

MAX_BYTES = 100_000
"""Largest arguments of one call, as JSON in UTF-8."""
REPAIRED = "arguments repaired"
"""The note on arguments that were no JSON as they stood."""

_MOST_ENCODINGS = 3
"""A string inside a string inside a string is still unpacked."""
_FENCE = re.compile(r"```[a-zA-Z_]{0,20}\s?")
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_QUOTES = ("'", "`")
_CUT_OFF = (
    "the arguments were cut off at the reply's length limit; "
    "make the call again with shorter arguments, or split it into several calls"
)
_SHAPE = 'send one JSON object with the arguments by name, such as {"name": "value"}'
_KINDS: dict[type, str] = {
    list: "a list",
    str: "a string",
    bool: "a truth value",
    int: "a number",
    float: "a number",
}

Arguments = tuple[dict[str, Any], str, tuple[str, ...]]
"""The arguments, what is wrong with them (empty: nothing), and what had to be mended."""


def read_arguments(raw: Any, cut_off: bool) -> Arguments:
    """Read what came as a call's arguments.

    Args:
        raw: A string of JSON as the protocol wants it, or whatever else a server sent.
        cut_off: Whether the reply ended at its length limit.

    Returns:
        The arguments (empty where there is a problem), the problem in words for the model, and
        notes for the record.
    """
    if isinstance(raw, str):
        return _read_text(raw, cut_off)
    if raw is None:
        return ({}, _CUT_OFF if cut_off else "", ())
    if isinstance(raw, Mapping):
        return capped(raw, ())
    return ({}, _not_an_object(raw), ())


def capped(args: Mapping[Any, Any], notes: tuple[str, ...] = ()) -> Arguments:
    """Check that arguments may be stored and sent: depth, size, finite numbers, whole characters.

    Args:
        args: An object; keys that are no strings are written as strings.
        notes: What was noted before.
    """
    named = {key if isinstance(key, str) else str(key): value for key, value in args.items()}
    if _deeper(named, MAX_DEPTH):
        problem = f"the arguments are nested deeper than {MAX_DEPTH} levels; send them flatter"
        return ({}, problem, notes)
    try:
        text = json.dumps(named, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError):
        return ({}, f"the arguments hold what JSON does not know, such as NaN; {_SHAPE}", notes)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return capped(json.loads(_HALF_CHARACTER.sub("\ufffd", text)), (*notes, REPAIRED))
    if size > MAX_BYTES:
        problem = f"the arguments are larger than {MAX_BYTES // 1000} kB; send less in one call"
        return ({}, problem, notes)
    return (named, "", notes)


def _deeper(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return False
    return levels < 0 or any(_deeper(item, levels - 1) for item in value)


def _read_text(raw: str, cut_off: bool) -> Arguments:
    if len(raw) > 2 * MAX_BYTES:
        problem = f"the arguments are larger than {MAX_BYTES // 1000} kB; send less in one call"
        return ({}, problem, ())
    text = _bare(raw)
    if not text:
        return ({}, _CUT_OFF if cut_off else "", ())
    try:
        value, mended = _unpacked(text, cut_off)
    except Broken as error:
        return ({}, _CUT_OFF if cut_off else _malformed(error), ())
    if value is None or value == "":
        return ({}, "", ())
    if not isinstance(value, dict):
        return ({}, _not_an_object(value), ())
    return capped(value, (REPAIRED,) if mended or text != raw.strip() else ())


def _bare(raw: str) -> str:
    """Take a code fence or quotes off that stand around everything."""
    text = raw.strip()
    fence = _FENCE.match(text)
    if fence is not None:
        return text[fence.end() :].removesuffix("```").strip()
    for quote in _QUOTES:
        if len(text) > 1 and text[0] == text[-1] == quote and text[1:].lstrip()[:1] == "{":
            return text[1:-1].strip()
    return text


def _unpacked(text: str, cut_off: bool) -> tuple[Any, bool]:
    """Read JSON, and JSON that stands as a string in JSON.

    Raises:
        Broken: it cannot be read with certainty.
    """
    mended = False
    value: Any = text
    for _ in range(_MOST_ENCODINGS):
        if not isinstance(value, str) or not value.strip():
            break
        if value is not text and value.lstrip()[:1] not in ("{", '"'):
            break  # a string in earnest
        mended = mended or value is not text
        value, more = _one_object(value, cut_off)
        mended = mended or more
    return value, mended


def _one_object(text: str, cut_off: bool) -> tuple[Any, bool]:
    """Read the first value; what follows an object is garbage, unless it is another object.

    Raises:
        Broken: it cannot be read with certainty.
    """
    read = read_value(text)
    if read.mended and cut_off:
        raise Broken("the reply ended at its length limit", ended=True)
    rest = text[read.end :].strip()
    if not rest:
        return read.value, read.mended
    if not isinstance(read.value, dict):
        raise Broken(f"{rest[:20]!r} follows the first value")
    if not rest.startswith("{"):
        return read.value, True
    more = read_value(rest)  # some servers send {} before the arguments, or all of them twice
    if (read.value and read.value != more.value) or rest[more.end :].strip():
        raise Broken("it holds several objects")
    return more.value, True


def _malformed(error: Broken) -> str:
    return f"the arguments are not valid JSON (malformed): {error}; {_SHAPE}"


def _not_an_object(value: Any) -> str:
    kind = _KINDS.get(type(value), "something else")
    return f"the arguments are {kind}, not an object; {_SHAPE}"
