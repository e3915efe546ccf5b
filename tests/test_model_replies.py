"""Replies over real HTTP, streamed or whole, as servers really send them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.brains.sse import BadEvent, Events
from tests.lab.stub_model import Stream, chunks, serving, sse
from tests.model_client import CALLS, HELLO, ask, endpoint


@pytest.mark.parametrize("reply", [HELLO, CALLS])
@pytest.mark.parametrize("stream", [True, False])
def test_streamed_and_whole_replies_read_alike(reply: dict[str, Any], stream: bool) -> None:
    with serving([reply]) as stub:
        answer = ask(stub, stream=stream)
    assert answer.response["choices"][0]["message"] == reply["choices"][0]["message"]
    assert answer.response["choices"][0]["finish_reason"] == reply["choices"][0]["finish_reason"]
    assert answer.response["usage"] == reply["usage"]
    assert (answer.first_s is not None) == stream
    assert answer.seconds >= (answer.first_s or 0.0)


def events(reply: dict[str, Any]) -> list[str]:
    return [json.dumps(chunk) for chunk in chunks(reply)]


FIRST, SECOND, USAGE = events(HELLO)
PRETTY = "".join(f"data: {line}\n" for line in json.dumps(json.loads(FIRST), indent=1).split("\n"))
SHAPES: dict[str, Stream] = {
    "without a space": sse(*(f"data:{event}\n\n" for event in events(HELLO))),
    "comments": sse(": OPENROUTER PROCESSING\n\n", *map(json.loads, events(HELLO)), ":\n\n"),
    "crlf": sse(
        *(f"data: {e}\r\n\r\n" for e in events(HELLO)), "data: [DONE]\r\n\r\n", ends="open"
    ),
    "names and ids": sse(*(f"event: message\nid: 7\ndata: {e}\n\n" for e in events(HELLO))),
    "no empty lines": sse(*(f"data: {event}\n" for event in events(HELLO))),
    "in one piece": sse("".join(f"data: {event}\n\n" for event in events(HELLO))),
    "a byte at a time": sse(*(bytes([b]) for b in f"data: {FIRST}\n\ndata: {SECOND}\n\n".encode())),
    "over several lines": sse(f"{PRETTY}\n", json.loads(SECOND)),
    "without the end": sse(*map(json.loads, events(HELLO)), ends="open"),
    "closed": sse(*map(json.loads, events(HELLO)), ends="close"),
    "last line open": sse(f"data: {FIRST}\n\ndata: {SECOND}", ends="close"),
    "without a reason": sse(json.loads(FIRST)),
    "after its end": sse(
        *map(json.loads, events(HELLO)), "data: [DONE]\n\n{rubbish\n", ends="hang"
    ),
    "reset after its end": sse(*map(json.loads, events(HELLO)), ends="cut"),
    "byte order mark": sse(b"\xef\xbb\xbf", *map(json.loads, events(HELLO))),
    "as plain text": Stream(tuple(json.loads(e) for e in events(HELLO)), kind="text/plain"),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stream", [True, False])
def test_streams_are_read_as_servers_send_them(shape: str, stream: bool) -> None:
    with serving([SHAPES[shape]]) as stub:
        answer = ask(stub, stream=stream)
    assert answer.response["choices"][0]["message"]["content"] == "Hello there"


@pytest.mark.parametrize(
    "body", [json.dumps(HELLO), f"\n\n{json.dumps(HELLO)}\n", f"[{json.dumps(HELLO)}]"]
)
def test_a_whole_reply_to_a_request_for_a_stream_is_read(body: str) -> None:
    with serving([(200, {"Content-Type": "text/event-stream"}, body)]) as stub:
        answer = ask(stub)
    assert answer.response["choices"] == HELLO["choices"]
    assert answer.first_s is None


def test_text_is_told_as_it_comes() -> None:
    deltas = [{"content": "Hel"}, {"content": "lo"}, {"content": ""}, {"content": " you"}]
    parts = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    told: list[str] = []
    with serving([sse(*parts, end)]) as stub, endpoint(stub.url) as made:
        answer = made.ask(b'{"stream": true}', stream=True, on_text=told.append)
    assert told == ["Hel", "lo", " you"]
    assert answer.response["choices"][0]["message"]["content"] == "Hello you"


def test_a_slow_stream_that_lives_is_not_cut() -> None:
    parts = [part for event in events(HELLO) for part in (0.2, json.loads(event))]
    with serving([sse(*parts)]) as stub:
        answer = ask(stub, timeout_s=0.5)
    assert answer.seconds > 0.5
    assert answer.first_s is not None
    assert 0.15 < answer.first_s < answer.seconds


def test_connections_are_used_again_and_closed() -> None:
    with serving([HELLO] * 3) as stub, endpoint(stub.url) as made:
        for _ in range(3):
            made.ask(b"{}", stream=False)
        made.close()
        made.close()
        assert len(stub.asked) == 3


# Events alone


def read(pieces: list[bytes]) -> list[Any]:
    found = Events()
    rows = [row for piece in pieces for row in found.feed(piece)]
    return rows + list(found.end())


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('data: {"a": 1}\n\n', [{"a": 1}]),
        ('data:{"a": 1}\r\n\r\ndata: [1]\n', [{"a": 1}, [1]]),
        ('data: {"a":\ndata: 1}\n\n', [{"a": 1}]),
        ('data: {"a": 1}\ndata: {"b": 2}\n', [{"a": 1}, {"b": 2}]),
        ('event: error\ndata: {"message": "no"}\n\n', [{"error": {"message": "no"}}]),
        ('event: error\ndata: "no"\n\ndata: {"a": 1}\n\n', [{"error": "no"}, {"a": 1}]),
        ('error: {"code": 500}\n\n', [{"error": {"code": 500}}]),
        (": hello\nretry: 3\nid\n\n", []),
        ("data: \n\ndata:\n\n", []),
        ('data: [DONE]\n\ndata: {"a": 1}\n\n', []),
        ('data: {"a": "\u00e9"}', [{"a": "é"}]),
        ('data: {"a": ', []),
    ],
)
def test_events_are_read_whole_and_byte_by_byte(text: str, rows: list[Any]) -> None:
    data = text.encode()
    assert read([data]) == rows
    assert read([data[n : n + 1] for n in range(len(data))]) == rows


def test_an_event_that_is_no_json_is_named() -> None:
    with pytest.raises(BadEvent, match="rubbish"):
        read([b"data: rubbish\n\ndata: {}\n\n"])
