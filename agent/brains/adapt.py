"""Changes a dialect where a server refuses a field of the request: the run goes on without it."""

from __future__ import annotations

from typing import Any

from agent.brains.dialect import Dialect

_WITHOUT: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("stream_options", "include_usage"), {"stream_usage": False}),
    (("max_tokens",), {"limit_field": "max_completion_tokens"}),
    (("max_completion_tokens",), {"limit_field": "max_tokens"}),
    (("reasoning_content", "reasoning"), {"echo_reasoning": ""}),
    (("stream",), {"streams": False}),
    (("parallel_tool_calls",), {"parallel": False}),
    (("tools", "tool_choice", "tool_calls"), {"native_tools": False}),
    (("content",), {"null_content": False}),
    (("arguments",), {"arguments": "object"}),
    (("system", "role"), {"system": "user"}),
)
"""What is done without a field, the most telling part of its name first."""


def without(dialect: Dialect, field: str) -> Dialect | None:
    """Return the dialect without a field of the request, such as ``messages[0].reasoning_content``.

    ``None`` where nothing would be changed: asking again would fail the same way.
    """
    parts = [part.partition("[")[0].lower() for part in field.split(".")]
    for names, update in _WITHOUT:
        if any(name in parts for name in names):
            changed = dialect.model_copy(update=update)
            return changed if changed != dialect else None
    return None
