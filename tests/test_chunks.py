"""Streams put together: whatever way the pieces are cut, the reply is that of no stream."""

from __future__ import annotations

import copy
import itertools
import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agent.brains.chunks import Assembler, assemble

ARGUMENTS = (
    '{"command": "echo \\"{}\\" }", "n": 1}',
    '{"path": "/srv/ü/\\n\\u00e9", "deep": {"a": [{}, {"b": "}"}]}}',
    "{}",
    "",
)
HEAD = {"id": "chatcmpl-1", "created": 7, "model": "m"}


def whole(
    calls: list[tuple[str, str, str]], text: str | None = None, **more: Any
) -> dict[str, Any]:
    """A response that was not streamed; calls are id, name and arguments."""
    message: dict[str, Any] = {"role": "assistant", "content": text, **more}
    if calls:
        message["tool_calls"] = [
            {"id": given, "type": "function", "function": {"name": name, "arguments": arguments}}
            for given, name, arguments in calls
        ]
    finish = "tool_calls" if calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    return {**HEAD, "object": "chat.completion", "choices": [choice], "usage": usage}


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**HEAD, "object": "chat.completion.chunk", "choices": [choice], **more}


def pieces(text: str, chance: random.Random) -> list[str]:
    """Cut a text anywhere, into pieces of which some are empty."""
    cuts = sorted(chance.choices(range(len(text) + 1), k=chance.randrange(6)))
    return [text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)])]


def streamed(response: dict[str, Any], chance: random.Random) -> Iterator[dict[str, Any]]:
    """Cut a response up as OpenAI does, with the pieces of different calls mixed."""
    message = response["choices"][0]["message"]
    yield chunk({"role": "assistant", "content": message["content"] and ""})
    for field in ("reasoning_content", "content", "refusal"):
        for piece in pieces(message.get(field) or "", chance):
            if message.get(field):
                yield chunk({field: piece})
    queues = []
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        first = {"index": index, "id": call["id"], "type": "function"}
        queue = [{**first, "function": {"name": function["name"], "arguments": ""}}]
        for piece in pieces(function["arguments"], chance):
            queue.append({"index": index, "function": {"arguments": piece}})
        queues.append(queue)
    while any(queues):
        queue = chance.choice([queue for queue in queues if queue])
        yield chunk({"tool_calls": [queue.pop(0)]})
    yield chunk({}, response["choices"][0]["finish_reason"])
    yield {**HEAD, "choices": [], "usage": response["usage"]}


