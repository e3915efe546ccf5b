"""One examination of an endpoint: asks, and changes one thing at a time where that is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.brains.adapt import without
from agent.brains.dialect import Dialect
from agent.brains.dialects import NotAReply, Parsed, parse
from agent.brains.endpoint import Endpoint
from agent.brains.failures import Failure, Kind, ModelFailed
from agent.brains.patience import patiently

MOST_REQUESTS = 6
"""So many are sent in all, besides those that only a passing failure makes necessary."""
_WAITED_S = 90.0
_ATTEMPTS = 3
BROKEN = 500
"""How servers answer, too, when a chat template cannot take what it is given."""
_REASONING = ("reasoning_content", "reasoning")

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """One reply and what was sent for it."""

    parsed: Parsed
    message: Mapping[str, Any]
    """The reply's message as the server wrote it."""
    characters: int
    """Of the messages and tools that were sent."""
    streamed: bool

    @property
    def called(self) -> bool:
        """Whether the server itself found calls, not we in the text."""
        return bool(self.functions)

    @property
    def functions(self) -> list[Mapping[str, Any]]:
        """The calls that the server found, each with ``name`` and ``arguments``, unread."""
        entries = self.message.get("tool_calls") or {"function": self.message.get("function_call")}
        found = []
        for entry in entries if isinstance(entries, list) else [entries]:
            entry = entry if isinstance(entry, Mapping) else {}
            function = entry.get("function") or entry.get("custom") or entry
            if isinstance(function, Mapping) and isinstance(function.get("name"), str):
                found.append(function)
        return found

    @property
    def reasoning_field(self) -> str:
        """The field in which the server gives reasoning, where it can be sent back so."""
        return self.parsed.reasoning_field if self.parsed.reasoning_field in _REASONING else ""


class Exam:
    """Asks an endpoint; ``dialect`` is what was found so far."""

    def __init__(
        self, endpoint: Endpoint, tell: Callable[[str], None], sleep: Callable[[float], None]
    ) -> None:
        self.endpoint = endpoint
        self.dialect = Dialect()
        self.left = MOST_REQUESTS
        self.lasting = True
        """Whether what was found is worth keeping; not where a part failed for now."""
        self._tell, self._sleep = tell, sleep

    def found(self, note: str = "", **update: Any) -> None:
        """Write down what was found, with a note for people where it matters to them."""
        if note:
            update["notes"] = (*self.dialect.notes, note)
        self.dialect = self.dialect.model_copy(update=update)

    def opening(self, system: str, user: str) -> list[Message]:
        """Return instructions and a first message as this server takes them."""
        if self.dialect.system == "user":
            return [{"role": "user", "content": f"{system}\n\n{user}"}]
        return [
            {"role": self.dialect.system, "content": system},
            {"role": "user", "content": user},
        ]

    def ask(
        self,
        messages: Callable[[], list[Message]],
        tools: Sequence[dict[str, Any]] = (),
        *,
        limit: int,
        guesses: Sequence[Mapping[str, Any]] = (),
        spare: int = 0,
    ) -> Seen:
        """Ask, and again with one thing changed where the server refuses something.

        Args:
            messages: builds the messages for the dialect of the time.
            tools: sent where the dialect has native tools; calls in text are of these too.
            limit: tokens of the reply.
            guesses: what is tried, one after the other, where a refusal names nothing.
            spare: requests that are left for what comes later.

        Raises:
            ModelFailed: there is no reply.
        """
        untried, before = list(guesses), self.dialect
        refused: set[Dialect] = set()
        while True:
            try:
                return self._once(messages(), list(tools), limit, guessing=bool(untried))
            except ModelFailed as error:
                refused.add(self.dialect)
                changed = _named(self.dialect, error.failure)
                if changed is None or changed in refused:
                    changed = _guessed(before, error.failure, untried, refused)
                else:
                    before = changed
                if changed is None or self.left <= spare:
                    raise
                self.dialect = changed

    def _once(
        self, messages: list[Message], tools: list[dict[str, Any]], limit: int, *, guessing: bool
    ) -> Seen:
        self.left -= 1
        dialect = self.dialect
        body: dict[str, Any] = {
            "model": self.endpoint.address.model,
            "messages": messages,
            dialect.limit_field: limit,
        }
        if dialect.streams:
            body["stream"] = True
            if dialect.stream_usage:
                body["stream_options"] = {"include_usage": True}
        if tools and dialect.native_tools:
            body["tools"] = tools
        characters = len(json.dumps([messages, body.get("tools")], ensure_ascii=False))
        sent = json.dumps(body, ensure_ascii=False).encode()

        def once() -> Seen:
            try:
                answer = self.endpoint.ask(sent, stream=dialect.streams)
            except ModelFailed as error:
                final = error.failure.final or (guessing and error.failure.status == BROKEN)
                raise ModelFailed(replace(error.failure, final=final)) from error.__cause__
            try:
                parsed = parse(answer.response, tools)
            except NotAReply as error:
                raise ModelFailed(Failure(Kind.NOT_A_REPLY, str(error))) from error
            message = _message(answer.response)
            return Seen(parsed, message, characters, answer.first_s is not None)

        return patiently(
            once, on_failure=self._on_failure, sleep=self._sleep, total_s=_WAITED_S, most=_ATTEMPTS
        )

    def _on_failure(self, failure: Failure, wait_s: float) -> None:
        if wait_s:
            self._tell(f"{failure.text}; asked again in {wait_s:.0f} s")


def _message(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first message of a reply; an empty one where it has none."""
    choices = response.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    return message if isinstance(message, Mapping) else {}


def _named(dialect: Dialect, failure: Failure) -> Dialect | None:
    """Return the dialect without what a refusal names."""
    if failure.kind is not Kind.REQUEST:
        return None
    if failure.parameter in _REASONING and not dialect.echo_reasoning:
        return dialect.model_copy(update={"echo_reasoning": failure.parameter})
    if failure.parameter == "parallel_tool_calls":
        return dialect.model_copy(update={"parallel": False})
    return without(dialect, failure.parameter)


def _guessed(
    dialect: Dialect,
    failure: Failure,
    untried: list[Mapping[str, Any]],
    refused: set[Dialect],
) -> Dialect | None:
    """Return the dialect with the next thing changed that a refusal may be about."""
    if failure.kind is not Kind.REQUEST and failure.status != BROKEN:
        return None
    while untried:
        changed = dialect.model_copy(update=dict(untried.pop(0)))
        if changed not in refused:
            return changed
    return None
