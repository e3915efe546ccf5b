"""A server with a model that does what the self-test asks, and that can be strict or odd."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.brains.address import Address
from agent.brains.dialect import Dialect
from agent.brains.endpoint import Endpoint
from agent.brains.exam import MOST_REQUESTS
from agent.brains.selftest import examine
from tests.lab.stub_model import Asked, Reply, Stub, refused, said, serving, strict_problems

GOOD = [("set_port", {"port": 8000, "open": True}), ("join_words", {"words": ["alpha", "beta"]})]
TEXT_CALLS = "\n".join(
    f"```json\n{json.dumps({'name': name, 'arguments': args})}\n```" for name, args in GOOD
)
Refusal = Callable[[dict[str, Any]], Reply | None]


@dataclass
class Model:
    """A server with a model behind it that does what is asked."""

    calls: list[tuple[str, Any]] = field(default_factory=lambda: list(GOOD))
    in_text: str = ""
    """Says this instead of calling."""
    thinks: dict[str, Any] = field(default_factory=dict)
    """Fields of reasoning in its replies."""
    refuses: tuple[Refusal, ...] = ()
    window: int = 0
    cuts: bool = False
    """Reads only so much as fits and does not say so."""
    limit_words: str = "This model's maximum context length is {} tokens."
    counts: bool = True
    forgets: bool = False
    length: int = 0
    """Tokens that it thinks before it says anything."""
    plain: float = 4.4
    """Characters of plain text that make one token; of JSON it is three quarters of that."""
    strict: bool = True
    seen: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, asked: Asked) -> Reply:
        body = asked.body
        self.seen.append(body)
        if self.strict:
            assert strict_problems(body) == []
        for refuse in self.refuses:
            no = refuse(body)
            if no is not None:
                return no
        tokens = self.tokens(body)
        limit = body.get("max_tokens") or body.get("max_completion_tokens")
        if self.window and tokens + limit > self.window and not self.cuts:
            return refused(400, self.limit_words.format(self.window))
        cut = bool(self.window and tokens > self.window)
        usage = (min(tokens, self.window) if cut else tokens, 20) if self.counts else None
        return self.answer(body, cut, usage)

    def answer(
        self, body: dict[str, Any], cut: bool, usage: tuple[int, int] | None
    ) -> dict[str, Any]:
        last = body["messages"][-1]
        word = re.search(r"kestrel-\d+", str(last["content"]))
        limit = body.get("max_tokens") or body["max_completion_tokens"]
        if word:
            return said("???" if cut or self.forgets else word[0], usage=usage)
        if last["role"] == "tool":
            return said("Both are done.", usage=usage)
        if limit < self.length:
            return said("", usage=usage, finish="length", **self.thinks)
        if "tools" not in body or self.in_text:
            return said(self.in_text, usage=usage, **self.thinks)
        return said("", self.calls, usage=usage, **self.thinks)

    def tokens(self, body: dict[str, Any]) -> int:
        text = sum(len(str(message.get("content") or "")) for message in body["messages"])
        rest = len(json.dumps(body.get("tools", [])))
        rest += sum(len(json.dumps(m.get("tool_calls", ""))) for m in body["messages"])
        return int(text / self.plain + rest / (0.75 * self.plain)) + 30


@contextmanager
def served(model: Model, **settings: Any) -> Iterator[tuple[Stub, Endpoint]]:
    with (
        serving(model, **settings) as stub,
        Endpoint(Address(stub.url, "m"), "", timeout_s=5) as endpoint,
    ):
        yield stub, endpoint


def examined(model: Model, folder: Path, **settings: Any) -> Dialect:
    with served(model, **settings) as (stub, endpoint):
        dialect = examine(endpoint, cache=folder, sleep=lambda _: None)
        assert len(stub.asked) <= MOST_REQUESTS
        return dialect


def listed(**row: Any) -> dict[str, Any]:
    return {"/v1/models": {"data": [{"id": "m", **row}]}}


def messages_of(body: dict[str, Any], role: str) -> list[dict[str, Any]]:
    return [message for message in body["messages"] if message["role"] == role]
