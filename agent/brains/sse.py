"""Server-sent events of a chat completion, as servers really send them; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

_DECODER = json.JSONDecoder()
_USUAL = "data: {"
_NOTHING = object()
"""No event is complete yet; ``None`` could be one."""


class BadEvent(ValueError):
    """An event is no JSON; the message holds its beginning."""


class Events:
    """Turns pieces of a stream into the objects in its ``data`` lines.

    Takes lines that end in LF or CRLF and are split anywhere, ``data:`` with and without a space,
    comments, an object over several lines, events without an empty line between them, and
    ``error:`` lines, as older llama.cpp servers send them.
    """

    def __init__(self) -> None:
        self.done = False
        """``[DONE]`` was seen; what comes after it is not read."""
        self._rest = bytearray()
        self._open = ""
        self._is_error = False

    def feed(self, piece: bytes) -> Iterator[Any]:
        """Yield what is complete with this piece.

        Raises:
            BadEvent: an event is no JSON.
        """
        self._rest += piece
        if b"\n" not in piece:
            return
        whole, _, self._rest = self._rest.rpartition(b"\n")
        for line in whole.decode("utf-8", "replace").split("\n"):
            found = self._event(line) if line[:7] == _USUAL else self._line(line.rstrip("\r"))
            if found is not _NOTHING:
                yield found

    def end(self) -> Iterator[Any]:
        """Yield what stands in a last line without an end; a half one is dropped."""
        line, self._rest = bytes(self._rest), bytearray()
        with suppress(BadEvent):
            found = self._line(line.strip().decode("utf-8", "replace"))
            if found is not _NOTHING:
                yield found

    def _event(self, line: str) -> Any:
        """Return an event that stands in its line as most do; else read the line with care."""
        if not (self._open or self._is_error or self.done):
            try:
                data, end = _DECODER.raw_decode(line, 6)
            except (ValueError, RecursionError):
                return self._line(line.rstrip("\r"))
            if end == len(line):
                return data
        return self._line(line.rstrip("\r"))

    def _line(self, line: str) -> Any:
        """Return what is complete with this line; a stream has a line or two for each token."""
        if self.done:
            return _NOTHING
        if not line:
            self._must_be_closed()
            self._is_error = False
            return _NOTHING
        name, _, value = line.partition(":")
        if name in ("data", "error"):
            self._is_error |= name == "error"
            return self._data(value.strip())
        if name == "event":
            self._is_error = value.strip() == "error"
        return _NOTHING

    def _data(self, value: str) -> Any:
        if value == "[DONE]":
            self._must_be_closed()
            self.done = True
            return _NOTHING
        text = f"{self._open}\n{value}" if self._open else value
        if not text:
            return _NOTHING
        try:
            data, end = _DECODER.raw_decode(text)
        except (ValueError, RecursionError):
            end = -1
        if end != len(text):
            self._open = text
            return _NOTHING
        self._open = ""
        if self._is_error and not (isinstance(data, dict) and data.get("error")):
            data = {"error": data}
        return data

    def _must_be_closed(self) -> None:
        if self._open:
            begun, self._open = self._open, ""
            raise BadEvent(begun[:200])