@pytest.mark.parametrize("seed", range(150))
def test_row85_any_cut_gives_the_same_response(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a test
    names = ("bash", "grep", "bash")
    calls = [(f"call_{n}", names[n], chance.choice(ARGUMENTS)) for n in range(chance.randrange(4))]
    text = chance.choice([None, "", "It is up: ✓ \n<b>", "x" * 50])
    more = {"reasoning_content": "hm, so"} if seed % 2 else {}
    response = whole(calls, text, **more)
    assert assemble(streamed(response, chance)) == response


QUIRKS = ("no-index", "null-index", "zero-index", "text-index")


def with_quirk(quirk: str, index: int, piece: dict[str, Any]) -> dict[str, Any]:
    if quirk == "no-index":
        return piece
    indexes = {"null-index": None, "zero-index": 0, "text-index": str(index)}
    return {"index": indexes[quirk], **piece}


@pytest.mark.parametrize("quirk", QUIRKS)
@pytest.mark.parametrize("ids", ["once", "always", "never"])
@pytest.mark.parametrize("name", ["once", "always"])
@pytest.mark.parametrize("seed", range(8))
def test_row85_calls_are_told_apart(quirk: str, ids: str, name: str, seed: int) -> None:
    """Three calls after each other, two of the same tool, numbered and named as servers do it."""
    chance = random.Random(seed)  # noqa: S311 - a test
    calls = [("c1", "bash", ARGUMENTS[0]), ("c2", "bash", ARGUMENTS[1]), ("c3", "grep", "{}")]
    chunks = []
    for index, (given, tool, arguments) in enumerate(calls):
        for number, part in enumerate(filter(None, pieces(arguments, chance))):
            piece: dict[str, Any] = {"function": {"arguments": part}}
            if number == 0 or name == "always":
                piece["function"]["name"] = tool
            if ids == "always" or (ids == "once" and number == 0):
                piece["id"] = given
            chunks.append(chunk({"tool_calls": [with_quirk(quirk, index, piece)]}))
    found = assemble(chunks)["choices"][0]["message"]["tool_calls"]
    said = [(call["function"]["name"], call["function"]["arguments"]) for call in found]
    assert said == [(tool, arguments) for _, tool, arguments in calls]
    if ids != "never":
        assert [call["id"] for call in found] == ["c1", "c2", "c3"]


def test_row85_arguments_as_an_object() -> None:
    piece = {"index": 0, "id": "a", "function": {"name": "bash", "arguments": {"command": "ls"}}}
    other = {"index": 0, "id": "b", "function": {"name": "bash", "arguments": {"command": "b"}}}
    found = assemble([chunk({"tool_calls": [piece, other]})])["choices"][0]["message"]
    said = [call["function"]["arguments"] for call in found["tool_calls"]]
    assert said == [{"command": "ls"}, {"command": "b"}]


def test_row85_calls_that_begin_in_another_order_are_put_in_order() -> None:
    second = {"index": 1, "id": "b", "function": {"name": "grep", "arguments": "{}"}}
    first = {"index": 0, "id": "a", "function": {"name": "bash", "arguments": "{}"}}
    found = assemble([chunk({"tool_calls": [second]}), chunk({"tool_calls": [first]})])
    calls = found["choices"][0]["message"]["tool_calls"]
    assert [call["id"] for call in calls] == ["a", "b"]


def test_interleaved_by_id_without_numbers() -> None:
    def piece(given: str, text: str, name: str = "") -> dict[str, Any]:
        return chunk({"tool_calls": [{"id": given, "function": {"name": name, "arguments": text}}]})

    parts = [
        piece("a", '{"x', "f"),
        piece("b", '{"y', "f"),
        piece("a", '": 1}'),
        piece("b", '": 2}'),
    ]
    calls = assemble(parts)["choices"][0]["message"]["tool_calls"]
    assert [call["function"]["arguments"] for call in calls] == ['{"x": 1}', '{"y": 2}']


def test_an_error_keeps_what_came() -> None:
    found = assemble([chunk({"content": "Half"}), {"error": {"message": "lost", "code": 500}}])
    assert found["error"] == {"message": "lost", "code": 500}
    assert found["choices"][0]["message"]["content"] == "Half"
    assert found["choices"][0]["finish_reason"] is None


def test_an_error_in_an_older_form() -> None:
    assert assemble([{"object": "error", "message": "no"}])["error"]["message"] == "no"


def test_a_stream_that_broke_off_has_no_reason() -> None:
    found = assemble([chunk({"content": "Half"})])
    assert found["choices"][0]["finish_reason"] is None
    assert "usage" not in found


def test_nothing_came() -> None:
    assert assemble([]) == {"object": "chat.completion", "choices": []}


def test_only_the_first_choice_counts() -> None:
    chunks: list[dict[str, Any]] = [
        {
            "choices": [
                {"index": 0, "delta": {"content": "a"}},
                {"index": 1, "delta": {"content": "b"}},
            ]
        },
        {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "length"}]},
        {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]},
    ]
    found = assemble(chunks)
    assert len(found["choices"]) == 1
    assert found["choices"][0]["message"]["content"] == "aa"
    assert found["choices"][0]["finish_reason"] == "stop"


def test_usage_in_every_chunk_the_last_counts() -> None:
    chunks = [chunk({"content": "a"}, usage={"completion_tokens": n}) for n in (1, 2)]
    chunks += [chunk({"content": "a"}, usage=None)]
    assert assemble(chunks)["usage"] == {"completion_tokens": 2}


def test_a_whole_message_with_more_than_came() -> None:
    message = {"role": "assistant", "content": "It is up.", "reasoning": "hm"}
    final = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    found = assemble([chunk({"content": "It is", "reasoning": "hm"}), final])
    assert found["choices"][0]["message"] == message


