"""Replies as servers really send them: one data file a family of servers, one row a case.

The number after ``row`` in a case's id is its row in the list of bugs that other agents had.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.brains.chunks import assemble
from agent.brains.dialects import NotAReply, Parsed, SaidCall, parse
from agent.brains.names import Toolbox
from tests.offered import OFFERED

FOLDER = Path(__file__).parent / "dialects"
SERVERS = ("openai", "vllm", "sglang", "llamacpp", "ollama", "others")


def cases_of(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))
    return cases


CASES = [(f"{name}-{case['id']}", case) for name in SERVERS for case in cases_of(name)]


def problems_of(said: Parsed) -> str:
    return " ".join(call.problem for call in said.calls if call.problem)


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_reply(case: dict[str, Any]) -> None:
    response = assemble(case["chunks"]) if "chunks" in case else case["response"]
    said = parse(response, OFFERED)
    for name, value in case["want"].items():
        if name == "calls":
            assert [[call.name, call.args] for call in said.calls] == value
        elif name == "notes":
            assert list(said.notes) == value
        elif name != "problem":
            assert getattr(said, name) == value, name
    assert case["want"].get("problem", "") in problems_of(said)
    assert bool(problems_of(said)) == ("problem" in case["want"])


@pytest.mark.parametrize("case", cases_of("errors"), ids=lambda case: str(case["id"]))
def test_no_chat_completion(case: dict[str, Any]) -> None:
    with pytest.raises(NotAReply) as caught:
        parse(case["response"], OFFERED)
    assert case["says"] in str(caught.value)


def test_an_error_is_quoted_briefly_and_on_one_line() -> None:
    with pytest.raises(NotAReply) as caught:
        parse({"error": {"message": "a\x1b[31m\n" + "x" * 10_000}}, OFFERED)
    assert len(str(caught.value)) <= 200
    assert str(caught.value).isprintable()


def test_a_broken_stream_is_no_reply() -> None:
    chunks = [{"choices": [{"delta": {"content": "Half"}}]}, {"error": {"message": "lost"}}]
    with pytest.raises(NotAReply, match="lost"):
        parse(assemble(chunks), OFFERED)


NAMES = {
    "bash": "bash",
    "functions.bash": "bash",
    "<tool>bash": "bash",
    "<tool>bash</tool>": "bash",
    "default_api:bash": "bash",
    "default_api.bash": "bash",
    "functions.grep:0": "grep",
    "mcp__server__grep": "grep",
    "bash:12": "bash",
    " bash ": "bash",
    '"bash"': "bash",
    "`bash`": "bash",
    "bash()": "bash",
    "bash<|channel|>json": "bash",
    "Bash": "bash",
    "readFile": "read_file",
    "read-file": "read_file",
    "ReadFile": "read_file",
    "tools/read_file": "read_file",
    "": "",
    "0": "",
    "wipe": "",
    "functions.wipe": "",
    "bash_command": "",
    "<|channel|>": "",
}


@pytest.mark.parametrize(("said", "meant"), NAMES.items(), ids=[repr(name) for name in NAMES])
def test_row77_names(said: str, meant: str) -> None:
    assert Toolbox(OFFERED).known(said) == meant


def named(name: str) -> SaidCall:
    entry = {"id": "a", "function": {"name": name, "arguments": "{}"}}
    response = {"choices": [{"message": {"tool_calls": [entry]}, "finish_reason": "tool_calls"}]}
    return parse(response, OFFERED).calls[0]


def test_row77_an_unknown_name_is_kept_but_printable_and_short() -> None:
    assert named("wipe the\x00\x1b[31m\ndisk").name == "wipe the[31mdisk"
    assert len(named("w" * 100_000).name) == 100


def test_two_tools_of_one_spelling_are_not_confused() -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("a_b", "aB")]
    assert Toolbox(tools).known("a-b") == ""
    assert Toolbox(tools).known("aB") == "aB"


def test_too_many_calls_are_noted() -> None:
    entry = {"id": "a", "function": {"name": "connect", "arguments": "{}"}}
    said = parse({"choices": [{"message": {"tool_calls": [entry] * 1000}}]}, OFFERED)
    assert len(said.calls) == 128
    assert "calls beyond the first 128 were left out" in said.notes


def test_row80_what_is_kept_is_valid_json_and_not_too_large() -> None:
    for raw in ('{"command": "' + "x" * 99_000 + '"}', '{"command": "\\ud800"}', "{'a': [1,]}"):
        entry = {"id": "a", "function": {"name": "bash", "arguments": raw}}
        call = parse({"choices": [{"message": {"tool_calls": [entry]}}]}, OFFERED).calls[0]
        assert not call.problem
        assert 0 < len(json.dumps(call.args, allow_nan=False, ensure_ascii=False).encode()) < 1e5


def test_row94_tools_without_properties() -> None:
    bare = [
        {"type": "function", "function": {"name": "connect"}},
        {"type": "function", "function": {"name": "look", "parameters": None}},
        {"type": "function", "function": {"name": "see", "parameters": {"type": "object"}}},
    ]
    for name in ("connect", "look", "see"):
        entry = {"id": "a", "function": {"name": name, "arguments": '{"a": 1}'}}
        call = parse({"choices": [{"message": {"tool_calls": [entry]}}]}, bare).calls[0]
        assert (call.name, call.args, call.problem) == (name, {"a": 1}, "")


def test_no_tools_no_calls_in_text() -> None:
    text = '<tool_call>{"name": "bash", "arguments": {}}</tool_call>'
    said = parse({"choices": [{"message": {"content": text}}]}, [])
    assert (said.calls, said.text) == ((), text)
