"""Reads one reply from the bytes of a response, streamed or not, whichever was asked for."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from agent.brains.chunks import Assembler
from agent.brains.failures import Failure, Kind, ModelFailed, classify, one_line
from agent.brains.sse import BadEvent, Events

LARGEST = 64 * 2**20
"""Bytes of a reply; nothing that a model says is that long."""

_EVENTS = re.compile(rb"(?:data|event|id|retry|error)?:")
_TELLING = 16
"""So many bytes tell a stream of events from anything else."""
_BLANK = b" \t\r\n\xef\xbb\xbf"


class ReplyReader:
    """Reads one reply."""

    def __init__(
        self, on_text: Callable[[str], None] | None = None, largest: int = LARGEST
    ) -> None:
        self.first_at: float | None = None
        """When the first event of a stream came, by ``time.monotonic``."""
        self._on_text, self._largest = on_text, largest

    def read(self, pieces: Iterator[bytes]) -> dict[str, Any]:
        """Return the reply in the shape of a completion that was not streamed.

        Args:
            pieces: the body as it comes; its ``ModelFailed`` passes through, unless the reply was
                complete already.

        Raises:
            ModelFailed: it holds an error, breaks off, or is no completion.
        """
        pieces = _limited(pieces, self._largest)
        head = b""
        for piece in pieces:
            head = (head + piece).lstrip(_BLANK)
            if len(head) >= _TELLING or b"\n" in head or head[:1] in (b"{", b"[", b"<", b":"):
                break
        if _EVENTS.match(head):
            return self._events(chain([head], pieces))
        return _whole(head + b"".join(pieces))

    def _events(self, pieces: Iterator[bytes]) -> dict[str, Any]:
        events, reply = Events(), Assembler()
        try:
            for batch in _batches(events, pieces):
                self._take(batch, reply)
        except ModelFailed as error:
            if not (reply.ended and error.failure.kind in (Kind.NETWORK, Kind.TIMEOUT)):
                raise
        except BadEvent as error:
            raise _no_reply(f"an event that is no JSON: {error}") from error
        if not (reply.ended or events.done):
            raise ModelFailed(Failure(Kind.NETWORK, "the reply broke off before its end"))
        if not reply.begun:
            raise _no_reply("a stream without any choice")
        return reply.result()

    def _take(self, batch: Iterator[Any], reply: Assembler) -> None:
        for data in batch:
            reply.add(_sound(data))
            self.first_at = self.first_at or time.monotonic()
        if self._on_text and (text := reply.new_text()):
            self._on_text(text)


def _batches(events: Events, pieces: Iterator[bytes]) -> Iterator[Iterator[Any]]:
    """Yield the events that each piece of the body completes."""
    for piece in pieces:
        yield events.feed(piece)
        if events.done:
            return
    yield events.end()


def _sound(data: Any) -> dict[str, Any]:
    """Return a chunk that is one; an error object in its place is the failure that it names."""
    if not isinstance(data, dict):
        raise _no_reply(f"an event that is no object: {data}")
    if data.get("error") or data.get("object") == "error":
        raise ModelFailed(classify(None, {}, json.dumps(data)))
    return data


def _whole(body: bytes) -> dict[str, Any]:
    text = body.decode("utf-8", "replace")
    if re.match(r"(?i)<(!doctype|html|head|body)", text):
        failure = classify(404, {}, text)
        raise ModelFailed(Failure(Kind.NOT_FOUND, failure.text.replace("HTTP 404: ", "")))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise _no_reply(text or "an empty body") from None
    if isinstance(data, list) and data:
        data = data[0]
    data = _sound(data)
    if not isinstance(data.get("choices"), list):
        raise _no_reply(text)
    return data


def _limited(pieces: Iterator[bytes], largest: int) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > largest:
            raise _no_reply(f"more than {largest:,} bytes")
        yield piece


def _no_reply(what: str) -> ModelFailed:
    text = f"the answer is no chat completion but {one_line(what, 200)}"
    return ModelFailed(Failure(Kind.NOT_A_REPLY, one_line(text)))
