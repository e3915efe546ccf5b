"""Reads bodies within bounds: whatever a server sends, it ends in time and fits in memory.

It loads the SDK and its HTTP library, so it is itself loaded only once a model is asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import httpx2
import openai

LARGEST_REFUSAL = 2**20
"""Bytes of a refusal that are read; it is classified by them and by its status."""
REFUSAL_S = 10.0
"""How long a refusal's body is read: what it has to say comes with its status."""
_REST_S = 0.25
"""So long a stream may take to end after its last event, for its connection to be used again."""
BROKEN = (httpx2.HTTPError, httpx2.StreamError, OSError)
"""What reading raises where a connection breaks or falls silent."""


class TooLate(Exception):
    """A body was not at its end in time."""


class _Timed(httpx2.SyncByteStream):
    """A body as it comes; the time is looked at below what decompresses, which can be silent."""

    def __init__(self, stream: httpx2.SyncByteStream, until: float) -> None:
        self._stream, self._until = stream, until

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            yield piece
            if time.monotonic() > self._until:
                raise TooLate

    def close(self) -> None:
        self._stream.close()


def pieces(response: httpx2.Response, *, silence_s: float, until: float) -> Iterator[bytes]:
    """Return a body as it comes, decompressed.

    Args:
        response: whose body is still to be read.
        silence_s: longest silence between two pieces.
        until: when its time is over, by ``time.monotonic``; a piece is waited for in any case.

    Raises:
        TooLate: there was more to come at that time; ``BROKEN`` is raised as well.
    """
    response.request.extensions["timeout"]["read"] = silence_s
    if isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = _Timed(response.stream, until)
    return response.iter_bytes()


def beginning(body: Iterator[bytes], most: int) -> bytes:
    """Return the first ``most`` bytes of a body, and read not much more."""
    read = bytearray()
    for piece in body:
        read += piece
        if len(read) >= most:
            break
    return bytes(read[:most])


def refuse(response: httpx2.Response) -> None:
    """Raise what the SDK would raise for a refusal, but before it reads all of its body.

    A hook of the SDK's client. A body that is too long, comes too slowly or breaks off is cut.

    Raises:
        openai.APIStatusError: with the beginning of the body as text.
    """
    if response.is_success:
        return
    silence_s = min(response.request.extensions["timeout"]["read"], REFUSAL_S)
    body = pieces(response, silence_s=silence_s, until=time.monotonic() + silence_s)
    text = beginning(_cut(body), LARGEST_REFUSAL).decode("utf-8", "replace")
    raise openai.APIStatusError(f"HTTP {response.status_code}", response=response, body=text)


def _cut(body: Iterator[bytes]) -> Iterator[bytes]:
    with suppress(TooLate, *BROKEN):
        yield from body


def read_out(response: httpx2.Response) -> bool:
    """Read what follows a stream's last event, and tell whether it ended soon.

    Only then is its connection kept; a new one for each reply takes several round trips.
    """
    if response.is_closed or not isinstance(response.stream, httpx2.SyncByteStream):
        return True
    response.request.extensions["timeout"]["read"] = _REST_S
    until = time.monotonic() + _REST_S
    try:
        for _ in response.stream:
            if time.monotonic() > until:
                return False
    except (TooLate, *BROKEN):
        return False
    return True
