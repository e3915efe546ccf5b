"""Replies that nobody should send: anything in, never anything out but a reply or ``NotAReply``."""

from __future__ import annotations

import copy
import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.brains.arguments import read_arguments
from agent.brains.chunks import assemble
from agent.brains.dialects import NotAReply, Parsed, parse
from agent.brains.loose_json import Broken, read_value
from agent.brains.names import Toolbox
from agent.brains.text_calls import find_calls
from tests.offered import OFFERED

FOLDER = Path(__file__).parent / "dialects"
SERVERS = ("openai", "vllm", "sglang", "llamacpp", "ollama", "others")
CASES: list[dict[str, Any]] = [
    case
    for name in SERVERS
    for case in yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))
]
TEXTS: list[str] = [
    case["text"] for case in yaml.safe_load((FOLDER / "text_calls.yaml").read_text("utf-8"))
]
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 1e308, float("inf"), float("nan"), 10**400, "", "bash", "{}",
    "{", '{"a": ', "\ud800", "\x00", "<tool_call>", [], {}, [None], [[]], {"": None}, {"name": 7},
    {"function": None}, {"error": None}, "length", "tool_calls", [{"type": "text"}], "x" * 5000,
)  # fmt: skip
PER_SEED = 100


def checked(said: Parsed) -> Parsed:
    """Check what holds of every reply."""
    for call in said.calls:
        json.dumps(call.args, allow_nan=False, ensure_ascii=False).encode()
        assert len(json.dumps(call.args, ensure_ascii=False).encode()) <= 100_000
        assert len(call.name) <= 100
        assert call.name.isprintable()
        assert not call.problem or not call.args or not call.name
        assert call.name or call.problem
    for text in (said.text, said.reasoning, said.refusal, said.finish, *said.notes):
        assert isinstance(text, str)
        text.encode()
    for count in (said.prompt_tokens, said.completion_tokens, said.cached_tokens):
        assert type(count) is int
        assert count >= 0
    return said


def parse_anything(response: Any) -> None:
    refused = ""
    try:
        checked(parse(response, OFFERED))
    except NotAReply as error:
        refused = str(error) or "it says nothing"
    assert len(refused) <= 200
    assert refused.isprintable()


def places(value: Any, found: list[tuple[Any, Any]] | None = None) -> list[tuple[Any, Any]]:
    """All places in a JSON value: containers with the key or index of a member."""
    found = [] if found is None else found
    members = value.items() if isinstance(value, dict) else enumerate(value)
    for key, member in members:
        found.append((value, key))
        if isinstance(member, dict | list):
            places(member, found)
    return found


def mutated(value: Any, chance: random.Random) -> Any:
    """Change a JSON value at one to four places."""
    value = copy.deepcopy(value)
    for _ in range(chance.randrange(1, 5)):
        spots = places(value)
        if not spots:
            break
        holder, key = chance.choice(spots)
        kind = chance.randrange(4)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder[key], str):
            holder[key] = mutated_text(holder[key], chance)
        elif kind == 2 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(chance.choice(holder)))
        else:
            holder[key] = chance.choice(ODD)
    return value


def mutated_text(text: str, chance: random.Random) -> str:
    """Cut, repeat, shift or garble a part of a text."""
    for _ in range(chance.randrange(1, 4)):
        a, b = sorted(chance.choices(range(len(text) + 1), k=2))
        garbage = chance.choice(
            [
                "",
                text[a:b],
                chance.choice(TEXTS),
                "".join(chance.choices("{}[]<>\"'\\|`:,ü\n", k=9)),
            ]
        )
        text = text[:a] + garbage + text[b if chance.random() < 0.5 else a :]
    return text


