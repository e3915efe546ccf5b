"""Every way in which asking a model fails, over real HTTP: what is told, and what never is."""

from __future__ import annotations

import json
import re
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

import openai
import pytest

from agent.brains.failures import Kind, ModelFailed
from tests.hub_host import tls_context
from tests.lab.stub_model import Reply, Stub, chunks, refused, serving, sse
from tests.model_client import HELLO, KEY, ask, endpoint, failure_of

FIRST, SECOND, USAGE = [json.dumps(chunk) for chunk in chunks(HELLO)]


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (refused(401, "Incorrect API key"), Kind.KEY, r"HTTP 401: Incorrect API key \(check the"),
        (refused(403, "no"), Kind.KEY, "HTTP 403: no"),
        (refused(400, "bad", param="tools"), Kind.REQUEST, "HTTP 400: bad"),
        (refused(402, "Insufficient Balance"), Kind.QUOTA, "no credit or quota left"),
        (refused(429, "slow", {"Retry-After": "9"}), Kind.RATE, "HTTP 429: slow"),
        (refused(503, "busy"), Kind.SERVER, "HTTP 503: busy"),
        ((503, {}, "<html><title>Bad</title>"), Kind.SERVER, "a web page, 'Bad'"),
        ((308, {"Location": "https://e.example/"}, ""), Kind.NOT_FOUND, "https://e.example/"),
        ("reset", Kind.NETWORK, "the connection broke"),
        ((200, {}, ""), Kind.NOT_A_REPLY, "no chat completion but an empty body"),
        ((200, {}, "OK"), Kind.NOT_A_REPLY, "no chat completion but OK"),
        ((200, {}, '{"response": "hi"}'), Kind.NOT_A_REPLY, "no chat completion but"),
        ((200, {}, "[1, 2]"), Kind.NOT_A_REPLY, "no object"),
        ((200, {}, "{" * 9999), Kind.NOT_A_REPLY, "no chat completion but"),
        ((200, {}, "<!DOCTYPE html><title>Hi</title>"), Kind.NOT_FOUND, "a web page, 'Hi'"),
        (sse({"choices": []}), Kind.NOT_A_REPLY, "without any choice"),
        (sse("data: rubbish\n\n"), Kind.NOT_A_REPLY, "no JSON: rubbish"),
        (sse("data: 7\n\n"), Kind.NOT_A_REPLY, "no object: 7"),
        ((200, {}, refused(500, "inner")[2]), Kind.SERVER, "inner"),
        (sse(json.loads(FIRST), ends="cut"), Kind.NETWORK, "the connection broke"),
        (sse(json.loads(FIRST), ends="close"), Kind.NETWORK, "broke off before its end"),
        (sse(json.loads(FIRST), ends="open"), Kind.NETWORK, "broke off before its end"),
        (
            sse(json.loads(FIRST), {"error": {"code": 502, "message": "gone"}}),
            Kind.SERVER,
            "HTTP 502: gone",
        ),
        (
            sse('event: error\ndata: {"message": "oh"}\n\n'),
            Kind.SERVER,
            "an error in the reply: oh",
        ),
        (sse('error: {"code": 400, "message": "no"}\n\n'), Kind.REQUEST, "no"),
    ],
)
def test_each_way_to_fail_is_told(reply: Reply, kind: Kind, words: str) -> None:
    error = failure_of(reply)
    assert error.failure.kind is kind
    assert re.search(words, str(error))
    assert str(error) == error.failure.text
    assert "http://127.0.0.1:" in str(error)
    assert str(error).isprintable()
    assert len(str(error)) <= 600


def test_one_request_is_one_attempt() -> None:
    replies: list[Reply] = [refused(503, "busy"), refused(429, "slow"), "reset", (200, {}, "")]
    for reply in replies:
        with serving([reply, HELLO]) as stub, pytest.raises(ModelFailed):
            ask(stub)
        assert len(stub.asked) == 1


def test_the_original_exception_holds_status_and_body() -> None:
    error = failure_of(refused(418, "I am a teapot"))
    assert error.failure.status == 418
    assert "I am a teapot" in error.failure.text
    cause = error.__cause__
    assert isinstance(cause, openai.APIStatusError)
    assert (cause.status_code, "I am a teapot" in str(cause.body)) == (418, True)


def test_headers_say_when_to_ask_again() -> None:
    assert failure_of(refused(429, "slow", {"retry-after-ms": "1500"})).failure.retry_after_s == 1.5


@pytest.mark.parametrize("echo", [KEY, f"Bearer {KEY}", json.dumps(KEY), quote(KEY, safe="")])
@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_the_key_is_in_no_error(echo: str, status: int) -> None:
    replies: list[Reply] = [
        (status, {}, f"no: {echo}"),
        refused(status, f"your key {echo} is wrong"),
    ]
    for reply in replies:
        error = failure_of(reply)
        whole = "".join(traceback.format_exception(error)) + repr(vars(error.__cause__ or error))
        assert "secret+12345" not in unquote(whole)
        assert "«key»" in str(error)


def test_where_nothing_listens_it_is_asked_whether_the_server_runs() -> None:
    with serving([]) as stub:
        url = stub.url
    with pytest.raises(ModelFailed, match=f"^nothing listens at {url}/chat/completions: is the"):
        ask(stub, url=url)


def test_an_unknown_host_is_final() -> None:
    with pytest.raises(ModelFailed, match=r"no such host: .*; check the base URL") as caught:
        ask(Stub([]), url="http://models.invalid/v1")
    assert not caught.value.failure.retryable


def test_a_certificate_that_nobody_knows_is_final(tmp_path: Path) -> None:
    with tls_server(tmp_path) as url, pytest.raises(ModelFailed, match="not trusted") as caught:
        ask(Stub([]), url=url)
    assert not caught.value.failure.retryable


def test_https_where_http_is_spoken_is_told() -> None:
    with serving([HELLO]) as stub, pytest.raises(ModelFailed, match="is it http or https"):
        ask(stub, url=stub.url.replace("http:", "https:"))


@contextmanager
def tls_server(folder: Path) -> Iterator[str]:
    import socket

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        context = tls_context(folder)

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                try:
                    context.wrap_socket(connection, server_side=True).close()
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}/v1"
        thread.join(5)


@pytest.mark.parametrize(
    "reply", ["hang", sse(json.loads(FIRST), ends="hang"), sse(": alive\n\n", ends="hang")]
)
def test_silence_ends(reply: Reply) -> None:
    error = failure_of(reply, timeout_s=0.2)
    assert error.failure.kind is Kind.TIMEOUT
    assert "nothing came for 0.2 s" in str(error)


def test_silence_after_the_last_piece_is_no_failure() -> None:
    with serving([sse(*chunks(HELLO), ends="hang")]) as stub:
        answer = ask(stub, timeout_s=0.2)
    assert answer.response["choices"][0]["message"]["content"] == "Hello there"


def test_a_stream_that_only_says_that_it_lives_ends() -> None:
    alive = [part for _ in range(40) for part in (": alive\n\n", 0.05)]
    error = failure_of(sse(*alive), timeout_s=1, total_s=0.3)
    assert error.failure.kind is Kind.TIMEOUT
    assert "still not at its end after 0.3 s" in str(error)


def test_ctrl_c_while_a_reply_comes_goes_through() -> None:
    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with serving([HELLO]) as stub, endpoint(stub.url) as made, pytest.raises(KeyboardInterrupt):
        made.ask(b'{"stream": true}', stream=True, on_text=stop)
