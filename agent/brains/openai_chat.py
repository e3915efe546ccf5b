"""The brain that asks a model at any OpenAI-compatible endpoint.

It sees the same view as the playbook, projected to messages, and answers with the same calls, which
go through the same gate, policy and transcript. What fails on the way is told as it happens.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agent.brains.adapt import without
from agent.brains.base import Attempt, BrainFailed, OutOfContext, Reply, Request
from agent.brains.dialect import Dialect
from agent.brains.dialects import NotAReply, Parsed, parse
from agent.brains.failures import Failure, Kind, ModelFailed
from agent.brains.meter import Meter
from agent.brains.patience import patiently
from agent.brains.schemas import called
from agent.brains.suggestions import Suggestion, suggest, taken
from agent.brains.talk import Options, Talk, head_of, talk_of
from agent.fold import View
from agent.limits import time_left_s
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
PATIENCE_S = 300.0
"""So long is waited between attempts, all in all, in seconds."""
LEAST_REPLY = 256
"""Tokens that a reply gets at least."""
_READ = (Kind.NOT_A_REPLY, Kind.TIMEOUT)
"""Failures of requests that were read, and so may cost."""


Ask = Callable[..., Any]
"""``Endpoint.ask``: a body as bytes, whether to stream, and who takes pieces of text."""


def _same(value: Any) -> Any:
    return value


def _nothing() -> None:
    """There is nothing to let go of."""


@dataclass
class OpenAIChat:
    """Asks a model; one object serves one run at a time, and a run that goes on builds it anew."""

    ask: Ask
    """Sends one request; it raises ``ModelFailed``."""
    model: str
    dialect: Dialect
    clean: Callable[[Any], Any] = _same
    """Takes secrets out of a value."""
    options: Options = field(default_factory=Options)
    sleep: Callable[[float], None] = time.sleep
    """How it waits between two attempts, in seconds."""
    close: Callable[[], None] = _nothing
    """Lets go of the connection."""
    name: str = "openai"

    def __post_init__(self) -> None:
        self._talk: Talk | None = None
        self._heard = 0
        """Characters of the reply that is coming in, or came in last."""
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
            body = self._body(talk, request, suggestions)
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

    def _talk_of(self, view: View) -> Talk:
        if self._talk is None or self._talk.view is not view:
            self._talk = talk_of(view, self.dialect, self.options.tools, self.clean)
        return self._talk

    def _body(self, talk: Talk, request: Request, suggestions: list[Suggestion]) -> bytes:
        """Build the request, within what is left of the context.

        Raises:
            OutOfContext: it does not fit, however much is shortened.
        """
        wanted, each = self._reply_tokens(talk.view), self._meter.bytes_per_token
        room = int((self._context * ROOM - wanted) * each)
        messages, used = talk.messages(request, suggestions, room)
        limit = max(LEAST_REPLY, min(wanted, self._context - int(used / each)))
        return talk.body(messages, head_of(self.model, self.dialect, limit))

    def _reply_tokens(self, view: View) -> int:
        """Return the longest reply; after one that was cut off it may be longer, twice."""
        longer = 0
        for turn in range(view.turn, 0, -1):
            if longer == 2 or not view.asked.replies[turn].cut_off:
                break
            longer += 1
        return int(min(self.options.reply_tokens << longer, self._context // 3))

    def _parsed(self, request: Request, talk: Talk, body: bytes) -> Parsed:
        """Ask until there is a reply, each failed attempt on record.

        Raises:
            ModelFailed: there is none; the last failure is not on record yet.
        """
        left_s = max(time_left_s(request.view), 1.0)

        def on_text(piece: str) -> None:
            self._heard += len(piece)
            request.tell(piece)

        def once() -> Parsed:
            self._heard = 0
            try:
                answer = self.ask(
                    body, stream=self.dialect.streams, on_text=on_text, total_s=left_s
                )
                return parse(answer.response, talk.tools)
            except NotAReply as error:
                raise ModelFailed(Failure(Kind.NOT_A_REPLY, str(error))) from error
            except KeyboardInterrupt:
                words = "interrupted while the model was answering"
                usage = self._meter.estimate(body, self._heard)
                request.failed(Attempt("cancelled", words, usage=usage))
                raise

        def on_failure(failure: Failure, wait_s: float) -> None:
            if wait_s > 0:
                request.failed(self._attempt(failure, body, wait_s=wait_s))

        longest_s = min(PATIENCE_S, left_s)
        return patiently(once, on_failure=on_failure, sleep=self.sleep, total_s=longest_s)

    def _attempt(
        self, failure: Failure, body: bytes, *, wait_s: float = 0.0, final: bool = False
    ) -> Attempt:
        """Describe a failed attempt; one that the server has read, or begun to answer, costs."""
        read = self._heard > 0 or failure.kind in _READ
        usage = self._meter.estimate(body, self._heard) if read else Usage()
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
        elif failure.kind is Kind.OVERFLOW:
            request.failed(self._attempt(failure, body))
            if last:
                raise OutOfContext(failure.text)
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