def test_messages_that_are_pieces() -> None:
    def piece(text: str) -> dict[str, Any]:
        return {"choices": [{"index": 0, "message": {"content": text}, "finish_reason": None}]}

    found = assemble([piece("It "), piece("is "), piece("up")])
    assert found["choices"][0]["message"]["content"] == "It is up"


def test_what_is_no_chunk_is_passed_over() -> None:
    odd: list[Any] = [None, 7, "[DONE]", [], {"choices": None}, {"choices": [None, 3]}, {}]
    odd += [chunk({"tool_calls": None}), chunk({"tool_calls": [None, 3]}), chunk({"content": 7})]
    found = assemble([*odd, chunk({"content": "Up."}, "stop"), *odd])
    assert found["choices"][0]["message"] == {"role": "assistant", "content": "Up."}


def test_text_as_it_comes() -> None:
    assembler = Assembler()
    seen = []
    for delta in (
        {"role": "assistant"},
        {"content": "It "},
        {"reasoning": "hm"},
        {"content": "is"},
    ):
        assembler.add(chunk(delta))
        seen.append(assembler.new_text())
    assembler.add(chunk({"tool_calls": [{"index": 0, "function": {"name": "f"}}]}))
    assert [*seen, assembler.new_text()] == ["", "It ", "", "is", ""]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_thought_at_the_beginning_is_not_shown(size: int) -> None:
    text = "\n<think>\nif a < b then <tool> or </thin\n</think>\n\nIt is <think>up</think>."
    assembler = Assembler()
    seen = []
    for start in range(0, len(text), size):
        assembler.add(chunk({"content": text[start : start + size]}))
        seen.append(assembler.new_text())
    assert "".join(seen).strip() == "It is <think>up</think>."
    assert assembler.result()["choices"][0]["message"]["content"] == text


@pytest.mark.parametrize("text", ["<b>up</b>", "<thing", " up", "", "a<think>b"])
def test_what_is_no_thought_is_shown(text: str) -> None:
    assembler = Assembler()
    seen = []
    for char in text:
        assembler.add(chunk({"content": char}))
        seen.append(assembler.new_text())
    assert "".join(seen) == text


def test_chunks_are_not_changed() -> None:
    chunks = list(streamed(whole([("a", "bash", ARGUMENTS[0])], "x"), random.Random(1)))  # noqa: S311
    before = copy.deepcopy(chunks)
    assemble(chunks)
    assert chunks == before


def test_a_long_stream_is_quick() -> None:
    """Measured about 2 ms a thousand chunks; no join per chunk."""
    texts = [chunk({"content": "word "}) for _ in range(1000)]
    first = {"index": 0, "id": "a", "function": {"name": "bash", "arguments": '{"command": "'}}
    calls = [chunk({"tool_calls": [first]})]
    calls += [
        chunk(
            {
                "tool_calls": [
                    {"index": 0, "id": "a", "function": {"name": "bash", "arguments": "}x"}}
                ]
            }
        )
        for _ in range(1000)
    ]
    for chunks in (texts, calls):
        best = min(timed(chunks) for _ in range(5))
        assert best < 0.02


def timed(chunks: list[dict[str, Any]]) -> float:
    begun = time.perf_counter()
    assemble(chunks)
    return time.perf_counter() - begun


def test_time_grows_with_the_stream_alone() -> None:
    """Each piece could be the end of a whole object: that is looked at a few times only."""
    first = {"index": 0, "function": {"name": "bash", "arguments": "x" * 10_000}}
    piece = {"index": 0, "function": {"name": "bash", "arguments": "{}"}}
    chunks = [chunk({"tool_calls": [one]}) for one in (first, *[piece] * 20_000)]
    assert min(timed(chunks) for _ in range(3)) < 1


def test_the_result_is_json() -> None:
    found = assemble(streamed(whole([("a", "bash", ARGUMENTS[1])], "x"), random.Random(2)))  # noqa: S311
    assert json.loads(json.dumps(found)) == found
