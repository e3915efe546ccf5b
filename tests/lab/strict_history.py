"""What the strictest servers and chat templates demand of a request, all rules at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

Message = dict[str, Any]
ROLES = ("system", "user", "assistant", "tool")
CHARS_PER_TOKEN = 3.5


def strict_problems(body: dict[str, Any], window: int = 0) -> list[str]:
    """Return what a strict server would refuse in a request; nothing where it is fine.

    The rules are those of Mistral's templates and validator, with DeepSeek's, Gemini's and
    OpenAI's on top.

    Args:
        body: the request.
        window: tokens that prompt and reply may have together; 0 for any number.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return ["no messages"]
    found = [*_shapes(messages), *_order(messages), *_results(messages), *_ids(messages)]
    return found + list(_tools(body)) + list(_room(body, window))


def _shapes(messages: list[Message]) -> Iterator[str]:
    for number, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        calls = message.get("tool_calls")
        if role not in ROLES:
            yield f"message {number} has the role {role!r}"
        if "tool_calls" in message and not calls:
            yield f"message {number} has an empty list of calls"
        if content is None and not calls:
            yield f"message {number} has no content and no calls"
        elif content is not None and not isinstance(content, str):
            yield f"message {number} has a content that is no text"
        elif not calls and not str(content).strip():
            yield f"message {number} ({role}) is empty"
        for call in calls or ():
            yield from _call(number, call)


def _call(number: int, call: dict[str, Any]) -> Iterator[str]:
    function = call.get("function") or {}
    if call.get("type") != "function" or not function.get("name"):
        yield f"message {number} has a call that is no function's"
    arguments: Any = function.get("arguments")
    try:
        sound = isinstance(json.loads(arguments), dict)
    except (TypeError, ValueError):
        sound = False
    if not sound:
        yield f"message {number} has arguments that are no JSON object in a string: {arguments!r}"


def _order(messages: list[Message]) -> Iterator[str]:
    roles = [message.get("role") for message in messages]
    if "system" in roles[1:]:
        yield "a system message that is not the first"
    if roles[0] not in ("system", "user"):
        yield f"the first message is of the {roles[0]}"
    counted = [
        role
        for role, message in zip(roles, messages, strict=True)
        if role == "user" or (role == "assistant" and not message.get("tool_calls"))
    ]
    for number, role in enumerate(counted):
        if role != ("user", "assistant")[number % 2]:
            yield f"user and assistant do not take turns: {counted}"
            break
    for before, after in pairwise(roles):
        if before == "tool" and after not in ("tool", "assistant"):
            yield f"a {after} message after a tool's"
    if roles[-1] not in ("user", "tool"):
        yield f"the last message is of the {roles[-1]}"


def _results(messages: list[Message]) -> Iterator[str]:
    """Each call has its result directly behind it, in the order of the calls."""
    due: list[str] = []
    for number, message in enumerate(messages):
        if message.get("role") == "tool":
            name = message.get("tool_call_id")
            if not due or due.pop(0) != name:
                yield f"message {number} is the result of {name!r}, which is not due"
            continue
        if due:
            yield f"message {number} comes before the results of {due}"
        due = [str(call.get("id")) for call in message.get("tool_calls") or ()]
    if due:
        yield f"no results of {due}"


def _ids(messages: list[Message]) -> Iterator[str]:
    ids = [str(call.get("id")) for message in messages for call in message.get("tool_calls") or ()]
    if len(set(ids)) < len(ids):
        yield f"ids that are not unique: {ids}"
    wrong = [name for name in ids if not re.fullmatch(r"[a-zA-Z0-9]{9}", name)]
    if wrong:
        yield f"ids that are not nine letters or digits: {wrong}"


def _tools(body: dict[str, Any]) -> Iterator[str]:
    if "tools" not in body:
        if "tool_choice" in body or "parallel_tool_calls" in body:
            yield "words about tools without tools"
        return
    if not body["tools"]:
        yield "an empty list of tools"
    for tool in body["tools"]:
        function = tool.get("function") or {}
        if tool.get("type") != "function" or not re.fullmatch(
            r"[a-zA-Z0-9_-]{1,64}", str(function.get("name"))
        ):
            yield f"a tool that is no function: {tool}"
        yield from _schema(str(function.get("name")), function.get("parameters", {}))


def _schema(name: str, schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _schema(name, item)
    if not isinstance(schema, dict):
        return
    if schema.get("properties") == {} and schema.get("type") != "object":
        yield f"{name}: empty properties of what is no object"
    for value in schema.values():
        yield from _schema(name, value)


def _room(body: dict[str, Any], window: int) -> Iterator[str]:
    reply = body.get("max_tokens") or body.get("max_completion_tokens") or 0
    prompt = prompt_tokens(body)
    if window and prompt + reply > window:
        yield f"{prompt} tokens and {reply} for the reply are more than {window}"


def prompt_tokens(body: dict[str, Any]) -> int:
    """Return about how many tokens a request's prompt has."""
    text = json.dumps([body.get("messages"), body.get("tools")], ensure_ascii=False)
    return int(len(text) / CHARS_PER_TOKEN)
