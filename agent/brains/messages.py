"""The messages of one turn, as strict chat templates want them.

One system message at most, first; then a user message; then assistant and, for each of its calls in
order, one tool message, with nothing of another role before the next assistant message. Ids are our
own and nine letters and digits, which every server takes. Arguments are always valid JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agent.asking import ReplyReceived
from agent.brains.dialect import Dialect
from agent.brains.schemas import said_arguments
from agent.brains.texts import text
from agent.values import ToolCall

Message = dict[str, Any]
MOST_SAID = 8000
"""So many characters of a reply's own words are sent back; the tail matters less than in logs."""
MOST_ARGUMENTS = 8000
"""Longer arguments are sent back cut, as one JSON string; the whole is in the transcript."""


def wire_id(turn: int, number: int) -> str:
    """Return a call's id as servers take it: exactly nine letters and digits."""
    return f"t{turn % 100_000:05d}{number % 1000:03d}"


def beginning(system: str, first: str, dialect: Dialect) -> list[Message]:
    """Return the instructions and the first user message."""
    if dialect.system == "user":
        return [_message("user", f"{system}\n\n{first}")]
    return [_message(dialect.system, system), _message("user", first)]


def turn_messages(
    reply: ReplyReceived, results: Sequence[str], after: str, target: str, dialect: Dialect
) -> list[Message]:
    """Return a reply and what came of its calls.

    Args:
        reply: what the model said.
        results: one text for each of its calls, in order.
        after: what was said to it afterwards; empty for nothing.
        target: where calls run by default.
        dialect: how the server wants it.
    """
    if not dialect.native_tools:
        return _in_text(reply, results, after, target)
    if not reply.calls:
        said = _message("assistant", reply.text[:MOST_SAID] or "(nothing)")
        return [said, _message("user", _nudge(reply, after))]
    calls = [
        _call(call, reply.turn, number, target, dialect)
        for number, call in enumerate(reply.calls, 1)
    ]
    pairs = list(zip(calls, results, strict=True))
    if dialect.parallel:
        rows = [_calling(reply, calls, dialect), *(_result(*pair) for pair in pairs)]
    else:  # some templates refuse two calls in one message
        rows = [
            row
            for pair in pairs
            for row in (_calling(reply, [pair[0]], dialect, first=pair is pairs[0]), _result(*pair))
        ]
    return with_more(rows, after)


def _calling(
    reply: ReplyReceived, calls: list[Message], dialect: Dialect, *, first: bool = True
) -> Message:
    said = reply.text[:MOST_SAID] if first else ""
    answer: Message = {
        "role": "assistant",
        "content": said or (None if dialect.null_content else ""),
        "tool_calls": calls,
    }
    if dialect.echo_reasoning:
        answer[dialect.echo_reasoning] = reply.reasoning
    return answer


def _result(call: Message, words: str) -> Message:
    return {"role": "tool", "tool_call_id": call["id"], "content": words or "(nothing)"}


def with_more(messages: list[Message], more: str) -> list[Message]:
    """Return the messages with something added to the last one, whoever's that is."""
    if not more:
        return messages
    last = messages[-1]
    return [*messages[:-1], {**last, "content": f"{last['content']}\n\n{more}"}]


def _nudge(reply: ReplyReceived, after: str) -> str:
    """Say what was wrong with a reply that calls nothing, before what is said to it anyway."""
    why = ""
    if reply.cut_off:
        why = text("cut_off")
    elif any("could not be read" in note for note in reply.notes):
        why = text("unreadable")
    return "\n\n".join(filter(None, (why, after))) or text("silent")


def _in_text(
    reply: ReplyReceived, results: Sequence[str], after: str, target: str
) -> list[Message]:
    """Write calls as fenced JSON and results as a user message: no tool ever appears."""
    blocks = [
        "```json\n" + _json({"name": call.tool, "arguments": _arguments(call, target)}) + "\n```"
        for call in reply.calls
    ]
    said = "\n".join(filter(None, [reply.text[:MOST_SAID], *blocks])) or "(nothing)"
    found = [f"Result of call {n}:\n{words}" for n, words in enumerate(results, 1)]
    back = "\n\n".join(filter(None, [*found, after])) if found else _nudge(reply, after)
    return [_message("assistant", said), _message("user", back)]


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _call(call: ToolCall, turn: int, number: int, target: str, dialect: Dialect) -> Message:
    arguments = _arguments(call, target)
    return {
        "id": wire_id(turn, number),
        "type": "function",
        "function": {
            "name": call.tool or "unnamed",
            "arguments": arguments if dialect.arguments == "object" else _json(arguments),
        },
    }


def _arguments(call: ToolCall, target: str) -> dict[str, Any]:
    arguments = said_arguments(call, target)
    whole = _json(arguments)
    if len(whole) <= MOST_ARGUMENTS:
        return arguments
    return {"cut_off": whole[:MOST_ARGUMENTS]}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
