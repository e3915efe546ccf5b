"""A reader of JSON as models write it: it mends what has one meaning and refuses to guess the rest.

Mended: single quotes, Python's ``True`` and ``None``, trailing commas, bare keys, raw line ends and
unknown escapes in strings, quotes that were not escaped, closing brackets lost at the end. Never
mended: text that ends inside a string or after a number, since half a command or half a port is
another command and another port.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

MAX_DEPTH = 50
"""Brackets inside brackets; deeper text is refused."""
_LONGEST_NUMBER = 400

_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"[-+]?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")
_AFTER_STRING = re.compile(r"\s*(?:[,:}\])]|\Z)")
_SPECIAL = {quote: re.compile(rf"[{quote}\\]") for quote in "\"'"}
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_HEX = {"x": re.compile(r"[0-9a-fA-F]{2}"), "u": re.compile(r"[0-9a-fA-F]{4}")}
_CLOSERS = {"{": "}", "[": "]", "(": ")"}


class Broken(ValueError):
    """Text that is no JSON value, even with goodwill."""

    def __init__(self, why: str, *, ended: bool = False) -> None:
        super().__init__(why)
        self.ended = ended
        """Whether there is too little text rather than wrong text."""


@dataclass(frozen=True, slots=True)
class Read:
    """A value and where its text ends."""

    value: Any
    end: int
    mended: bool = False
    """Whether the text was not JSON as it stood."""


def _refuse(name: str) -> NoReturn:
    raise Broken(f"{name} is no JSON number")


_STRICT = json.JSONDecoder(strict=False, parse_constant=_refuse)


def read_strict(text: str, at: int = 0) -> Read | None:
    """Return the JSON value that begins at ``at``; ``None`` where there is no whole one."""
    start = _end(_SPACE, text, at)
    try:
        value, end = _STRICT.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return Read(value, end)


def read_value(text: str, at: int = 0, *, python: bool = False) -> Read:
    """Return the value that begins at ``at``; what follows it is not looked at.

    Args:
        text: Where to read.
        at: Where the value begins; white space before it is skipped.
        python: Read a Python literal: tuples are lists, and a quote always ends a string.

    Raises:
        Broken: there is no value, or its meaning would have to be guessed.
    """
    found = None if python else read_strict(text, at)
    if found is not None:
        return found
    reader = _Reader(text, at, python)
    value = reader.value(0)
    return Read(value, reader.at, mended=True)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


class _Reader:
    """Reads one value by recursive descent, in time that grows with the text alone."""

    def __init__(self, text: str, at: int, python: bool) -> None:
        self.text, self.at, self.python = text, at, python

    def peek(self) -> str:
        """Skip white space and return the next character, empty at the end."""
        self.at = _end(_SPACE, self.text, self.at)
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Any:
        char = self.peek()
        if not char:
            raise Broken("it ends where a value should come", ended=True)
        if depth > MAX_DEPTH:
            raise Broken(f"it is nested deeper than {MAX_DEPTH} levels")
        if char in "\"'":
            return self.string(char, plain=self.python)
        if char == "{":
            return self.mapping(depth)
        if char == "[" or (char == "(" and self.python):
            return self.sequence(char, depth)
        return self.plain()

    def plain(self) -> Any:
        """Read a number or a word such as ``true``."""
        number = _NUMBER.match(self.text, self.at)
        if number is not None:
            self.at = number.end()
            return _number(number.group(), ended=self.at == len(self.text))
        word = _WORD.match(self.text, self.at)
        said = word.group() if word else self.text[self.at]
        if said not in _WORDS:
            begun = any(known.startswith(said) for known in _WORDS)
            ended = begun and self.at + len(said) == len(self.text)
            raise Broken(f"{said[:40]!r} is no JSON value", ended=ended)
        self.at += len(said)
        return _WORDS[said]

    def mapping(self, depth: int) -> dict[str, Any]:
        self.at += 1
        values: dict[str, Any] = {}
        while not self.closed("}"):
            key = self.key()
            if self.peek() != ":":
                raise Broken(f"a colon is missing after {key[:40]!r}", ended=self.over)
            self.at += 1
            values[key] = self.value(depth + 1)
            if self.last("}"):
                break
        return values

    def sequence(self, opener: str, depth: int) -> list[Any]:
        self.at += 1
        values: list[Any] = []
        closer = _CLOSERS[opener]
        while not self.closed(closer):
            values.append(self.value(depth + 1))
            if self.last(closer):
                break
        return values

    def closed(self, closer: str) -> bool:
        """Whether the closing bracket comes now, instead of another entry."""
        char = self.peek()
        if not char:
            raise Broken("it ends inside brackets", ended=True)
        self.at += char == closer
        return char == closer

    def last(self, closer: str) -> bool:
        """Whether an entry was the last one: a bracket, or the end of the text, follows it."""
        char = self.peek()
        if char not in ("", ",", closer):
            raise Broken(f"{char!r} comes where a comma or {closer!r} should")
        self.at += char != ""
        return char != ","

    @property
    def over(self) -> bool:
        return self.at >= len(self.text)

    def key(self) -> str:
        char = self.peek()
        if char and char in "\"'":
            return self.string(char, plain=True)
        word = _WORD.match(self.text, self.at)
        if word is None:
            raise Broken(f"{char!r} comes where a key should")
        self.at = word.end()
        return word.group()

    def string(self, quote: str, *, plain: bool) -> str:
        """Read a string; a ``plain`` one ends at the first quote that is not escaped."""
        if self.text.startswith(quote * 3, self.at):
            return self.triple(quote)
        self.at += 1
        parts: list[str] = []
        inner = 0
        while True:
            special = _SPECIAL[quote].search(self.text, self.at)
            if special is None:
                raise Broken("it ends inside a string", ended=True)
            parts.append(self.text[self.at : special.start()])
            self.at = special.end()
            if special.group() == "\\":
                parts.append(self.escape())
            elif plain or _AFTER_STRING.match(self.text, self.at):
                break
            else:
                parts.append(quote)
                inner += 1
        if inner % 2:
            raise Broken("a quote inside a string is not escaped")
        return _joined("".join(parts))

    def triple(self, quote: str) -> str:
        end = self.text.find(quote * 3, self.at + 3)
        if end < 0:
            raise Broken("it ends inside a string", ended=True)
        said = self.text[self.at + 3 : end]
        self.at = end + 3
        return said

    def escape(self) -> str:
        """Read what follows a backslash; one that means nothing is kept as it is."""
        char = self.text[self.at : self.at + 1]
        self.at += 1
        code = _HEX[char].match(self.text, self.at) if char in _HEX else None
        if code is not None:
            self.at = code.end()
            return chr(int(code.group(), 16))
        if char in _ESCAPES:
            return _ESCAPES[char]
        return char if char in "\"'\\/" else f"\\{char}"


def _number(said: str, *, ended: bool) -> int | float:
    if ended:
        raise Broken("it ends after a number, which may be cut", ended=True)
    if len(said) > _LONGEST_NUMBER:
        raise Broken("a number is too long")
    if said.lstrip("+-").isdigit():
        return int(said)
    value = float(said)
    if not math.isfinite(value):
        raise Broken(f"{said} is no JSON number")
    return value


def _joined(text: str) -> str:
    """Put pairs of surrogates, as JSON writes characters beyond 16 bits, together."""
    if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
