"""The self-test where servers refuse one thing or another, or all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.brains.address import Address
from agent.brains.dialect import Dialect
from agent.brains.endpoint import Endpoint
from agent.brains.exam import MOST_REQUESTS
from agent.brains.failures import Kind, ModelFailed
from agent.brains.selftest import examine
from tests.lab.stub_model import Reply, refused, serving
from tests.model_server import (
    Model,
    Refusal,
    examined,
    messages_of,
    served,
)

# Reasoning


def demands(body: dict[str, Any]) -> Reply | None:
    words = "Missing `reasoning_content` field in the assistant message at message index 2."
    missing = [m for m in messages_of(body, "assistant") if not m.get("reasoning_content")]
    return refused(400, words) if missing else None


def rejects(*fields: str) -> Refusal:
    def refuse(body: dict[str, Any]) -> Reply | None:
        for name in fields:
            if any(name in message for message in body["messages"]):
                words = f"'messages.2' : property '{name}' is unsupported"
                return refused(400, words)
        return None

    return refuse


CONTENT, OTHER = {"reasoning_content": "I think."}, {"reasoning": "I think."}


@pytest.mark.parametrize(
    ("thinks", "refuses", "field_"),
    [
        ({}, None, ""),
        (CONTENT, None, "reasoning_content"),
        (OTHER, None, "reasoning"),
        (CONTENT, demands, "reasoning_content"),
        ({**OTHER, **CONTENT}, demands, "reasoning_content"),
        (OTHER, demands, "reasoning_content"),
        (CONTENT, rejects("reasoning_content"), ""),
        (OTHER, rejects("reasoning_content"), "reasoning"),
        (OTHER, rejects("reasoning_content", "reasoning"), ""),
        (CONTENT, rejects("reasoning_content", "reasoning"), ""),
    ],
)
def test_reasoning_is_sent_back_as_the_server_wants(
    thinks: dict[str, Any], refuses: Refusal | None, field_: str, tmp_path: Path
) -> None:
    model = Model(thinks=thinks, refuses=(refuses,) if refuses else ())
    dialect = examined(model, tmp_path)
    assert dialect.echo_reasoning == field_
    assert dialect.native_tools
    assert len(model.seen) <= 5


# What is refused


def refuses_field(name: str, words: str, status: int = 400) -> Refusal:
    return lambda body: refused(status, words) if name in body else None


def no_system(body: dict[str, Any]) -> Reply | None:
    found = messages_of(body, "system")
    return refused(500, "System role not supported") if found else None


def wants_objects(status: int, words: str) -> Refusal:
    def refuse(body: dict[str, Any]) -> Reply | None:
        for message in messages_of(body, "assistant"):
            for call in message.get("tool_calls", ()):
                if isinstance(call["function"]["arguments"], str):
                    return refused(status, words)
        return None

    return refuse


def content_must_be(kind: type, words: str) -> Refusal:
    def refuse(body: dict[str, Any]) -> Reply | None:
        contents = [message["content"] for message in messages_of(body, "assistant")]
        wrong = [content for content in contents if not isinstance(content, kind)]
        return refused(400, words) if wrong else None

    return refuse


def one_call(body: dict[str, Any]) -> Reply | None:
    many = [m for m in messages_of(body, "assistant") if len(m.get("tool_calls", ())) > 1]
    return refused(400, "This model only supports single tool-calls at once!") if many else None


PAIRS = "Can only get item pairs from a mapping."


@pytest.mark.parametrize(
    ("refuse", "found"),
    [
        (
            refuses_field("stream_options", "Unknown parameter: 'stream_options.include_usage'."),
            {"stream_usage": False},
        ),
        (refuses_field("stream_options", "Bad Request"), {"stream_usage": False}),
        (
            refuses_field("max_tokens", "Unsupported parameter: 'max_tokens' is not supported."),
            {"limit_field": "max_completion_tokens"},
        ),
        (
            lambda body: (
                refused(500, "Cannot use tools with stream")
                if body.get("stream") and "tools" in body
                else None
            ),
            {"streams": False},
        ),
        (no_system, {"system": "user"}),
        (one_call, {"parallel": False}),
        (wants_objects(400, PAIRS), {"arguments": "object"}),
        (wants_objects(500, PAIRS), {"arguments": "object"}),
        (wants_objects(500, "Internal Server Error"), {"arguments": "object"}),
        (content_must_be(str, "Bad Request"), {"null_content": False}),
    ],
)
def test_one_thing_that_is_refused_is_changed(
    refuse: Refusal, found: dict[str, Any], tmp_path: Path
) -> None:
    model = Model(refuses=(refuse,), strict="arguments" not in found)
    dialect = examined(model, tmp_path)
    told = {key: getattr(dialect, key) for key in Dialect.model_fields if key != "chars_per_token"}
    assert told == {key: getattr(Dialect(**found), key) for key in told}


def test_several_things_are_changed_one_after_the_other(tmp_path: Path) -> None:
    model = Model(
        refuses=(
            no_system,
            refuses_field("max_tokens", "Unsupported parameter: 'max_tokens' is not supported."),
            rejects("reasoning_content"),
        ),
        thinks=CONTENT,
    )
    dialect = examined(model, tmp_path)
    assert (dialect.system, dialect.limit_field) == ("user", "max_completion_tokens")
    assert dialect.echo_reasoning == ""
    assert len(model.seen) == 6


def test_results_that_are_refused_whatever_is_changed_end_native_calls(tmp_path: Path) -> None:
    def refuse(body: dict[str, Any]) -> Reply | None:
        return refused(400, "No results here") if messages_of(body, "tool") else None

    model = Model(refuses=(refuse,), strict=False)
    dialect = examined(model, tmp_path)
    assert not dialect.native_tools
    assert any("No results here" in note for note in dialect.notes)


def test_a_server_that_refuses_everything_is_not_asked_for_ever(tmp_path: Path) -> None:
    model = Model(refuses=(lambda _: refused(400, "No."),), strict=False)
    with served(model) as (stub, endpoint), pytest.raises(ModelFailed, match="HTTP 400: No") as e:
        examine(endpoint, cache=tmp_path)
    assert e.value.failure.kind is Kind.REQUEST
    assert len(stub.asked) <= MOST_REQUESTS
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_stream(tmp_path: Path) -> None:
    class Whole(Model):
        def answer(self, *args: Any) -> Any:
            return 200, {}, super().answer(*args)

    model = Whole()
    assert not examined(model, tmp_path).streams
    assert [bool(body.get("stream")) for body in model.seen] == [True, False, False]


# Failures


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refused(401, "Incorrect API key provided"), Kind.KEY),
        (refused(404, "The model `m` does not exist."), Kind.NOT_FOUND),
        (refused(402, "Insufficient Balance"), Kind.QUOTA),
    ],
)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_what_stands_in_the_way_of_all_is_raised(
    reply: Reply, kind: Kind, number: int, tmp_path: Path
) -> None:
    model = Model()
    model.refuses = (lambda _: reply if len(model.seen) == number else None,)
    with served(model) as (_, endpoint), pytest.raises(ModelFailed) as caught:
        examine(endpoint, cache=tmp_path)
    assert caught.value.failure.kind is kind
    assert list(tmp_path.iterdir()) == []


def test_nobody_there_is_raised(tmp_path: Path) -> None:
    with serving([]) as stub:
        url = stub.url
    waits: list[float] = []
    with Endpoint(Address(url, "m"), "") as endpoint, pytest.raises(ModelFailed) as caught:
        examine(endpoint, cache=tmp_path, sleep=waits.append)
    assert "is the server started?" in str(caught.value)
    assert sum(waits) < 5


def test_what_passes_is_waited_for(tmp_path: Path) -> None:
    model = Model()
    busy = refused(503, "Loading model", {"Retry-After": "4"})
    model.refuses = (lambda _: busy if len(model.seen) < 3 else None,)
    waits: list[float] = []
    told: list[str] = []
    with served(model) as (_, endpoint):
        dialect = examine(endpoint, cache=tmp_path, sleep=waits.append, tell=told.append)
    assert dialect.native_tools
    assert waits == [4.0, 4.0]
    assert "Loading model" in told[1]
