"""Replies of OpenAI-compatible servers, read into one form whatever the server makes of it.

Pure: a response (JSON, whole) in, what the model said out. What had to be mended is noted for the
record; what cannot be run comes as a call with a problem, so that the model hears of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.brains.content import Content, read_content, text_of
from agent.brains.names import Toolbox
from agent.brains.said import SaidCall, said_call
from agent.brains.text_calls import TextCalls, find_calls
from agent.brains.text_found import MOST
from agent.brains.thinking import part

__all__ = ["NotAReply", "Parsed", "SaidCall", "parse"]

_CUT = {"length", "max_tokens", "max_output_tokens", "model_length", "token_limit"}
_CUT.add("model_context_window_exceeded")
_FILTERED = {"content_filter", "safety", "prohibited_content", "blocklist", "recitation", "spii"}
_FILTERED |= {"refusal", "sensitive", "content_filtered"}
_CALLS = {"tool_calls", "tool_call", "function_call", "tool_use"}
_SENT_BACK = ("reasoning_content", "reasoning")
_REASONING = (*_SENT_BACK, "thinking")
_MOST_TOKENS = 10**12
_LONGEST_QUOTE = 200
_LONGEST_FINISH = 60
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


class NotAReply(ValueError):
    """The server's answer is no chat completion; the message quotes its beginning."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a model said."""

    text: str = ""
    """For people: the content without calls and without what was thought."""
    reasoning: str = ""
    reasoning_field: str = ""
    """``reasoning_content`` or ``reasoning``, if it came there and could be sent back there."""
    calls: tuple[SaidCall, ...] = ()
    """In order."""
    refusal: str = ""
    """The model's or the provider's refusal in words."""
    cut_off: bool = False
    """Whether the reply ended at its length limit."""
    finish: str = ""
    """``finish_reason`` as it came."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    notes: tuple[str, ...] = ()
    """What had to be mended, for the record."""


def parse(response: Any, tools: Sequence[Mapping[str, Any]] | Toolbox) -> Parsed:
    """Read a response.

    Args:
        response: The decoded body, whatever it is.
        tools: The tools as they were sent, as OpenAI function schemas; or a toolbox of them, where
            many replies are read.

    Raises:
        NotAReply: it is no chat completion, or says that there was an error.
    """
    choice = _choice(response)
    message = _message(choice)
    finish = _whole(text_of(choice.get("finish_reason"))[:_LONGEST_FINISH])
    toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
    reading = _Reading(toolbox, finish.lower() in _CUT)
    content = read_content(message.get("content", choice.get("text")))
    field, reasoning = _reasoning(message)
    native = (*_native(message), *content.calls)
    reading.take_native(native)
    text, thought = part(content.text) if content.text else ("", "")
    reasoning = "\n".join(filter(None, (reasoning, content.reasoning, thought)))
    text = reading.take_text(text, reasoning)
    reading.note_finish(finish, bool(native))
    prompt, completion, cached = _tokens(response.get("usage"))
    return Parsed(
        text=_whole(text),
        reasoning=_whole(reasoning),
        reasoning_field=field,
        calls=tuple(reading.calls),
        refusal=_refusal(message, content, finish),
        cut_off=reading.cut_off,
        finish=finish,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        notes=tuple(dict.fromkeys(reading.notes)),
    )


class _Reading:
    """Calls and notes as they are found."""

    def __init__(self, toolbox: Toolbox, cut_off: bool) -> None:
        self.toolbox, self.cut_off = toolbox, cut_off
        self.calls: list[SaidCall] = []
        self.notes: list[str] = []

    def take_native(self, entries: Sequence[Any]) -> None:
        """Take calls that came as such."""
        ids: set[str] = set()
        for entry in entries[:MOST]:
            function = _function(entry)
            if function is None:
                self.notes.append("an entry of tool_calls is no call")
                continue
            name = function.get("name")
            raw = function.get("arguments", function.get("parameters"))
            said = name if isinstance(name, str) else ""
            call, notes = said_call(said, raw, self.toolbox, self.cut_off)
            self.calls.append(call)
            self.notes += notes
            self.note_id(entry.get("id"), ids)
        if len(entries) > MOST:
            self.notes.append(f"calls beyond the first {MOST} were left out")

    def note_id(self, given: Any, ids: set[str]) -> None:
        """Note what is wrong with a server's id; ids of our own are used anyway."""
        if not isinstance(given, str) or not given:
            self.notes.append("ids missing")
        elif given in ids:
            self.notes.append("ids repeated")
        else:
            ids.add(given)

    def take_text(self, text: str, reasoning: str) -> str:
        """Take calls that were left in text, and return the text without them."""
        found = find_calls(text, self.toolbox, cut_off=self.cut_off)
        if self.calls:
            return self.without_repeats(found, text)
        if not text.strip() and reasoning and not self.cut_off:
            self.take_found(find_calls(reasoning, self.toolbox, thought=True), "reasoning")
            return ""
        self.take_found(found, "text")
        return found.text

    def take_found(self, found: TextCalls, where: str) -> None:
        """Take what was found in the text or in the reasoning."""
        self.calls += found.calls
        if found.calls:
            self.notes.append(f"call found in {where} ({found.form})")
        self.notes += found.notes
        if found.attempted:
            tried = f"a call was attempted in {where} ({found.attempted}) and could not be read"
            self.notes.append(tried)

    def without_repeats(self, found: TextCalls, text: str) -> str:
        """Return the text without calls that came as such too; others stay where they are."""
        if text.strip() in {call.name for call in self.calls}:
            return ""
        if not found.calls:
            return text.strip()
        if all(call in self.calls for call in found.calls):
            self.notes.append("the same call stood in the text too")
            return found.text
        self.notes.append("another call in the text was not taken")
        return text.strip()

    def note_finish(self, finish: str, native: bool) -> None:
        """Note a reason that does not go with what came; nothing is decided by it."""
        said = finish.lower() in _CALLS
        if (native and finish and not said and not self.cut_off) or (said and not self.calls):
            self.notes.append(f"finish_reason said {finish}")


