"""Calls in their full form: what a tool fills in by itself is part of what is asked for."""

from __future__ import annotations

from agent.control import CONTROLS
from agent.values import ToolCall
from tools.registry import find


def full(call: ToolCall) -> ToolCall:
    """Return a call with all its arguments, as it is recorded once it is taken up.

    Raises:
        pydantic.ValidationError: the arguments are wrong.
    """
    tool = CONTROLS.get(call.tool) or find(call.tool)
    args = tool.args_type.model_validate(call.args)
    return call.model_copy(update={"args": args.model_dump(mode="json")})
