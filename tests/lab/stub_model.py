"""A model's server on loopback that answers as a test wants it: real HTTP, no model.

``serving`` takes replies, one for each request, or a function that makes them. A reply is

- a completion (a dict, see ``said``): streamed where the request asks for a stream;
- ``(status, headers, body)``, sent as it is, the body as text, bytes or data;
- a ``Stream`` of parts, see ``sse``;
- ``"reset"``: the connection is reset before any answer; ``"hang"``: nothing ever comes.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.lab.strict_history import prompt_tokens, strict_problems
from tests.lab.stub_replies import Reply, Stream, chunks, refused, said, sse

__all__ = [
    "Asked",
    "Reply",
    "Stream",
    "Stub",
    "chunks",
    "prompt_tokens",
    "refused",
    "said",
    "serving",
    "sse",
    "strict_problems",
]


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    """By lower-cased name."""
    raw: bytes

    @property
    def body(self) -> Any:
        """What it says."""
        return json.loads(self.raw) if self.raw else None


Script = Sequence[Reply] | Callable[[Asked], Reply]


@dataclass
class Stub:
    """What the server says, and what it was asked."""

    script: Script
    routes: Mapping[str, Any] = field(default_factory=dict)
    """Other paths with what they say: data, ``(status, headers, body)``, or a function of the
    request that returns one of these."""
    base: str = "/v1"
    """Chat completions are below this path and nowhere else."""
    asked: list[Asked] = field(default_factory=list)
    """Requests for chat completions."""
    looked: list[Asked] = field(default_factory=list)
    """All others."""
    root: str = ""
    url: str = ""
    """The base URL to give to a client."""

    def answer(self, asked: Asked) -> Reply:
        """Return the reply to a request, and note it."""
        path = urlsplit(asked.path).path
        if asked.method == "POST" and path == f"{self.base}/chat/completions":
            self.asked.append(asked)
            if callable(self.script):
                return self.script(asked)
            number = len(self.asked)
            over = refused(400, f"the script has no reply number {number}")
            return self.script[number - 1] if number <= len(self.script) else over
        self.looked.append(asked)
        if path not in self.routes:
            return refused(404, "Not Found")
        said = self.routes[path]
        said = said(asked) if callable(said) else said
        return said if isinstance(said, tuple) else (200, {}, said)


@contextmanager
def serving(script: Script, **settings: Any) -> Iterator[Stub]:
    """Serve replies; ``settings`` are the other fields of ``Stub``."""
    stub = Stub(script, **settings)
    server = _Server(stub)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    stub.root = f"http://127.0.0.1:{server.server_port}"
    stub.url = stub.root + stub.base
    try:
        yield stub
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, stub: Stub) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stub = stub
        self.over = threading.Event()

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that went away."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.reply()

    def do_POST(self) -> None:
        self.reply()

    def reply(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, raw)
        reply = self.server.stub.answer(asked)
        if isinstance(reply, dict):
            wants = bool(asked.body and asked.body.get("stream"))
            reply = Stream(tuple(chunks(reply))) if wants else (200, {}, reply)
        if isinstance(reply, tuple):
            self.send_whole(*reply)
        elif isinstance(reply, Stream):
            with contextlib.suppress(OSError):
                self.send_stream(reply)
        else:
            self.send_nothing(reply)

    def send_whole(self, status: int, headers: Mapping[str, str], body: Any) -> None:
        data = body if isinstance(body, str | bytes) else json.dumps(body)
        data = data.encode() if isinstance(data, str) else data
        usual = {"Content-Type": "application/json", "Content-Length": str(len(data))}
        self.send_response(status)
        for key, value in {**usual, **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)

    def send_stream(self, stream: Stream) -> None:
        chunked = stream.ends != "close"
        self.send_response(200)
        self.send_header("Content-Type", stream.kind)
        self.send_header(
            *(("Transfer-Encoding", "chunked") if chunked else ("Connection", "close"))
        )
        self.end_headers()
        parts = (*stream.parts, "data: [DONE]\n\n") if stream.ends == "done" else stream.parts
        for part in parts:
            if isinstance(part, float):
                self.server.over.wait(part)
                continue
            data = f"data: {json.dumps(part)}\n\n" if isinstance(part, dict) else part
            data = data.encode() if isinstance(data, str) else data
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)
        if stream.ends in ("done", "open"):
            self.wfile.write(b"0\r\n\r\n")
            return
        if stream.ends == "hang":
            self.server.over.wait(60)
        self.close_connection = True

    def send_nothing(self, how: str) -> None:
        self.close_connection = True
        if how == "hang":
            self.server.over.wait(60)
        elif how == "reset":
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            os.close(self.connection.detach())
        else:
            raise ValueError(f"no such reply: {how}")