def _choice(response: Any) -> Mapping[str, Any]:
    """Return the first choice.

    Raises:
        NotAReply: there cannot be one.
    """
    if not isinstance(response, Mapping) or response.get("error"):
        raise NotAReply(_quoted(response))
    choices = response.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        first: Mapping[str, Any] = choices[0]
        if first.get("error") and not first.get("message"):
            raise NotAReply(_quoted(first))
        return first
    known = "choices" in response or "usage" in response
    if response.get("object") != "chat.completion" and not known:
        raise NotAReply(_quoted(response))
    return {}


def _message(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in ("message", "delta"):
        found = choice.get(key)
        if isinstance(found, Mapping):
            return found
    return {}


def _native(message: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the entries of ``tool_calls``, or the one call of an older protocol."""
    entries = message.get("tool_calls")
    if isinstance(entries, Mapping):
        return (entries,)
    if isinstance(entries, list) and entries:
        return tuple(entries)
    older = message.get("function_call")
    return ({"function": older, "id": "function_call"},) if isinstance(older, Mapping) else ()


def _function(entry: Any) -> Mapping[str, Any] | None:
    """Return the name and the arguments of an entry of ``tool_calls``."""
    if not isinstance(entry, Mapping):
        return None
    for key in ("function", "custom"):
        inner = entry.get(key)
        if isinstance(inner, Mapping):
            return inner if key == "function" else {**inner, "arguments": inner.get("input")}
    return entry if "name" in entry else None


def _reasoning(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return the field in which reasoning came, and the reasoning."""
    for field in _REASONING:
        said = text_of(message.get(field))
        if said:
            return (field if field in _SENT_BACK else ""), said
    return "", ""


def _refusal(message: Mapping[str, Any], content: Content, finish: str) -> str:
    said = text_of(message.get("refusal")) or content.refusal
    if not said and finish.lower() in _FILTERED:
        return f"the provider's filter ended the reply ({finish})"
    return _whole(said)


def _tokens(usage: Any) -> tuple[int, int, int]:
    """Return the tokens of the prompt, of the reply, and of the prompt's cached part."""
    if not isinstance(usage, Mapping):
        return 0, 0, 0
    details = usage.get("prompt_tokens_details")
    inner = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return (
        _count(usage.get("prompt_tokens", usage.get("input_tokens"))),
        _count(usage.get("completion_tokens", usage.get("output_tokens"))),
        _count(inner or usage.get("prompt_cache_hit_tokens") or usage.get("cached_tokens")),
    )


def _count(value: Any) -> int:
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return min(max(value, 0), _MOST_TOKENS)


def _whole(text: str) -> str:
    """Return text that can be encoded."""
    return text.strip() if text.isascii() else _HALF_CHARACTER.sub("\ufffd", text).strip()


def _quoted(value: Any) -> str:
    """Return what a server said, on one line and not too long."""
    if isinstance(value, Mapping):
        error = value.get("error") or value
        value = error.get("message") or error if isinstance(error, Mapping) else error
    text = value if isinstance(value, str) else _shown(value)
    clean = "".join(char if char.isprintable() else " " for char in text[: 2 * _LONGEST_QUOTE])
    said = " ".join(clean.split())[:_LONGEST_QUOTE]
    return said or "the answer is empty"


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except (RecursionError, ValueError):  # nested too deep, or a number without end
        return f"a {type(value).__name__} that cannot be shown"
