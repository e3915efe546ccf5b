"""Replies of a model's server, made up: completions, streams of them, refusals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Part = dict[str, Any] | str | bytes | float
"""An event's data, a raw piece, or a pause in seconds."""


@dataclass(frozen=True)
class Stream:
    """A reply in events."""

    parts: tuple[Part, ...]
    ends: Literal["done", "open", "cut", "close", "hang"] = "done"
    """done: ``[DONE]`` · open: properly, without it · cut: in the middle of the transfer · close:
    by closing, as servers without chunks do · hang: not at all."""
    kind: str = "text/event-stream"


Reply = dict[str, Any] | tuple[int, Mapping[str, str], Any] | Stream | str


def said(
    text: str | None = "",
    calls: Sequence[tuple[str, Any]] = (),
    *,
    usage: tuple[int, int] | None = (100, 10),
    finish: str = "",
    ids: Sequence[str] = (),
    **message: Any,
) -> dict[str, Any]:
    """Return a completion.

    Args:
        text: what is said.
        calls: names with arguments; arguments that are text are sent as they are.
        usage: tokens of the prompt and of the reply.
        finish: why it ends; by default what fits.
        ids: of the calls.
        message: further fields of the message, such as ``reasoning_content``.
    """
    listed = [
        {
            "id": ids[number] if number < len(ids) else f"call_{number}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": args if isinstance(args, str) else json.dumps(args),
            },
        }
        for number, (name, args) in enumerate(calls)
    ]
    whole = {"role": "assistant", "content": text or None, **message}
    if listed:
        whole["tool_calls"] = listed
    reason = finish or ("tool_calls" if listed else "stop")
    reply: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "stub",
        "choices": [{"index": 0, "message": whole, "finish_reason": reason}],
    }
    if usage is not None:
        prompt, completion = usage
        reply["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
    return reply


def chunks(reply: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a completion as a stream of three: all that is said, the reason, the usage."""
    choice = reply["choices"][0]
    delta = {key: value for key, value in choice["message"].items() if value is not None}
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": n, **c} for n, c in enumerate(delta["tool_calls"])]
    head = {key: reply[key] for key in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    reason = choice["finish_reason"]
    return [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        *([{**head, "choices": [], "usage": reply["usage"]}] if "usage" in reply else []),
    ]


def sse(*parts: Part, ends: Literal["done", "open", "cut", "close", "hang"] = "done") -> Stream:
    """Return a stream of these parts."""
    return Stream(parts, ends)


def refused(
    status: int, message: str, headers: Mapping[str, str] | None = None, **fields: Any
) -> tuple[int, Mapping[str, str], Any]:
    """Return a refusal in OpenAI's shape."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return status, headers or {}, {"error": {**error, **fields}}
