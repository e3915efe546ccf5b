"""The questions to a server, against servers that answer well, badly, slowly or not at all."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import ValidationError

from tools.base import CallContext
from tools.connectors.local import Local
from tools.endpoint import (
    ChatAnswer,
    ChatCheck,
    ChatCheckArgs,
    HttpAnswer,
    HttpCheck,
    HttpCheckArgs,
)

CALL = CallContext(run_id="r", call_id="c", marker="mark-51c9", host_dir="/nonexistent")
Pieces = list[bytes | float]
"""What a server sends, with pauses in seconds in between."""
Server = Callable[[dict[str, Any]], Pieces]


@contextmanager
def serving(answer: Server) -> Iterator[str]:
    """Run a server that answers each request with raw bytes and then closes; give its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.path == "/v1/chat/completions"
            self.send(body)

        def do_GET(self) -> None:
            self.send({"path": self.path})

        def send(self, body: dict[str, Any]) -> None:
            try:
                for piece in answer(body):
                    if isinstance(piece, bytes):
                        self.wfile.write(piece)
                    else:
                        time.sleep(piece)
            except OSError:
                pass  # the client has gone, as it should

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def get(url: str, timeout_s: float = 5.0) -> HttpAnswer:
    args = HttpCheckArgs(python=sys.executable, url=url, timeout_s=timeout_s)
    return HttpCheck().parse(args, CALL, Local().run(HttpCheck().command(args, CALL)))


def chat(answer: Server, **more: Any) -> ChatAnswer:
    with serving(answer) as url:
        args = ChatCheckArgs(python=sys.executable, base_url=url, model="m", **more)
        return ChatCheck().parse(args, CALL, Local().run(ChatCheck().command(args, CALL)))


def reply(body: str | bytes, status: int = 200, kind: str = "application/json") -> bytes:
    data = body if isinstance(body, bytes) else body.encode()
    return b"HTTP/1.1 %d X\r\nContent-Type: %s\r\n\r\n" % (status, kind.encode()) + data


def sse(*documents: str) -> Pieces:
    return [reply("", kind="text/event-stream"), *(f"data: {d}\n\n".encode() for d in documents)]


def delta(content: str | None, finish: str | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return json.dumps({"choices": [choice], **more})


def message(content: object = "hi", finish: str | None = "stop") -> str:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}}
    usage = {"completion_tokens": 2}
    return json.dumps({"choices": [{**choice, "finish_reason": finish}], "usage": usage})


# --- chat: well-formed


def test_a_stream_is_measured_from_its_pieces() -> None:
    head, first, *rest = sse(delta("a"), delta("b"), delta("c"), delta(None, "length"), "[DONE]")
    seen = chat(lambda _: [head, 0.2, first, 0.2, *rest])
    assert (seen.well_formed, seen.problem, seen.status) == (True, None, 200)
    assert (seen.content, seen.finish_reason, seen.completion_tokens) == ("abc", "length", 3)
    assert seen.streamed
    assert seen.ttft_s is not None
    assert 0.2 <= seen.ttft_s < seen.total_s - 0.15
    assert seen.tokens_per_s is not None
    assert 2 < seen.tokens_per_s < 10.1


def test_the_servers_own_count_is_preferred_and_comments_are_skipped() -> None:
    usage = json.dumps({"choices": [], "usage": {"completion_tokens": 7}})
    seen = chat(lambda _: [*sse(delta("ab"), delta("", "stop"), usage), b": ping\n\nevent: x\n\n"])
    assert (seen.well_formed, seen.completion_tokens, seen.content) == (True, 7, "ab")


def test_an_empty_answer_with_a_finish_reason_is_well_formed() -> None:
    seen = chat(
        lambda _: sse(delta(""), json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]}))
    )
    assert (seen.well_formed, seen.content, seen.ttft_s) == (True, "", None)


def test_thinking_counts_as_tokens() -> None:
    think = json.dumps({"choices": [{"delta": {"reasoning_content": "hm"}, "finish_reason": None}]})
    seen = chat(lambda _: sse(think, think, delta("", "length")))
    assert (seen.well_formed, seen.completion_tokens) == (True, 2)


@pytest.mark.parametrize("status", [400, 404, 405, 422, 501])
def test_a_server_that_cannot_stream_is_asked_again(status: int) -> None:
    asked: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> Pieces:
        asked.append(body)
        return [reply("no", status) if "stream" in body else reply(message())]

    seen = chat(answer, prompt="é; $(x)", max_tokens=5)
    assert (seen.well_formed, seen.streamed, seen.status, seen.content) == (True, False, 200, "hi")
    assert (seen.completion_tokens, seen.ttft_s) == (2, None)
    assert asked[-1] == {
        "model": "m",
        "messages": [{"role": "user", "content": "é; $(x)"}],
        "max_tokens": 5,
    }


def test_a_server_that_only_refuses_an_option_still_streams() -> None:
    def answer(body: dict[str, Any]) -> Pieces:
        return [reply("no", 422)] if "stream_options" in body else sse(delta("a", "stop"))

    assert chat(answer).streamed


def test_a_server_that_ignores_stream_is_asked_without() -> None:
    seen = chat(lambda _: [reply(message())])
    assert (seen.well_formed, seen.streamed, seen.problem) == (True, False, None)


# --- chat: malformed

