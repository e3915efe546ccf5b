"""What the self-test found out about an endpoint: how this server wants to be spoken to."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Dialect(BaseModel):
    """How one model behind one server is asked; the defaults are what most servers take."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    native_tools: bool = True
    """``tools`` go out and ``tool_calls`` come back; else calls are written in text."""
    parallel: bool = True
    """Several calls in one reply were seen."""
    arguments: Literal["string", "object"] = "string"
    """How the arguments of earlier calls are sent back."""
    null_content: bool = True
    """A message that only calls has the content ``null``; else it is an empty string."""
    echo_reasoning: Literal["", "reasoning_content", "reasoning"] = ""
    """Field in which the reasoning of earlier turns of the same tool exchange is sent back."""
    system: Literal["system", "developer", "user"] = "system"
    """Role of the instructions; ``user``: they go in front of the first user message."""
    streams: bool = True
    stream_usage: bool = True
    """``stream_options: {"include_usage": true}`` is taken."""
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    context_tokens: int = Field(default=0, ge=0)
    """The true window in tokens; 0 where it is not known."""
    chars_per_token: float = Field(default=3.5, gt=0)
    """Characters of English and JSON that make one token here, as ``usage`` counted them."""
    notes: tuple[str, ...] = ()
    """Warnings for people."""
