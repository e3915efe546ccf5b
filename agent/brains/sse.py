"""Server-sent events of a chat completion, as servers really send them; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


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
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        for line in lines:
            yield from self._line(line.rstrip(b"\r").decode("utf-8", "replace"))

    def end(self) -> Iterator[Any]:
        """Yield what stands in a last line without an end; a half one is dropped."""
        line, self._rest = bytes(self._rest), bytearray()
        try:
            yield from self._line(line.strip().decode("utf-8", "replace"))
        except BadEvent:
            return

    def _line(self, line: str) -> Iterator[Any]:
        if self.done:
            return
        if not line:
            self._must_be_closed()
            self._is_error = False
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._is_error = value.strip() == "error"
        elif name in ("data", "error"):
            self._is_error |= name == "error"
            yield from self._data(value)

    def _data(self, value: str) -> Iterator[Any]:
        if value.strip() == "[DONE]":
            self._must_be_closed()
            self.done = True
            return
        text = f"{self._open}\n{value}" if self._open else value
        if not text.strip():
            return
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            self._open = text
            return
        self._open = ""
        if self._is_error and not (isinstance(data, dict) and data.get("error")):
            data = {"error": data}
        yield data

    def _must_be_closed(self) -> None:
        if self._open:
            begun, self._open = self._open, ""
            raise BadEvent(begun[:200])
