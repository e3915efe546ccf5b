"""Tool calls in Python's way of writing: ``[name(a=1, b="x"), other()]``, literals only."""

from __future__ import annotations

import re
from typing import Any

from agent.brains.loose_json import Broken, read_value

_LIST = re.compile(r"\s*\[")
_CALL = re.compile(r"\s*(print\(\s*)?(?!print\()([A-Za-z_][\w.]{0,99})\(\s*")
_KEYWORD = re.compile(r"\s*([A-Za-z_]\w{0,99})\s*=\s*(?!=)")
_AFTER_VALUE = re.compile(r"\s*,?\s*(\)?)")
_BETWEEN = re.compile(r"[\s,;]*")
_MOST = 128

Calls = tuple[tuple[tuple[str, Any], ...], int]
"""The calls, and where they end."""


def read_pythonic(text: str, at: int) -> Calls | None:
    """Read calls that begin at ``at``; ``None`` where there are none or one is not plain."""
    opener = _LIST.match(text, at)
    at = opener.end() if opener else at
    calls: list[tuple[str, Any]] = []
    while len(calls) < _MOST and (call := _CALL.match(text, at)) is not None:
        try:
            args, at = _read_args(text, call.end())
        except Broken:
            return None
        if call.group(1):  # the printing around it
            if not text.startswith(")", at):
                return None
            at += 1
        calls.append((call.group(2), args))
        between = _BETWEEN.match(text, at)
        at = between.end() if between else at
    if opener is not None:
        if not text.startswith("]", at):
            return None
        at += 1
    return (tuple(calls), at) if calls else None


def _read_args(text: str, at: int) -> tuple[Any, int]:
    """Read keyword arguments, or one object, up to the closing bracket.

    Raises:
        Broken: they are something else.
    """
    args: dict[str, Any] = {}
    if text.startswith("{", at):
        read = read_value(text, at, python=True)
        args, at = read.value, _after(text, read.end)
    while not text.startswith(")", at):
        keyword = _KEYWORD.match(text, at)
        if keyword is None:
            raise Broken("an argument has no name")
        read = read_value(text, keyword.end(), python=True)
        args[keyword.group(1)] = read.value
        at = _after(text, read.end)
    return args, at + 1


def _after(text: str, at: int) -> int:
    """Return where the next argument, or the closing bracket, stands.

    Raises:
        Broken: what was read goes on, so it was no literal.
    """
    after = _AFTER_VALUE.match(text, at)
    end = after.end() if after else at
    if after is None or end == at or (not after.group(1) and "," not in after.group()):
        raise Broken("an argument is no literal")
    return end - len(after.group(1))
