"""The check of histories that tests of brains rely on finds each thing that a server refuses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.lab.strict_history import strict_problems

Body = dict[str, Any]


def call(name: str) -> dict[str, Any]:
    return {"id": name, "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}


def result(name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": "found"}


TOOL = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}
GOOD: Body = {
    "messages": [
        {"role": "system", "content": "You look."},
        {"role": "user", "content": "Look twice."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call("call00001"), call("call00002")],
        },
        result("call00001"),
        result("call00002"),
        {"role": "assistant", "content": "Once more.", "tool_calls": [call("call00003")]},
        result("call00003"),
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks, and again."},
    ],
    "tools": [TOOL],
    "max_tokens": 100,
}


def test_a_sound_history_has_no_problem() -> None:
    assert strict_problems(GOOD) == []
    assert strict_problems(GOOD, window=1000) == []
    assert strict_problems({"messages": GOOD["messages"][1:2]}) == []


def messages(change: Callable[[list[Any]], Any]) -> Callable[[Body], Any]:
    return lambda body: change(body["messages"])


def at(number: int, **fields: Any) -> Callable[[Body], Any]:
    return lambda body: body["messages"][number].update(fields)


def in_call(**fields: Any) -> Callable[[Body], Any]:
    return lambda body: body["messages"][2]["tool_calls"][0]["function"].update(fields)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda body: body.update(messages=[]), "no messages"),
        (messages(lambda rows: rows.pop(0) and rows.pop(0)), "do not take turns"),
        (messages(lambda rows: rows.pop(0) and rows.pop(0)), "first message is of the assistant"),
        (messages(lambda rows: rows.insert(1, rows[0])), "not the first"),
        (messages(lambda rows: rows.append(rows[0])), "not the first"),
        (messages(lambda rows: rows.insert(2, rows[1])), "do not take turns"),
        (messages(lambda rows: rows.insert(5, rows[1])), "a user message after a tool's"),
        (messages(lambda rows: rows.pop()), "last message is of the assistant"),
        (messages(lambda rows: rows.pop(4)), "before the results of ['call00002']"),
        (messages(lambda rows: rows.insert(4, rows[3])), "which is not due"),
        (messages(lambda rows: rows.reverse()), "which is not due"),
        (lambda body: body.update(messages=body["messages"][:4]), "no results of ['call00002']"),
        (at(3, tool_call_id="call00002"), "which is not due"),
        (at(1, content=""), "is empty"),
        (at(3, content=" "), "is empty"),
        (at(7, content=None), "no content and no calls"),
        (at(1, content=[{"type": "text"}]), "no text"),
        (at(1, role="developer"), "has the role 'developer'"),
        (at(7, tool_calls=[]), "empty list of calls"),
        (in_call(arguments={"a": 1}), "no JSON object in a string"),
        (in_call(arguments="[1]"), "no JSON object in a string"),
        (in_call(arguments='{"a": '), "no JSON object in a string"),
        (in_call(arguments=None), "no JSON object in a string"),
        (in_call(name=""), "no function's"),
        (lambda body: body["messages"][2]["tool_calls"][0].update(id="c1"), "nine letters"),
        (lambda body: body["messages"][5]["tool_calls"][0].update(id="call00001"), "not unique"),
        (lambda body: body.update(tools=[]), "an empty list of tools"),
        (lambda body: body.pop("tools") and body.update(tool_choice="auto"), "without tools"),
        (lambda body: body["tools"][0]["function"].update(name="a b"), "no function"),
        (lambda body: body["tools"][0]["function"]["parameters"].pop("type"), "is no object"),
        (lambda body: body.update(max_tokens=900), "are more than 1000"),
        (at(1, content="x" * 4000), "are more than 1000"),
    ],
)
def test_each_thing_that_is_refused_is_found(change: Callable[[Body], Any], problem: str) -> None:
    body = copy.deepcopy(GOOD)
    change(body)
    assert any(problem in found for found in strict_problems(body, window=1000))