PAGE = "<html><h1>502 Bad Gateway</h1></html>"
NAN = '{"choices": [{"delta": {"content": "a"}, "logprobs": [NaN], "finish_reason": "stop"}]}'
CUT = b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
BAD: dict[str, tuple[Pieces, int | None, str]] = {
    "nan": (sse(NAN), 200, "holds NaN, which is not JSON"),
    "infinity": (sse(NAN.replace("NaN", "-Infinity")), 200, "holds -Infinity"),
    "no JSON": (sse(delta("a"), "{oops"), 200, "not JSON: {oops"),
    "stray line": ([*sse(delta("a")), b"Traceback:\n"], 200, "no server-sent event: Traceback:"),
    "no finish": (sse(delta("a"), "[DONE]"), 200, "without a finish_reason"),
    "half closed": ([CUT, b"40\r\ndata: {"], 200, "not JSON|closed the connection"),
    "short body": ([reply(message()).replace(b"\r\n\r\n", b"\r\nContent-Length: 999\r\n\r\n")],
                   200, "closed the connection in the middle"),
    "cut stream": ([CUT, b"%x\r\n" % (len(delta("a")) + 8), f"data: {delta('a')}\n\n\r\n".encode()],
                   200, "without a finish_reason|closed the connection"),
    "page as 200": ([reply(PAGE, kind="text/html")], 200, "not JSON: <html>"),
    "page as 502": ([reply(PAGE, 502, "text/html")], 502, "HTTP 502: <html>"),
    "refused": ([reply('{"detail": "no such model"}', 404)], 404, "HTTP 404: .*no such model"),
    "server error": (sse(delta("a"), '{"error": {"message": "boom"}}'), 200, "an error.*boom"),
    "no choices": ([reply("{}")], 200, "no list of choices"),
    "no delta": (sse('{"choices": [{"text": "a"}]}'), 200, "a choice without delta"),
    "no message": ([reply('{"choices": ["a"]}')], 200, "a choice without message"),
    "a list": ([reply("[1]")], 200, "JSON object was expected"),
    "number": ([reply(message(content=3))], 200, "content is not text"),
    "unfinished": ([reply(message(finish=None))], 200, "without a finish_reason"),
    "nothing chosen": ([reply('{"choices": []}')], 200, "without a finish_reason"),
    "deep": ([reply("[" * 100_000)], 200, "not JSON"),
    "empty": ([reply("")], 200, "an empty body"),
    "silence": ([], None, "closed the connection without an answer"),
    "not HTTP": ([b"SSH-2.0-OpenSSH_9.2\r\n"], None, "BadStatusLine"),
    "binary": ([reply(b"\xff\xfe\0\x1b[31m")], 200, "not JSON"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_answer_is_named(name: str) -> None:
    pieces, status, problem = BAD[name]
    seen = chat(lambda _: pieces)
    assert not seen.well_formed
    assert seen.status == status
    with pytest.raises(AssertionError, match=problem):
        raise AssertionError(seen.problem)
    assert seen.headline().startswith("not well-formed: ")


def test_half_characters_and_floods_of_text_do_no_harm() -> None:
    whole = message().replace('"hi"', '"\\ud800\\u0000' + "x" * 5000 + '"')
    seen = chat(lambda _: [reply(whole)])
    assert seen.well_formed
    assert seen.content.startswith("?\0xxx")
    assert len(seen.content) + seen.content_omitted == 5002


@pytest.mark.parametrize("pause", [0.01, 30.0])
def test_a_stream_without_end_is_ended_by_us(pause: float) -> None:
    begun = time.monotonic()
    head, piece = sse(delta("a"))
    many: Pieces = [piece, pause] * 1000 if pause < 1 else [b"data", 1.5]
    seen = chat(lambda _: [head, *many], timeout_s=0.6)
    assert time.monotonic() - begun < 4
    assert seen.problem == "no complete answer within 0.6 s"
    assert (seen.status, seen.streamed) == (200, True)
    assert (seen.content[:1] == "a") is (pause < 1)


# --- plain GET


def test_a_get_shows_status_and_the_head_of_the_body() -> None:
    with serving(lambda body: [reply(f"you asked {body['path']} " + "é" * 9000, 418)]) as url:
        seen = get(url + "/health?x=1;2")
    assert (seen.reachable, seen.status, seen.error) == (True, 418, None)
    assert seen.body_head.startswith("you asked /health?x=1;2 éé")
    assert seen.body_more
    assert 0 < seen.elapsed_s < 5


def test_redirects_are_shown_and_proxies_not_asked_for_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    moved = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n"
    with serving(lambda _: [moved]) as url:
        assert get(url).status == 302
        assert get(url.replace("127.0.0.1", "localhost")).status == 302
    assert "refused" in str(get("http://192.0.2.1/").error)


def test_who_does_not_answer_is_not_reachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        seen = get(f"http://127.0.0.1:{port}/", timeout_s=0.4)
        assert (seen.reachable, seen.error) == (False, "no complete answer within 0.4 s")
    seen = get(f"http://127.0.0.1:{port}/")
    assert (seen.reachable, seen.status) == (False, None)
    assert "Connection refused" in str(seen.error)


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://h/x", "127.0.0.1:80", "http://", "http://u:p@h/", "http://h:x/",
     "http://h/a b", "http://h/\r\nX: y", "http://h/é", "http://h:99999/", "HTTP//h", "gopher://h"],
)  # fmt: skip
def test_only_plain_http_urls_are_taken(url: str) -> None:
    with pytest.raises(ValidationError):
        HttpCheckArgs(python="python3", url=url)
    with pytest.raises(ValidationError):
        ChatCheckArgs(python="python3", base_url=url, model="m")


def test_the_port_is_the_subject() -> None:
    for url, port in {"http://h:81/v1": "81", "https://h": "443", "http://[::1]/x": "80"}.items():
        (subject,) = HttpCheck().subjects(HttpCheckArgs(python="python3", url=url))
        assert (subject.kind, subject.key) == ("port", port)
