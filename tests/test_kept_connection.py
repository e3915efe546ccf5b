"""One connection serves many replies, where streams end with their last event or soon after."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

import pytest

from agent.brains.endpoint import Address, Endpoint

EVENTS = (
    b'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
PIECE, END = b"%x\r\n%b\r\n" % (len(EVENTS), EVENTS), b"0\r\n\r\n"
ASKED = 4


class Server:
    """Answers each request on each connection in one way, and counts the connections."""

    def __init__(self, way: str) -> None:
        self.way, self.connections = way, 0
        self.over = threading.Event()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.threads = [threading.Thread(target=self.accept)]

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listening.accept()
                self.connections += 1
                self.threads.append(threading.Thread(target=self.serve, args=(client,)))
                self.threads[-1].start()

    def serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as asked, suppress(OSError):
            while length := self.head(asked):
                asked.read(length)
                self.answer(client)

    def head(self, asked: IO[bytes]) -> int:
        length = 0
        while (line := asked.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return length

    def answer(self, client: socket.socket) -> None:
        client.sendall(HEAD + PIECE + (END if self.way == "at once" else b""))
        if self.way == "soon":
            time.sleep(0.02)
            client.sendall(END)
        while self.way == "talks on" and not self.over.wait(0.02):
            client.sendall(b"3\r\n:\n\n\r\n")
        if self.way == "silent":
            self.over.wait(10)


@contextmanager
def serving(way: str) -> Iterator[tuple[Server, Endpoint]]:
    server = Server(way)
    server.threads[0].start()
    url = f"http://127.0.0.1:{server.listening.getsockname()[1]}/v1"
    try:
        with Endpoint(Address(url, "m"), "", timeout_s=5) as endpoint:
            yield server, endpoint
    finally:
        server.over.set()
        with suppress(OSError):
            server.listening.shutdown(socket.SHUT_RDWR)
        server.listening.close()
        for thread in server.threads:
            thread.join(5)


@pytest.mark.parametrize(
    ("way", "connections"),
    [("at once", 1), ("soon", 1), ("silent", ASKED), ("talks on", ASKED)],
)
def test_a_connection_is_kept_where_streams_end(way: str, connections: int) -> None:
    with serving(way) as (server, endpoint):
        endpoint.models()  # the client is loaded
        server.connections = 0
        began = time.monotonic()
        for _ in range(ASKED):
            answer = endpoint.ask(b"{}", stream=True)
            assert answer.response["choices"][0]["message"]["content"] == "Hello"
        assert server.connections == connections
        assert time.monotonic() - began < 2, "an end that does not come is waited for only once"
