"""What a model and one run have between them: tools, fence and history; it builds the requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.brains.base import Request
from agent.brains.briefing import now
from agent.brains.dialect import Dialect
from agent.brains.names import Toolbox
from agent.brains.projection import Projection
from agent.brains.render import Fence
from agent.brains.schemas import schemas
from agent.brains.suggestions import Suggestion
from agent.brains.texts import template, text
from agent.fold import View
from agent.settings import Price
from agent.site import site_of

HEAD_BYTES = 300
"""What a request holds besides messages and tools, at most."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a model is asked."""

    reply_tokens: int = 8192
    """Longest reply."""
    context_tokens: int = 0
    """The model's context; 0: what the self-test found, else ``UNKNOWN_CONTEXT``."""
    price: Price | None = None
    tools: tuple[str, ...] = ()
    """Only these tools are offered, besides the control tools; empty: all."""


@dataclass
class Talk:
    """What belongs to one run."""

    view: View
    fence: Fence
    tools: Toolbox
    tools_json: bytes
    """As they are sent; empty where the model is told of them in text."""
    projection: Projection

    def messages(
        self, request: Request, suggestions: Sequence[Suggestion], room: int
    ) -> tuple[list[bytes], int]:
        """Return the messages in pieces, and the request's length in bytes.

        What does not fit is shortened first; from then on, what is known is told too.

        Raises:
            OutOfContext: it takes more than ``room`` bytes, however much is shortened.
        """
        fixed = len(self.tools_json) + HEAD_BYTES
        while True:
            facts = self.projection.shortened
            shown = now(request, suggestions, self.fence, facts=facts)
            self.projection.fit(shown, max(room - fixed, 0))
            if self.projection.shortened is facts:
                break
        pieces = self.projection.parts(shown)
        return pieces, sum(map(len, pieces)) + fixed

    def body(self, messages: list[bytes], head: Mapping[str, Any]) -> bytes:
        """Join a request; late in a run it is megabytes, so this is the one copy."""
        tools = b',"tools":%b' % self.tools_json if self.tools_json else b""
        messages[0] = b'%b,"messages":[%b' % (_json(head)[:-1], messages[0])
        messages[-1] = b"%b]%b}" % (messages[-1], tools)
        return b",".join(messages)


def talk_of(
    view: View, dialect: Dialect, names: Sequence[str], clean: Callable[[Any], Any]
) -> Talk:
    """Begin to talk of a run, or go on with it.

    Args:
        view: the run.
        dialect: how the server wants to be spoken to.
        names: only these tools are offered, besides the control tools; empty: all.
        clean: takes secrets out of a value.
    """
    images = {bool(item.image) for item in view.need_goal().candidates}
    kind = "" if len(images) > 1 else site_of(view).kind
    tools = schemas(names, kind=kind)
    fence = Fence.of(view.header.seed if view.header else "", clean)
    told = "" if dialect.native_tools else f"\n{text('text_tools')}\n{_as_lines(tools)}"
    system = template("system").substitute(fence=fence.word, tools=told)
    sent = _json(tools) if dialect.native_tools else b""
    projection = Projection(view, system.strip(), dialect, fence)
    return Talk(view, fence, Toolbox(tools), sent, projection)


def head_of(model: str, dialect: Dialect, reply_tokens: int) -> dict[str, Any]:
    """Return a request without its messages and tools."""
    head: dict[str, Any] = {"model": model, dialect.limit_field: reply_tokens}
    if dialect.streams:
        head["stream"] = True
        if dialect.stream_usage:
            head["stream_options"] = {"include_usage": True}
    return head


def _as_lines(tools: list[dict[str, Any]]) -> str:
    """Write the tools for a model that is told of them in text."""
    return "\n".join(_json(tool["function"]).decode() for tool in tools)


def _json(value: Mapping[str, Any] | list[dict[str, Any]]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
