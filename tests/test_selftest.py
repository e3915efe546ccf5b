"""The self-test against servers that each want to be spoken to in another way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.brains.dialect import Dialect
from agent.brains.exam import MOST_REQUESTS
from agent.brains.selftest import examine
from tests.lab.stub_model import Reply, refused, serving
from tests.model_client import endpoint
from tests.model_server import (
    GOOD,
    TEXT_CALLS,
    Model,
    examined,
    listed,
    served,
)

# A server that takes everything


def test_a_good_server_is_asked_three_times_and_then_known(tmp_path: Path) -> None:
    told: list[str] = []
    model = Model()
    with served(model, routes=listed(max_model_len=40_960)) as (stub, endpoint):
        dialect = examine(endpoint, cache=tmp_path, tell=told.append)
        assert dialect == Dialect(context_tokens=40_960, chars_per_token=dialect.chars_per_token)
        assert 2.5 < dialect.chars_per_token < 5
        assert len(stub.asked) == 3
        assert len(told) == 1
        assert examine(endpoint, cache=tmp_path) == dialect
        assert len(stub.asked) == 3
        examine(endpoint, cache=tmp_path, fresh=True)
        assert len(stub.asked) == 6


def test_the_three_requests_are_small_and_say_what_they_should(tmp_path: Path) -> None:
    model = Model()
    examined(model, tmp_path)
    first, second, third = model.seen
    assert [tool["function"]["name"] for tool in first["tools"]] == ["set_port", "join_words"]
    assert [m["role"] for m in second["messages"]][2:] == ["assistant", "tool", "tool"]
    assert second["messages"][2]["content"] is None
    assert "tools" not in third
    assert 20_000 < len(third["messages"][0]["content"]) < 30_000
    assert max(body["max_tokens"] for body in model.seen) <= 1024
    assert sum(len(json.dumps(body)) for body in model.seen) < 40_000


# Calls


def test_one_call_at_a_time(tmp_path: Path) -> None:
    dialect = examined(Model(calls=GOOD[:1]), tmp_path)
    assert (dialect.native_tools, dialect.parallel) == (True, False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT_CALLS, "writes calls in its text"),
        ("I am afraid that I cannot do that.", "called no tool"),
    ],
)
def test_calls_that_the_server_does_not_find(text: str, words: str, tmp_path: Path) -> None:
    model = Model(in_text=text)
    dialect = examined(model, tmp_path)
    assert not dialect.native_tools
    assert words in dialect.notes[0]
    assert [("tools" in body) for body in model.seen] == [True, False, False]
    assert '"name": "set_port"' in model.seen[1]["messages"][0]["content"]
    hopeless = [note for note in dialect.notes if "hardly drive a run" in note]
    assert bool(hopeless) == (text != TEXT_CALLS)
    assert dialect.parallel == (text == TEXT_CALLS)


def no_tools(body: dict[str, Any]) -> Reply | None:
    words = "registry.ollama.ai/library/gemma3:4b does not support tools"
    return refused(400, words) if "tools" in body else None


def test_a_server_that_refuses_tools(tmp_path: Path) -> None:
    dialect = examined(Model(refuses=(no_tools,), in_text=TEXT_CALLS), tmp_path)
    assert (dialect.native_tools, dialect.parallel) == (False, True)
    assert "takes no tools for this model" in dialect.notes[0]


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([("set_port", {"port": "8000", "open": True})], 'port was "8000"'),
        ([("set_port", {"port": 8000, "open": "true"})], 'open was "true"'),
        ([("join_words", {"words": "alpha, beta"})], 'words was "alpha, beta"'),
        ([("join_words", {})], "words was null"),
    ],
)
def test_wrong_types_are_noted(calls: list[tuple[str, Any]], words: str, tmp_path: Path) -> None:
    dialect = examined(Model(calls=calls), tmp_path)
    assert any("wrong types" in note and words in note for note in dialect.notes)
    assert dialect.native_tools


ODD: list[Any] = [
    {"function": {"name": "set_port", "arguments": {"port": 1}}},
    {"function": "set_port"},
    [None, 7, "set_port", [], {}],
    [None, {"function": {"name": "set_port", "arguments": '{"port": "1"}'}}],
    [{"function": "set_port"}],
    [{"function": {"name": None, "arguments": None}}],
    [{"function": {"name": ["set_port"], "arguments": 7}}],
    [{"function": {"name": "set_port", "arguments": '{"port": ' + "[" * 900 + "]" * 900 + "}"}}],
    [{"function": {"name": "set_port", "arguments": "[" * 99_999}}],
    "set_port",
    7,
    True,
]
"""What stands in ``tool_calls``; only where a name is given there is a call."""


@pytest.mark.parametrize(
    "choices",
    [
        [None],
        [7],
        [[]],
        ["x"],
        [{}],
        [{"message": None}],
        [{"message": "x"}],
        [{"message": {"content": None, "function_call": "set_port"}}],
        [{"message": {"content": None, "function_call": ["set_port"]}}],
        *([{"message": {"content": None, "tool_calls": calls}}] for calls in ODD),
    ],
)
@pytest.mark.parametrize("counts", [{"usage": {"prompt_tokens": 300}}, {"usage": [1]}, {}])
def test_odd_replies_end_in_no_accident(
    choices: Any, counts: dict[str, Any], tmp_path: Path
) -> None:
    reply = {"object": "chat.completion", "choices": choices, **counts}
    with serving(lambda _: (200, {}, reply)) as stub, endpoint(stub.url) as made:
        dialect = examine(made, cache=tmp_path)
        assert len(stub.asked) <= MOST_REQUESTS
    message = choices[0].get("message") if isinstance(choices[0], dict) else None
    assert dialect.native_tools == ("'name': 'set_port'" in str(message))


def test_a_model_that_thinks_long_gets_more_room(tmp_path: Path) -> None:
    model = Model(length=2000)
    assert examined(model, tmp_path).native_tools
    assert [body["max_tokens"] for body in model.seen][:2] == [1024, 4096]
