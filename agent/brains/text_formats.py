"""How models write tool calls as text: one reader a family of formats. Pure, in linear time.

A reader gets the text and the match of its opening marker, and says which calls stand there and
where they end; ``None`` where the text is no call. Whether a name is one of the tools that were
offered is for ``text_calls.py`` to say.

The formats are those of the models' own chat templates: Hermes and Qwen (``<tool_call>`` with
JSON), Qwen3-Coder (``<function=…>``), GLM (``<arg_key>``), DeepSeek V3 to V4, Kimi K2, MiniMax M2
(``<invoke>``), gpt-oss (harmony), Mistral, Llama 3 and 4, LFM2 and Gemma.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agent.brains.loose_json import Broken, Read, read_strict, read_value
from agent.brains.pythonic import read_pythonic
from agent.brains.text_elements import read_pairs
from agent.brains.text_found import MOST, Found, Reader, end_of

_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "params", "kwargs", "tool_input")
_NAME_KEYS = ("name", "tool", "tool_name", "function_name", "function")

_SPACE = re.compile(r"\s*")
_BETWEEN = re.compile(r"[\s,;]*")
_AFTER_JSON = re.compile(r"[\s}\]\"'`]{0,12}")
_BEFORE_BODY = re.compile(r"\s*(?:```[a-z_]{0,12}\s*)?")
_STOP = re.compile(r"<[|\uff5c]|\[/?TOOL_CALLS\]|```|</")
_CALL_END = re.compile(
    r"\s{0,9}(?:```\s{0,9})?(<[|\uff5c]tool[_▁]call[_▁]end[|\uff5c]>|<\|call\|>|\[/TOOL_CALLS\])?"
)


def calls_in(value: Any) -> tuple[tuple[str, Any], ...] | None:
    """Return the calls that a JSON value stands for; ``None``: it is something else."""
    if isinstance(value, Mapping) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    if isinstance(value, list):
        calls = [_call_in(item) for item in value[:MOST]]
        return tuple(call for call in calls if call) if calls and all(calls) else None
    call = _call_in(value)
    return (call,) if call else None


def _call_in(value: Any) -> tuple[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    inner = value.get("function")
    if isinstance(inner, Mapping):
        value = inner
    names = [value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)]
    given = [value[key] for key in _ARGUMENT_KEYS if key in value]
    if not names or (not given and len(value) > 1):
        return None
    args = given[0] if given else {}
    return (names[0], args) if args is None or isinstance(args, Mapping | str) else None


def read_objects(text: str, at: int, stop: int, *, exact: bool = False) -> Found | None:
    """Read JSON that stands for calls: one value, or several after each other.

    Args:
        text: The reply.
        at: Where the first value begins.
        stop: Where the calls end at the latest, for JSON that is not whole.
        exact: Take valid JSON only.
    """
    calls: list[tuple[str, Any]] = []
    mended = False
    while len(calls) < MOST and text[at : at + 1] in ("{", "["):
        read = read_strict(text, at) or (None if exact else _mended(text, at, stop))
        more = calls_in(read.value) if read else None
        if read is None or more is None:
            return None
        calls += more
        mended = mended or read.mended
        at = end_of(_BETWEEN, text, read.end)
    return Found(tuple(calls), at, certain=not mended) if calls else None


def _mended(text: str, at: int, stop: int) -> Read | None:
    try:
        read = read_value(text[at:stop])
    except Broken:
        return None
    return Read(read.value, at + read.end, mended=True)


def tag_reader(closer: str) -> Reader:
    """Return a reader of what stands between an opening marker and ``closer``."""

    def read(text: str, opener: re.Match[str]) -> Found | None:
        at = end_of(_BEFORE_BODY, text, opener.end())
        found = text.find(closer, at)
        stop = found if found >= 0 else len(text)
        body = read_objects(text, at, stop)
        if body is None:
            python = read_pythonic(text, at)
            body = Found(*python) if python else read_pairs(text, at)
        if body is None:
            return None
        end = end_of(_AFTER_JSON, text, body.end)
        closed = text.startswith(closer, end)
        end = end + len(closer) if closed else body.end
        return Found(body.calls, end, closed, certain=closed or body.certain)

    return read


def read_named(text: str, opener: re.Match[str]) -> Found | None:
    """Read arguments in JSON after a marker that names the tool; broken ones come as text."""
    name, at = opener.group("name"), opener.end()
    read = read_strict(text, at) if text[at : at + 1] == "{" else None
    stop = _STOP.search(text, at)
    end = read.end if read else (stop.start() if stop else len(text))
    raw = read.value if read else text[at:end]
    closing = _CALL_END.match(text, end)
    closed = bool(closing and closing.group(1))
    end = closing.end() if closing else end
    return Found(((name, raw),), end, closed=closed or read is not None)


_DELIMITER = re.compile(r"<\|\"\|>|<escape>")
_BRACE_END = re.compile(r"<tool_call\|>|<end_function_call>")


def read_braces(text: str, opener: re.Match[str]) -> Found | None:
    """Read ``name{key:<|"|>text<|"|>}``, as Gemma writes it."""
    end = _BRACE_END.search(text, opener.end())
    if end is None:
        return None
    pieces = _DELIMITER.split(text[opener.end() : end.start()])
    pieces[1::2] = [json.dumps(piece) for piece in pieces[1::2]]
    return Found(((opener.group("name"), "".join(pieces)),), end.end())


_FENCE_END = re.compile(r"\s*(?:```|\Z)")


def read_fence(text: str, opener: re.Match[str]) -> Found | None:
    """Read a code block that holds nothing but calls; one not made for calls in valid JSON only."""
    at = end_of(_SPACE, text, opener.end())
    made_for_calls = opener.group().startswith("```tool")
    found = text.find("```", at)
    stop = found if found >= 0 else len(text)
    body = read_objects(text, at, stop, exact=not made_for_calls)
    if body is None and made_for_calls:
        python = read_pythonic(text, at)
        body = Found(*python) if python else None
    end = _FENCE_END.match(text, body.end) if body else None
    if body is None or end is None:
        return None
    return Found(body.calls, end.end(), closed=found >= 0, certain=body.certain)


def read_alone(text: str) -> Found | None:
    """Read a reply that is nothing but calls, as JSON or in Python's way of writing."""
    text = text.strip()
    while (token := _TOKEN_AT_END.search(text, max(0, len(text) - 60))) is not None:
        text = text[: token.start()].rstrip()
    body = read_objects(text, 0, len(text))
    if body is None:
        python = read_pythonic(text, 0)
        body = Found(*python) if python else None
    return body if body and not text[body.end :].strip() else None


_TOKEN_AT_END = re.compile(r"(?:<\|[a-z_]{1,20}\|>|</[a-z_]{1,20}>)\Z")
