"""Finds out, once for each endpoint, how its model wants to be spoken to: three small requests.

The first asks for two tool calls at once, the second sends their results back, the third is long
enough to show a window that is cut without a word. Where the server refuses something, the request
is sent again with that one thing changed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.brains.dialect import Dialect
from agent.brains.endpoint import Endpoint
from agent.brains.exam import BROKEN, Exam, Message, Seen
from agent.brains.failures import Kind, ModelFailed
from agent.brains.selftest_cache import Cache
from agent.brains.selftest_texts import load
from agent.brains.texts import text
from agent.brains.window_check import check_window

CALLS_LIMIT = 1_024
"""Tokens of the first reply; models that reason need some hundred before they call."""
MORE = 4_096
"""The same, where the first reply was cut off before it called."""
FOLLOW_LIMIT = 256
_TOLD_IN_TEXT = (
    "tools are described to it in text; a server of one's own may need its tool-call parser "
    "switched on"
)
_NOTES_CHARS = 2_400
"""Filler in the results of the second request: what it adds tells the filler's characters a
token."""
_SOUND = (1.5, 8.0)
"""Characters a token that can be; other values come from counts that leave cached tokens out."""


def _tell_nobody(_: str) -> None:
    """Tell nobody."""


def examine(
    endpoint: Endpoint,
    *,
    cache: Path,
    fresh: bool = False,
    tell: Callable[[str], None] = _tell_nobody,
    sleep: Callable[[float], None] = time.sleep,
) -> Dialect:
    """Return how this endpoint is spoken to: from the cache, or by asking it.

    Args:
        endpoint: is asked up to six times, besides what it lists of its models.
        cache: folder for what is found; each endpoint has a file of its own there.
        fresh: whether to ask although it is known.
        tell: is told what takes time.
        sleep: waits between attempts.

    Raises:
        ModelFailed: the key, the model, the account or the network does not allow to ask, or there
            was no reply to the first request. Where the dialect is known, only the key and the
            network are looked at.
    """
    kept = Cache(cache, endpoint.address)
    known = None if fresh else kept.load()
    if known is not None and _takes_the_key(endpoint):
        return known
    tell(f"examining {endpoint.address.model}: three short requests, once a week")
    exam = Exam(endpoint, tell, sleep)
    first = _calls(exam)
    ratio = _follow_up(exam, first) if exam.dialect.native_tools else _in_text(exam)
    check_window(exam, ratio)
    problem = kept.save(exam.dialect) if exam.lasting else ""
    if problem:
        exam.found(problem)
    return exam.dialect


def _takes_the_key(endpoint: Endpoint) -> bool:
    """See that the server of a known dialect is there and takes the key, before a run begins.

    A key that may not list models may still be one that may chat: then a request has to tell.

    Raises:
        ModelFailed: the server is not there; whatever else it says here has no meaning for runs.
    """
    try:
        endpoint.check()
    except ModelFailed as error:
        if error.failure.kind in (Kind.NETWORK, Kind.TIMEOUT):
            raise
        return error.failure.kind is not Kind.KEY
    return True


def _calls(exam: Exam) -> Seen:
    """Ask for two calls at once."""
    texts = load()
    guesses: list[dict[str, Any]] = [{"stream_usage": False}, {"native_tools": False}]

    def ask(limit: int) -> Seen:
        return exam.ask(
            lambda: exam.opening(texts.system, texts.ask),
            texts.schemas(),
            limit=limit,
            guesses=guesses,
            spare=2,
        )

    seen = ask(CALLS_LIMIT)
    if seen.parsed.cut_off and not seen.parsed.calls:
        seen = ask(MORE)
    exam.found(streams=exam.dialect.streams and seen.streamed)
    measured = _ratio(seen)
    if measured:
        exam.found(chars_per_token=measured)
    else:
        exam.found("the server counts no tokens: what requests take is estimated")
    if exam.dialect.native_tools:
        _judge_calls(exam, seen)
    else:
        exam.found(f"the server takes no tools for this model: {_TOLD_IN_TEXT}")
    return seen


def _judge_calls(exam: Exam, seen: Seen) -> None:
    if not seen.called:
        how = "writes calls in its text" if seen.parsed.calls else "called no tool"
        exam.found(
            f"asked for two tool calls, the model {how}: {_TOLD_IN_TEXT}", native_tools=False
        )
        return
    exam.found(parallel=len(seen.parsed.calls) > 1, echo_reasoning=seen.reasoning_field)
    wrong = _wrong_types(seen)
    if wrong:
        exam.found(f"arguments of wrong types, which are put right: {', '.join(wrong)}")


def _wrong_types(seen: Seen) -> list[str]:
    wanted, wrong = load().calls, []
    for function in seen.functions:
        arguments: Any = function.get("arguments")
        try:
            given = json.loads(arguments) if isinstance(arguments, str) else arguments
        except (ValueError, RecursionError):
            given = None
        for name, value in wanted.get(str(function.get("name")), {}).items():
            said = given.get(name) if isinstance(given, dict) else given
            if type(said) is not type(value):
                wrong.append(f"{name} was {json.dumps(said)[:40]}")
    return wrong


def _follow_up(exam: Exam, first: Seen) -> float:
    """Send the results back as the model's own call was; return the filler's characters a token."""
    texts = load()
    results = f"{texts.result}\n{texts.notes(_NOTES_CHARS)}"

    def messages() -> list[Message]:
        opening = exam.opening(texts.system, texts.ask)
        return [*opening, *_exchange(exam.dialect, first, results)]

    guesses: list[dict[str, Any]] = [
        {"null_content": False},
        {"arguments": "object"},
        {"echo_reasoning": "" if exam.dialect.echo_reasoning else "reasoning_content"},
    ]
    try:
        seen = exam.ask(messages, texts.schemas(), limit=FOLLOW_LIMIT, guesses=guesses, spare=1)
    except ModelFailed as error:
        if error.failure.kind is not Kind.REQUEST and error.failure.status != BROKEN:
            raise
        exam.found(f"results of calls are refused: {error.failure.text}", native_tools=False)
        return 0.0
    more = seen.parsed.prompt_tokens - first.parsed.prompt_tokens
    if not (first.parsed.prompt_tokens and more > 0):
        return 0.0
    return _sound((seen.characters - first.characters) / more)


def _exchange(dialect: Dialect, first: Seen, result: str) -> list[Message]:
    calls = first.parsed.calls if dialect.parallel else first.parsed.calls[:1]
    answer: Message = {
        "role": "assistant",
        "content": first.parsed.text or (None if dialect.null_content else ""),
        "tool_calls": [
            {
                "id": f"call{number:05d}",
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": call.args
                    if dialect.arguments == "object"
                    else json.dumps(call.args),
                },
            }
            for number, call in enumerate(calls)
        ],
    }
    if dialect.echo_reasoning:
        answer[dialect.echo_reasoning] = first.parsed.reasoning
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": result if n == 0 else "Done."}
        for n, call in enumerate(answer["tool_calls"])
    ]
    return [answer, *results]


def _in_text(exam: Exam) -> float:
    """See whether calls are understood where tools are only described in text."""
    texts = load()
    told = "\n".join(json.dumps(tool) for tool in texts.tools)
    system = f"{texts.system}\n\n{text('text_tools')}\n{told}"
    seen = exam.ask(lambda: exam.opening(system, texts.ask), texts.schemas(), limit=MORE, spare=1)
    names = {call.name for call in seen.parsed.calls}
    if not names & set(texts.calls):
        exam.found("no tool call of this model is understood: it can hardly drive a run")
    exam.found(parallel=len(names) > 1)
    return 0.0


def _ratio(seen: Seen) -> float:
    """Return the characters a token of one request; 0 where they were not counted."""
    count = seen.parsed.prompt_tokens
    return _sound(seen.characters / count) if count else 0.0


def _sound(ratio: float) -> float:
    return ratio if _SOUND[0] <= ratio <= _SOUND[1] else 0.0
