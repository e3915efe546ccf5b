"""Whatever a model's server sends, and however slowly, reading it ends in time and in memory."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from agent.brains.bodies import LARGEST_REFUSAL
from agent.brains.endpoint import Endpoint
from agent.brains.failures import Kind, ModelFailed
from tests.lab.stub_model import chunks, refused, serving, sse
from tests.model_client import HELLO, endpoint, failure_of

SAID = b'{"error": {"message": "Unknown parameter: \'stream_options\'."'


@contextmanager
def pouring(
    status: int, piece: bytes, pause_s: float, *, first: bytes = b"", header: str = ""
) -> Iterator[str]:
    """Serve one request with a body that never ends, and return the base URL."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client, client.makefile("rb") as asked, suppress(OSError):
                length = 0
                while (line := asked.readline()) not in (b"\r\n", b""):
                    name, _, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                asked.read(length)
                client.sendall(f"HTTP/1.1 {status} X\r\n{header}\r\n".encode() + first)
                while not over.wait(pause_s):
                    client.sendall(piece)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        finally:
            over.set()
            thread.join(5)


def failed(made: Endpoint, total_s: float | None = None) -> tuple[ModelFailed, float]:
    began = time.monotonic()
    with pytest.raises(ModelFailed) as caught:
        made.ask(b'{"stream": true}', stream=True, total_s=total_s)
    return caught.value, time.monotonic() - began


# Refusals


@pytest.mark.parametrize(
    ("status", "kind", "parameter"),
    [(400, Kind.REQUEST, "stream_options"), (401, Kind.KEY, ""), (503, Kind.SERVER, "")],
)
def test_a_refusal_that_drips_is_cut_and_classified(
    status: int, kind: Kind, parameter: str
) -> None:
    with (
        pouring(status, b" ", 0.02, first=SAID) as url,
        endpoint(url, timeout_s=5, total_s=0.3) as made,
    ):
        error, took = failed(made)
    assert (error.failure.kind, error.failure.status) == (kind, status)
    assert error.failure.parameter == parameter
    assert "Unknown parameter" in str(error)
    assert took < 2


def test_a_refusal_that_falls_silent_is_cut_and_classified() -> None:
    with pouring(400, b"", 5, first=SAID) as url, endpoint(url, timeout_s=0.2) as made:
        error, took = failed(made)
    assert (error.failure.kind, error.failure.status) == (Kind.REQUEST, 400)
    assert error.failure.parameter == "stream_options"
    assert took < 2


def test_a_refusal_that_breaks_off_is_classified() -> None:
    error = failure_of((402, {"Content-Length": "99", "Connection": "close"}, SAID), timeout_s=0.2)
    assert error.failure.kind is Kind.QUOTA


@pytest.mark.parametrize("packed", [False, True])
def test_a_refusal_without_end_takes_little_memory(packed: bool) -> None:
    piece = b"x" * 2**16
    first, header = SAID, ""
    if packed:
        piece, first = gzip.compress(SAID + bytes(200 * 2**20), 1), b""
        header = "Content-Encoding: gzip\r\n"
    with pouring(400, piece, 0, first=first, header=header) as url, endpoint(url) as made:
        tracemalloc.start()
        error, took = failed(made)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert error.failure.kind is Kind.REQUEST
    assert error.failure.parameter == "stream_options"
    assert peak < 60 * 2**20
    assert took < 10
    cause = error.__cause__
    assert 0 < len(str(getattr(cause, "body", ""))) <= LARGEST_REFUSAL


def test_a_whole_refusal_keeps_its_connection() -> None:
    with serving([refused(400, "no"), HELLO]) as stub, endpoint(stub.url) as made:
        failed(made)
        assert made.ask(b"{}", stream=False).response["choices"]


# Replies


def test_what_decompresses_to_nothing_is_no_reply_without_end() -> None:
    name = b"\x1f\x8b\x08\x08" + bytes(6)  # the beginning of a file's name, which goes on
    header = "Content-Encoding: gzip\r\n"
    with (
        pouring(200, b"n", 0.02, first=name, header=header) as url,
        endpoint(url, timeout_s=5, total_s=0.3) as made,
    ):
        error, took = failed(made)
    assert error.failure.kind is Kind.TIMEOUT
    assert "still not at its end after 0.3 s" in str(error)
    assert took < 2


@pytest.mark.parametrize(("own", "of_all"), [(0.3, 9.0), (9.0, 0.3), (None, 0.3)])
def test_the_shorter_time_counts_for_one_reply(own: float | None, of_all: float) -> None:
    with (
        pouring(200, b": alive\n\n", 0.02) as url,
        endpoint(url, timeout_s=5, total_s=of_all) as made,
    ):
        error, took = failed(made, own)
    assert error.failure.kind is Kind.TIMEOUT
    assert "still not at its end after 0.3 s" in str(error)
    assert took < 2


@pytest.mark.parametrize("reply", ["hang", sse(chunks(HELLO)[0], ends="hang")])
def test_silence_is_not_longer_than_the_time_that_is_left(reply: str) -> None:
    with serving([reply, reply]) as stub, endpoint(stub.url, timeout_s=60) as made:
        error, took = failed(made, 0.2)
    assert error.failure.kind is Kind.TIMEOUT
    assert took < 2


def test_one_short_time_does_not_stay() -> None:
    with serving(["hang", HELLO]) as stub, endpoint(stub.url, timeout_s=60) as made:
        failed(made, 0.1)
        assert made.ask(b"{}", stream=False).response["choices"]


@pytest.mark.parametrize("left", [0.0, -3.0])
def test_without_any_time_nothing_is_sent(left: float) -> None:
    with serving([HELLO]) as stub, endpoint(stub.url) as made:
        error, _ = failed(made, left)
        assert stub.asked == []
    assert error.failure.kind is Kind.TIMEOUT
    assert not error.failure.retryable


# Looks


@pytest.mark.parametrize("status", [200, 404])
def test_a_look_at_a_body_without_end_ends(status: int) -> None:
    with pouring(status, b"[" * 2**18, 0) as url, endpoint(url) as made:
        began = time.monotonic()
        assert made.models() == []
        assert time.monotonic() - began < 5


def test_a_list_that_is_too_long_is_none() -> None:
    rows = [{"id": "m" * 1000}] * 9000
    with serving([], routes={"/v1/models": {"data": rows}}) as stub, endpoint(stub.url) as made:
        assert len(json.dumps(rows)) > 8 * 2**20
        assert made.models() == []
