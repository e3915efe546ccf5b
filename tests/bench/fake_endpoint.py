"""An OpenAI-compatible endpoint that answers at once, in a process of its own.

``python -m tests.bench.fake_endpoint AGENT FORM STEPS`` prints its port, and serves until its
standard input ends; then it prints ``[arrived, answered, bytes]`` of each request, as one line of
JSON. AGENT is ``ours`` or ``mini`` and says whose tools are called, FORM is ``stream`` or ``json``.
It never reads what a body says; usage is reckoned from its length.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.lab.checkout import ROOT

BYTES_PER_TOKEN = 4
PIECE = 4
"""So many characters of a reply come in one event of a stream: about a token."""
LEAD = 1
"""Requests before the steps that count: connections are made and modules loaded then."""
SAYS = (
    "Step {n}: the log goes on, and what was read so far does not say yet why the engine ended. The"
    " weights were loaded on every rank and the cache profile ran, and the warning about the"
    " attention backend is no error, so what comes before the first line of level E is what matters"
    " here. I look at the next piece of it; should that piece only repeat what is known, I look for"
    " the name of the module that the last traceback ended in, and go on from there."
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"


def call_of(agent: str, n: int, steps: int) -> tuple[str, dict[str, Any]]:
    """Return the tool that is called at a step, and its arguments: no two are the same."""
    if agent == "mini":
        done = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
        look = f"tail -c +{n * 4000} /srv/logs/server.log | head -c 4000"
        find = f"grep -rnE 'ERROR.*step {n}' /srv/logs"
        return "bash", {"command": done if n > steps else look if n % 2 else find}
    if n < 1:
        return "take_suggestion", {"id": "s1"}
    if n > steps:
        return "give_up", {"cause": "the steps of the benchmark are done", "advice": "Nothing."}
    if n % 2:
        return "read_file", {"path": "/srv/logs/server.log", "offset_bytes": n * 4000}
    return "grep", {"pattern": f"ERROR.*step {n}", "path": "/srv/logs"}


def as_json(n: int, name: str, arguments: str) -> bytes:
    """Return a whole reply; ``%d`` stands where usage comes."""
    function = {"name": name, "arguments": arguments}
    call = {"id": f"call_{n:06d}", "type": "function", "function": function}
    message = {"role": "assistant", "content": SAYS.format(n=n), "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return _with_usage({"object": "chat.completion", "choices": [choice]}, n)


def as_stream(n: int, name: str, arguments: str) -> bytes:
    """Return a reply as events, about one a token; ``%d`` stands where usage comes."""
    first = {"index": 0, "id": f"call_{n:06d}", "type": "function"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in _pieces(SAYS.format(n=n))]
    deltas += [{"tool_calls": [{**first, "function": {"name": name, "arguments": ""}}]}]
    deltas += [
        {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
        for piece in _pieces(arguments)
    ]
    chunk = {"id": f"chatcmpl-{n}", "object": "chat.completion.chunk", "model": "bench"}
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": delta, "finish_reason": None} for delta in deltas
    ]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    events = [json.dumps({**chunk, "choices": [choice]}).encode() for choice in choices]
    events.append(_with_usage({**chunk, "choices": []}, n))
    return b"".join(b"data: %s\n\n" % event for event in [*events, b"[DONE]"])


def _with_usage(reply: dict[str, Any], n: int) -> bytes:
    usage = b'{"prompt_tokens": %d, "completion_tokens": 150, "total_tokens": %d}'
    text = json.dumps({"id": f"chatcmpl-{n}", "created": 0, "model": "bench", **reply})
    return text[:-1].encode() + b', "usage": ' + usage + b"}"


def _pieces(text: str) -> list[str]:
    return [text[begin : begin + PIECE] for begin in range(0, len(text), PIECE)]


@dataclass
class Served:
    """The replies, ready to be sent, and what was asked so far."""

    replies: list[bytes]
    kind: bytes
    asked: list[tuple[float, float, int]] = field(default_factory=list)

    def serve(self, client: socket.socket) -> None:
        """Answer the requests of one connection until it is closed."""
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client:
            while (head := _head(client)) is not None:
                arrived = time.monotonic()
                length = _length(head[0])
                _skip(client, length - len(head[1]))
                reply = self.replies[min(len(self.asked), len(self.replies) - 1)]
                tokens = length // BYTES_PER_TOKEN
                text = reply % (tokens, tokens + 150)
                client.sendall(HEAD % (self.kind, len(text)) + text)
                self.asked.append((arrived, time.monotonic(), length))


def _head(client: socket.socket) -> tuple[bytes, bytes] | None:
    """Return a request's head and what has come of its body; ``None``: no more are coming."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = client.recv(1 << 16)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    return head, body


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _skip(client: socket.socket, length: int) -> None:
    room = memoryview(bytearray(1 << 18))
    while length > 0:
        length -= client.recv_into(room, min(length, len(room))) or length


def main() -> None:
    """Serve until standard input ends."""
    agent, form, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    write = as_stream if form == "stream" else as_json
    replies = [
        write(n, name, json.dumps(args))
        for n in range(1 - LEAD, steps + 2)
        for name, args in (call_of(agent, n, steps),)
    ]
    served = Served(replies, b"text/event-stream" if form == "stream" else b"application/json")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_accept, args=(listening, served), daemon=True).start()
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        sys.stdin.read()
    sys.stdout.write(json.dumps(served.asked) + "\n")


def _accept(listening: socket.socket, served: Served) -> None:
    while True:
        client, _ = listening.accept()
        threading.Thread(target=served.serve, args=(client,), daemon=True).start()


Asked = list[tuple[float, float, int]]
"""Of each request: when it arrived and was answered, in seconds, and the length of its body."""


@contextmanager
def endpoint(agent: str, form: str, steps: int) -> Iterator[tuple[int, Asked]]:
    """Start an endpoint; hand over its port, and a list that holds what was asked at the end."""
    words = [sys.executable, "-m", "tests.bench.fake_endpoint", agent, form, str(steps)]
    asked: Asked = []
    with subprocess.Popen(
        words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("an endpoint without pipes")
        try:
            yield int(process.stdout.readline()), asked
        finally:
            process.stdin.close()
        asked += json.loads(process.stdout.readline())


if __name__ == "__main__":
    main()