def reply(content: Any, **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": content, **more}, "finish_reason": "stop"}]}


@pytest.mark.parametrize("seed", range(10))
def test_mutated_replies(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a test
    whole = [case["response"] for case in CASES if "response" in case]
    for _ in range(PER_SEED):
        parse_anything(mutated(chance.choice(whole), chance))


@pytest.mark.parametrize("seed", range(10))
def test_mutated_streams(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a test
    streams = [case["chunks"] for case in CASES if "chunks" in case]
    for _ in range(PER_SEED):
        chunks = mutated(chance.choice(streams), chance)
        if chance.random() < 0.3:
            chance.shuffle(chunks)
        parse_anything(assemble(chunks))


@pytest.mark.parametrize("seed", range(15))
def test_mutated_texts(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a test
    for _ in range(PER_SEED):
        text = mutated_text(chance.choice(TEXTS), chance)
        parse_anything(reply(text))
        parse_anything(reply(None, reasoning_content=text))
        call = {"id": "a", "function": {"name": text[:50], "arguments": text}}
        parse_anything(reply(text, tool_calls=[call]))


@pytest.mark.parametrize("seed", range(5))
def test_random_bytes(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a test
    for _ in range(PER_SEED):
        data = chance.randbytes(chance.randrange(200))
        for text in (data.decode("utf-8", "surrogateescape"), data.decode("latin-1")):
            parse_anything(text)
            parse_anything(reply(text))
            parse_anything(reply("", tool_calls=[{"function": {"name": text, "arguments": text}}]))


@pytest.mark.parametrize("number", range(len(ODD)))
def test_an_odd_value_everywhere(number: int) -> None:
    """Every value at every fourth place."""
    value = ODD[number]
    parse_anything(value)
    for case in CASES:
        response = case.get("response") or case["chunks"]
        for n in range(number % 4, len(places(response)), 4):
            changed = copy.deepcopy(response)
            holder, key = places(changed)[n]
            holder[key] = value
            parse_anything(assemble(changed) if isinstance(changed, list) else changed)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return value


def test_values_nested_without_end() -> None:
    deep = nested(100_000)
    parse_anything(deep)
    parse_anything({"error": deep})
    parse_anything({"choices": [{"message": {"content": [deep]}}], "usage": deep})
    said = parse(reply("", tool_calls=[{"function": {"name": "bash", "arguments": deep}}]), OFFERED)
    assert "nested deeper" in said.calls[0].problem
    unwind(deep)


def unwind(value: Any) -> None:
    """Take a deep value apart, so that freeing it needs no deep recursion."""
    while isinstance(value, dict):
        value = value.pop("a").pop()


UNITS = (
    "<tool_call>", "<tool_call>{", "[[[[", "{", '{"a":', '{"name":', "<function=bash>", "(", "'",
    "<function=bash><parameter=command>", "<parameter=x>", "<|channel|>analysis<|message|>", " ",
    "<think>", "</think>", "```json\n", "```", "\n", '<invoke name="bash">', "[TOOL_CALLS]bash",
    "<|tool_call_begin|>bash:0<|tool_call_argument_begin|>", "bash:0", "<", "\\", '"', "> ",
    "<tool_call>bash<arg_key>x</arg_key><arg_value>", "to=functions.bash", "to=functions.bash{",
    "commentary ", "bash(", "bash(command=", "[bash(command='", "functools[", "\ud800", "<|",
    '<|tool_call>call:bash{a:<|"|>', "<tool_call>bash</tool_call>", '{"a": "\\', "-1e",
    "`<tool_call>", "<tool_call>          ",
    '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>',
)  # fmt: skip


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_a_megabyte_of_it(unit: str) -> None:
    """Measured 0.1 s at most."""
    for size in (90_000, 480_000, 1_000_000):
        text = unit * (size // len(unit))
        call = {"id": "a", "function": {"name": text, "arguments": text}}
        for response in (reply(text), reply(""), reply("", tool_calls=[call])):
            if response["choices"][0]["message"]["content"] == "":
                response["choices"][0]["message"]["reasoning"] = text
            begun = time.perf_counter()
            checked(parse(response, OFFERED))
            assert time.perf_counter() - begun < 2, "the time grows faster than the text"


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_reading_json_takes_linear_time(unit: str) -> None:
    text = '{"a": "' + unit * (100_000 // len(unit))
    begun = time.perf_counter()
    for start in ('{"a": "', "{'a': '", '{"a": [', "["):
        with pytest.raises(Broken):
            read_value(start + text)
    read_arguments(text, False)
    assert time.perf_counter() - begun < 2


def test_a_call_with_too_many_arguments_is_not_read_by_halves() -> None:
    many = "".join(f"<parameter=a{n}>1</parameter>" for n in range(200))
    found = find_calls(f"<function=connect>{many}</function>", Toolbox(OFFERED))
    assert (found.calls, found.attempted) == ((), "function")
    many = "".join(f"<arg_key>a{n}</arg_key><arg_value>1</arg_value>" for n in range(200))
    assert not find_calls(f"<tool_call>connect{many}</tool_call>", Toolbox(OFFERED)).calls


def test_a_call_after_much_text_is_found() -> None:
    call = '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>'
    found = find_calls("The server writes <b>. " * 15_000 + call, Toolbox(OFFERED))
    assert [(one.name, one.args) for one in found.calls] == [("bash", {"command": "ls"})]


def test_a_usual_reply_is_quick() -> None:
    """Measured 0.05 ms; asked for is 0.2 ms."""
    calls = [
        {
            "id": f"c{n}",
            "function": {"name": "bash", "arguments": '{"command": "tail -n 100 /log"}'},
        }
        for n in range(2)
    ]
    response = reply("I look at the log first. " * 10, tool_calls=calls)
    response["choices"][0]["finish_reason"] = "tool_calls"
    best = min(seconds(response) for _ in range(5))
    assert best / 200 < 0.0005


def seconds(response: dict[str, Any]) -> float:
    begun = time.perf_counter()
    for _ in range(200):
        parse(response, OFFERED)
    return time.perf_counter() - begun
