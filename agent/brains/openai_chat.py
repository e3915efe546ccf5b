"""The brain that asks a model at any OpenAI-compatible endpoint.

It sees the same view as the playbook, projected to messages, and answers with the same calls, which
go through the same gate, policy and transcript. What fails on the way is told as it happens.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.brains.adapt import without
from agent.brains.base import Attempt, BrainFailed, OutOfContext, Reply, Request
from agent.brains.briefing import now
from agent.brains.dialect import Dialect
from agent.brains.dialects import NotAReply, Parsed, parse
from agent.brains.failures import Failure, Kind, ModelFailed
from agent.brains.meter import Meter
from agent.brains.names import Toolbox
from agent.brains.patience import patiently
from agent.brains.projection import Projection
from agent.brains.render import Fence
from agent.brains.schemas import called, schemas
from agent.brains.suggestions import Suggestion, suggest, taken
from agent.brains.texts import template, text
from agent.fold import View
from agent.settings import Price
from agent.site import site_of
from agent.values import ToolCall, Usage

UNKNOWN_CONTEXT = 128_000
"""Tokens of context that are reckoned with where nobody tells; an overflow corrects it."""
MOST_CALLS = 50
"""So many calls of one reply are taken."""
MOST_REASONING = 20_000
"""So many characters of what a model thought aloud are kept."""
MOST_WHY = 300
"""So many characters of a reply's words are shown as a call's reason to whoever approves."""
OVERFLOWS = 2
"""So often a request that was too long is shortened and sent again."""
ROOM = 0.95
"""Share of the context that is used: characters tell of tokens only roughly."""
LEAST_REPLY = 256
"""Tokens that a reply gets at least."""
_READ = (Kind.NOT_A_REPLY, Kind.TIMEOUT)
"""Failures of requests that were read, and so may cost."""


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


Ask = Callable[..., Any]
"""``Endpoint.ask``: a body as bytes, whether to stream, and who takes pieces of text."""


def _nothing() -> None:
    """There is nothing to let go of."""


@dataclass
class _Talk:
    """What belongs to one run."""

    view: View
    fence: Fence
    tools: Toolbox
    tools_json: bytes
    projection: Projection


@dataclass
class OpenAIChat:
    """Asks a model; one object serves one run at a time, and a run that goes on builds it anew."""

    ask: Ask
    """Sends one request; it raises ``ModelFailed``."""
    model: str
    dialect: Dialect
    clean: Callable[[str], str] = str
    """Takes secrets out of text."""
    options: Options = field(default_factory=Options)
    sleep: Callable[[float], None] = time.sleep
    """How it waits between two attempts, in seconds."""
    close: Callable[[], None] = _nothing
    """Lets go of the connection."""
    name: str = "openai"

    def __post_init__(self) -> None:
        self._talk: _Talk | None = None
        self._meter = Meter(self.dialect.chars_per_token, self.options.price)
        self._context = (
            self.options.context_tokens or self.dialect.context_tokens or UNKNOWN_CONTEXT
        )

    def reply(self, request: Request) -> Reply:
        """Ask for the next calls.

        Raises:
            BrainFailed: no attempt brought a reply; all are on record.
            OutOfContext: what has to be shown does not fit the model's context.
        """
        talk = self._talk_of(request.view)
        talk.projection.update()
        suggestions = suggest(request)
        for again in range(OVERFLOWS + 1):
            shown = now(request, suggestions, talk.fence, facts=talk.projection.shortened)
            body = self._body(talk, shown)
            try:
                parsed = self._parsed(request, talk, body)
            except ModelFailed as error:
                self._cope(request, error.failure, body, last=again == OVERFLOWS)
                talk = self._talk_of(request.view)
                talk.projection.update()
                continue
            if not self._was_cut(request, parsed, body, last=again == OVERFLOWS):
                return self._reply(request, parsed, suggestions, body)
        raise OutOfContext("the server reads less than it is sent, however much is shortened")

    def _talk_of(self, view: View) -> _Talk:
        if self._talk is None or self._talk.view is not view:
            kinds = {bool(item.image) for item in view.need_goal().candidates}
            kind = {frozenset({True}): "image", frozenset({False}): "venv"}.get(
                frozenset(kinds), ""
            )
            tools = schemas(self.options.tools, kind=kind)
            seed = view.header.seed if view.header else ""
            fence = Fence.of(seed)
            native = self.dialect.native_tools
            told = "" if native else f"\n{text('text_tools')}\n{_as_lines(tools)}"
            system = template("system").substitute(fence=fence.word, tools=told)
            self._talk = _Talk(
                view,
                fence,
                Toolbox(tools),
                _json(tools) if native else b"",
                Projection(view, system.strip(), self.dialect, fence, self.clean),
            )
        return self._talk

    def _body(self, talk: _Talk, shown: str) -> bytes:
        """Build the request; what does not fit is shortened first."""
        wanted = self._reply_tokens(talk.view)
        fixed = len(talk.tools_json) + 300
        room = int((self._context * ROOM - wanted) * self._meter.bytes_per_token) - fixed
        talk.projection.fit(shown, max(room, 0))
        messages = talk.projection.parts(shown)
        used = int((sum(map(len, messages)) + fixed) / self._meter.bytes_per_token)
        head: dict[str, Any] = {
            "model": self.model,
            self.dialect.limit_field: max(LEAST_REPLY, min(wanted, self._context - used)),
        }
        if self.dialect.streams:
            head["stream"] = True
            if self.dialect.stream_usage:
                head["stream_options"] = {"include_usage": True}
        tools = b',"tools":%b' % talk.tools_json if talk.tools_json else b""
        messages[0] = b'%b,"messages":[%b' % (_json(head)[:-1], messages[0])
        messages[-1] = b"%b]%b}" % (messages[-1], tools)
        return b",".join(messages)  # the one copy: late in a run it is megabytes

    def _reply_tokens(self, view: View) -> int:
        """Return the longest reply; after one that was cut off it may be longer, twice."""
        longer = 0
        for turn in range(view.turn, 0, -1):
            if longer == 2 or not view.asked.replies[turn].cut_off:
                break
            longer += 1
        return int(min(self.options.reply_tokens << longer, self._context // 3))

    def _parsed(self, request: Request, talk: _Talk, body: bytes) -> Parsed:
        """Ask until there is a reply, each failed attempt on record.

        Raises:
            ModelFailed: there is none; the last failure is not on record yet.
        """
        pieces: list[str] = []

        def on_text(piece: str) -> None:
            pieces.append(piece)
            request.tell(piece)

        def once() -> Parsed:
            pieces.clear()
            answer = self.ask(body, stream=self.dialect.streams, on_text=on_text)
            try:
                return parse(answer.response, talk.tools)
            except NotAReply as error:
                raise ModelFailed(Failure(Kind.NOT_A_REPLY, str(error))) from error

        def on_failure(failure: Failure, wait_s: float) -> None:
            if wait_s > 0:
                request.failed(self._attempt(failure, body, wait_s=wait_s))

        try:
            return patiently(once, on_failure=on_failure, sleep=self.sleep)
        except KeyboardInterrupt:
            said = sum(map(len, pieces))
            words = "interrupted while the model was answering"
            request.failed(Attempt("cancelled", words, usage=self._meter.estimate(body, said)))
            raise

    def _attempt(
        self, failure: Failure, body: bytes, *, wait_s: float = 0.0, final: bool = False
    ) -> Attempt:
        usage = self._meter.estimate(body, 0) if failure.kind in _READ else Usage()
        return Attempt(failure.kind.value, failure.text, failure.status, usage, wait_s, final)

    def _cope(self, request: Request, failure: Failure, body: bytes, *, last: bool) -> None:
        """Put right what can be put right here, and go on; else end with the failure on record.

        Raises:
            BrainFailed: it cannot.
            OutOfContext: the request stays too long.
        """
        changed = without(self.dialect, failure.parameter)
        if failure.kind is Kind.REQUEST and changed is not None and not last:
            request.failed(self._attempt(failure, body))
            self.dialect, self._talk = changed, None
        elif failure.kind is Kind.OVERFLOW and last:
            raise OutOfContext(failure.text)
        elif failure.kind is Kind.OVERFLOW:
            request.failed(self._attempt(failure, body))
            self._shrink(failure.limit_tokens, body)
        else:
            request.failed(self._attempt(failure, body, final=True))
            raise BrainFailed(failure.text)

    def _shrink(self, limit_tokens: int | None, body: bytes) -> None:
        """Reckon with a smaller context, by what the server names or by three quarters."""
        sent = int(len(body) / self._meter.bytes_per_token)
        if limit_tokens and limit_tokens < self._context:
            self._context = limit_tokens
        elif limit_tokens:  # the window is as thought, and the characters were more tokens
            self._meter.bytes_per_token *= 0.75
        else:
            self._context = int(0.75 * min(self._context, sent + LEAST_REPLY))

    def _was_cut(self, request: Request, parsed: Parsed, body: bytes, *, last: bool) -> bool:
        """See whether the server dropped a part of the request without a word, and put it right.

        Raises:
            OutOfContext: it did so again.
        """
        words = self._meter.cut(parsed, body)
        if not words:
            return False
        usage = self._meter.usage(parsed, body)
        request.failed(Attempt(Kind.OVERFLOW.value, words, usage=usage))
        if last:
            raise OutOfContext(words)
        self._context = min(self._context, parsed.prompt_tokens)
        return True

    def _reply(
        self, request: Request, parsed: Parsed, suggestions: list[Suggestion], body: bytes
    ) -> Reply:
        target = site_of(request.view).target
        said = parsed.calls[:MOST_CALLS]
        steps = taken([(call.name, call.args) for call in said], suggestions)
        calls: list[ToolCall] = []
        why = " ".join(parsed.text.split())[:MOST_WHY]
        for place, call in enumerate(said):
            own = called(call.name, call.args, call.problem, target, why)
            calls += steps.get(place, (own,))
        notes = list(parsed.notes)
        if len(parsed.calls) > MOST_CALLS:
            notes.append(f"{len(parsed.calls) - MOST_CALLS} of {len(parsed.calls)} calls left out")
        if self._talk is not None and self._talk.projection.note:
            notes.append(self._talk.projection.note)
        return Reply(
            text=self.clean(parsed.text or parsed.refusal),
            calls=tuple(calls),
            usage=self._meter.usage(parsed, body),
            reasoning=parsed.reasoning[:MOST_REASONING],
            cut_off=parsed.cut_off,
            notes=tuple(notes),
        )


def _as_lines(tools: list[dict[str, Any]]) -> str:
    """Write the tools for a model that is told of them in text."""
    return "\n".join(_json(tool["function"]).decode() for tool in tools)


def _json(value: Mapping[str, Any] | list[dict[str, Any]]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
