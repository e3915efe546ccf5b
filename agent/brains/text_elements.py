"""Calls in text whose arguments are elements, one each; pure, in linear time.

Values are not escaped in these formats, so a value may hold what looks like a tag. A value is taken
only where it is plain where it ends: half a command is another command.
"""

from __future__ import annotations

import re
from typing import Any

from agent.brains.arguments import MAX_BYTES
from agent.brains.loose_json import read_strict
from agent.brains.text_found import MOST, NAME, PREFIX, Found, end_of

_LONGEST_VALUE = MAX_BYTES
"""Characters in which the end of a value is looked for."""

_SPACE = re.compile(r"\s*")
_LAST_BRACES = re.compile(r"[\s}]{0,12}")
_FUNCTION_END = re.compile(rf"\s*</{PREFIX}(?:function|invoke)>")
_AFTER_CALL = re.compile(
    rf"\s*(?:\Z|```|<[|\uff5c]|</{PREFIX}[a-z_]{{1,20}}>|<tool_call>|<function[\s=]|<{PREFIX}invoke\s)"
)
_PARAMETER = re.compile(
    rf"\s*<{PREFIX}param(?:eter)?(?:\s{{0,3}}=\s{{0,3}}[\"']?|\s{{1,3}}name\s{{0,3}}=\s{{0,3}}[\"'])"
    r"([\w.-]{1,100})[\"']?([^<>]{0,60})>"
)
_PARAMETER_END = re.compile(
    rf"<(?:(/{PREFIX}param(?:eter)?>)|({PREFIX}parameter[\s=])|function[\s=]|{PREFIX}invoke\s)"
)
_ELEMENT_END = re.compile(rf"</{PREFIX}(?:function|invoke|tool_calls?|function_calls)>")
_PAIRS_NAME = re.compile(rf"({NAME})\s*(?=<arg_key>|</tool_call>)")
_PAIR = re.compile(r"\s*<arg_key>([^<>]{1,100})</arg_key>\s*<arg_value>")
_PAIR_END = re.compile(r"<(?:(/arg_value>)|(arg_key>))")
_PAIRS_END = re.compile(r"</tool_call>")


def read_elements(text: str, opener: re.Match[str]) -> Found | None:
    """Read one element a parameter, or JSON, inside ``<function=name>`` or ``<invoke name=…>``."""
    name, at = opener.group("name"), opener.end()
    if opener.group().endswith("/>"):
        return Found(((name, {}),), at)
    start = end_of(_SPACE, text, at)
    if text[start : start + 1] == "{":
        return _read_body(text, start, name)
    args: dict[str, Any] = {}
    for _ in range(MOST):
        parameter = _PARAMETER.match(text, at)
        if parameter is None:
            break
        value = _value(text, parameter.end(), _PARAMETER_END, _ELEMENT_END)
        if value is None:
            return None
        args[parameter.group(1)], at = _typed(value[0], parameter), value[1]
    closing = _FUNCTION_END.match(text, at)
    if closing is None and not (args and _AFTER_CALL.match(text, at)):
        return None
    end = closing.end() if closing else at
    return Found(((name, args),), end, closed=closing is not None, certain=closing is not None)


def _read_body(text: str, at: int, name: str) -> Found:
    """Read arguments in JSON; broken ones come as text."""
    read = read_strict(text, at)
    if read is not None:
        closing = _FUNCTION_END.match(text, end_of(_LAST_BRACES, text, read.end))
        end = closing.end() if closing else read.end
        return Found(((name, read.value),), end, closed=closing is not None)
    stop = _FUNCTION_END.search(text, at)
    raw = text[at : stop.start()] if stop else text[at:]
    return Found(((name, raw),), stop.end() if stop else len(text), closed=stop is not None)


def _typed(value: str, parameter: re.Match[str]) -> Any:
    """Read a value that its tag says to be no string."""
    if 'string="false"' not in parameter.group(2):
        return value
    read = read_strict(value)
    return read.value if read and not value[read.end :].strip() else value


def read_pairs(text: str, at: int) -> Found | None:
    """Read a name, then ``<arg_key>`` and ``<arg_value>`` in turn."""
    name = _PAIRS_NAME.match(text, at)
    if name is None:
        return None
    args: dict[str, str] = {}
    at = name.end()
    for _ in range(MOST):
        pair = _PAIR.match(text, at)
        if pair is None:
            break
        value = _value(text, pair.end(), _PAIR_END, _PAIRS_END)
        if value is None:
            return None
        args[pair.group(1).strip()], at = value
    if not _AFTER_CALL.match(text, at):
        return None
    return Found(((name.group(1), args),), at, closed=True, certain=False)


def _value(
    text: str, at: int, own: re.Pattern[str], outer: re.Pattern[str]
) -> tuple[str, int] | None:
    """Return a value and where it goes on after it; ``None`` where that is not plain.

    Args:
        text: The reply.
        at: Where the value begins.
        own: Its closing tag, the next value's opening tag (each a group), or another call's.
        outer: Tags that end it where its own is missing.
    """
    limit = at + _LONGEST_VALUE
    end = own.search(text, at, limit)
    closed = end is not None and end.group(1) is not None
    if not closed:
        outside = outer.search(text, at, end.start() if end else limit)
        end = outside or (end if end and end.group(2) else None)
    if end is None:
        return None
    value = text[at : end.start()].removeprefix("\r\n").removeprefix("\n")
    value = value.removesuffix("\n").removesuffix("\r")  # line ends that only part it from its tags
    if not closed and value[-1:] in ("'", '"', "`") and value.count(value[-1]) % 2:
        return None  # the tag is quoted, so it is a part of the value
    return value, end.end() if closed else end.start()
