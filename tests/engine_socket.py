"""A socket that plays a Docker engine as a test wants it: with errors, in pieces, or not at all."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Answer = Callable[[socket.socket, str], None]
"""Is given a connection and the first line of a request."""


@contextlib.contextmanager
def engine_like(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer) -> Iterator[None]:
    """Let a socket play the engine: ``answer`` is given each connection's first request line."""
    path = folder / "docker.sock"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    connections: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            connections.append(connection)
            threading.Thread(target=talk, args=(connection, answer), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    try:
        yield
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        for connection in connections:
            hang_up(connection)


def talk(connection: socket.socket, answer: Answer) -> None:
    """Answer the requests of one connection."""
    with contextlib.suppress(OSError), connection, connection.makefile("rb") as lines:
        while first := lines.readline().decode():
            while lines.readline().strip():
                pass
            answer(connection, first)


def hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def reply(
    connection: socket.socket, code: str, data: object, kind: str = "application/json"
) -> None:
    body = json.dumps(data).encode() if kind == "application/json" else str(data).encode()
    head = f"HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)


def begin(connection: socket.socket) -> None:
    head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection.sendall(head.encode())


def chunk(connection: socket.socket, data: object) -> None:
    body = json.dumps(data).encode() + b"\r\n"
    connection.sendall(f"{len(body):x}\r\n".encode() + body + b"\r\n")
