"""The chunks of a streamed reply, put together into the response that was not streamed; pure.

Servers number calls wrongly (always 0, or not at all), give pieces no id or each another one, and
repeat names. What a piece belongs to is told by all three together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent.brains.call_pieces import CallPieces
from agent.brains.content import read_content
from agent.brains.thinking import Visible

_REASONING = ("reasoning_content", "reasoning", "thinking")
_HEAD = ("id", "created", "model", "system_fingerprint", "service_tier")
_PLAIN = frozenset({"content", "role"})


def assemble(chunks: Iterable[Any]) -> dict[str, Any]:
    """Return the response that a stream's chunks make up.

    Args:
        chunks: The decoded chunks; what is no object is passed over.

    Returns:
        ``choices[0].message``, ``finish_reason`` (``None`` where the stream broke off), ``usage``
        where it was told, and ``error`` where a chunk said that there was one.
    """
    assembler = Assembler()
    for chunk in chunks:
        assembler.add(chunk)
    return assembler.result()


class Assembler:
    """Takes chunks one by one."""

    def __init__(self) -> None:
        self.begun = False
        """Whether there was any choice."""
        self.ended = False
        """Whether a choice has said why it ended."""
        self._visible = Visible()
        self._fresh: list[str] = []
        self._head: dict[str, Any] = {}
        self._missing: tuple[str, ...] = _HEAD
        """What no chunk has told of the head yet."""
        self._index: Any = None
        self._text: list[str] = []
        self._length = 0
        self._has_text = False
        self._thought: dict[str, list[str]] = {}
        self._refusal: list[str] = []
        self._calls: list[CallPieces] = []
        self._at: dict[int, CallPieces] = {}
        """The last call of each number."""
        self._by_id: dict[str, CallPieces] = {}
        self._older: CallPieces | None = None
        self._finish: Any = None
        self._usage: Any = None
        self._error: Any = None

    def add(self, chunk: Any) -> None:
        """Take the next chunk."""
        if not isinstance(chunk, dict) or (self.begun and self._add_token(chunk)):
            return
        for key in self._missing:
            if chunk.get(key):
                self._head[key] = chunk[key]
                self._missing = tuple(name for name in _HEAD if name not in self._head)
        if chunk.get("error") or chunk.get("object") == "error":
            self._error = chunk.get("error") or dict(chunk)
        if isinstance(chunk.get("usage"), dict):
            self._usage = chunk["usage"]
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                self.ended = self.ended or bool(choice.get("finish_reason"))
                self._add_choice(choice)

    def new_text(self) -> str:
        """Return what has come for people to read since this was asked before."""
        fresh = "".join(self._fresh)
        self._fresh.clear()
        return self._visible.feed(fresh) if fresh else ""

    def _add_token(self, chunk: dict[str, Any]) -> bool:
        """Take a chunk that brings a piece of text and nothing else, as most of a stream do."""
        choices = chunk.get("choices")
        if type(choices) is not list or len(choices) != 1 or chunk.get("usage"):
            return False
        choice = choices[0]
        delta = choice.get("delta") if type(choice) is dict else None
        if type(delta) is not dict or len(delta) != 1 or type(delta.get("content")) is not str:
            return False
        if choice.get("finish_reason") or choice.get("message") or chunk.get("error"):
            return False
        if (choice.get("index") or 0) == self._index:
            self._add_content(delta["content"])
            return True
        return False

    def _add_choice(self, choice: dict[str, Any]) -> None:
        index = choice.get("index") or 0
        if not self.begun:
            self._index, self.begun = index, True
        elif index != self._index:
            return
        if choice.get("finish_reason") is not None:
            self._finish = choice["finish_reason"]
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(delta, dict) and delta:
            self._add_delta(delta)
        elif isinstance(message, dict):
            self._add_message(message)

    def _add_delta(self, delta: dict[str, Any]) -> None:
        content = delta.get("content")
        if content is not None:
            self._add_content(content)
        if not delta.keys() <= _PLAIN:  # most tokens bring nothing else
            self._add_rest(delta)

    def _add_rest(self, delta: dict[str, Any]) -> None:
        for field in _REASONING:
            if isinstance(delta.get(field), str):
                self._thought.setdefault(field, []).append(delta[field])
        if isinstance(delta.get("refusal"), str):
            self._refusal.append(delta["refusal"])
        pieces = delta.get("tool_calls")
        for piece in pieces if isinstance(pieces, list) else (pieces,):
            if isinstance(piece, dict):
                self._add_piece(piece)
        if isinstance(delta.get("function_call"), dict):
            self._add_older(delta["function_call"])

    def _add_content(self, content: Any) -> None:
        self._has_text = True
        if not isinstance(content, str):
            found = read_content(content)
            if found.reasoning:
                self._thought.setdefault(_REASONING[0], []).append(found.reasoning)
            for call in found.calls:
                self._add_piece(call)
            content = found.text
        if content:
            self._text.append(content)
            self._length += len(content)
            self._fresh.append(content)

    def _add_message(self, message: dict[str, Any]) -> None:
        """Take a whole message, which may hold what pieces brought before, once more."""
        message = dict(message)
        content = message.get("content")
        if isinstance(content, str) and 0 < self._length <= len(content):
            before = "".join(self._text)
            message["content"] = content.removeprefix(before)
        for field in _REASONING:
            if field in self._thought and message.get(field) == "".join(self._thought[field]):
                del message[field]
        if self._is_all(message.get("tool_calls")):
            self._calls, self._at, self._by_id = [], {}, {}
        self._add_delta(message)

    def _is_all(self, entries: Any) -> bool:
        """Whether the calls of a whole message hold those that came before."""
        if not isinstance(entries, list):
            return False
        functions = [entry.get("function") for entry in entries if isinstance(entry, dict)]
        names = [one.get("name") for one in functions if isinstance(one, dict)]
        return names[: len(self._calls)] == [call.name for call in self._calls]

    def _add_piece(self, piece: dict[str, Any]) -> None:
        inner = piece.get("function")
        function = inner if isinstance(inner, dict) else piece
        index, name = _number(piece.get("index")), _string(function.get("name"))
        given_id, arguments = _string(piece.get("id")), function.get("arguments")
        call = self._call_of(index, given_id, name)
        if call is None or _begins(call, index, given_id, name, arguments):
            call = CallPieces(index, name, given_id)
            self._calls.append(call)
        if index is not None:
            self._at[index] = call
        call.name = call.name or name
        call.id = call.id or given_id
        self._by_id[call.id] = call
        call.add(arguments)

    def _add_older(self, piece: dict[str, Any]) -> None:
        self._older = self._older or CallPieces(None, "", "")
        self._older.name = self._older.name or _string(piece.get("name"))
        self._older.add(piece.get("arguments"))

    def _call_of(self, index: int | None, given_id: str, name: str) -> CallPieces | None:
        """Return the call that a piece may go on with."""
        if index in self._at:
            return self._at[index]
        if given_id in self._by_id and (index is None or not name) and given_id:
            return self._by_id[given_id]
        is_first = not self._calls or (index is not None and (name or given_id))
        return None if is_first else self._calls[-1]

    def result(self) -> dict[str, Any]:
        """Return what came so far as one response."""
        text = "".join(self._text)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": text if self._has_text else None,
        }
        message |= {field: "".join(parts) for field, parts in self._thought.items()}
        if self._refusal:
            message["refusal"] = "".join(self._refusal)
        if self._calls:
            message["tool_calls"] = [call.as_entry() for call in _in_order(self._calls)]
        if self._older is not None:
            older = {"name": self._older.name, "arguments": self._older.arguments}
            message["function_call"] = older
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        response: dict[str, Any] = {**self._head, "object": "chat.completion"}
        response["choices"] = [choice] if self.begun else []
        if self._usage is not None:
            response["usage"] = self._usage
        return {"error": self._error, **response} if self._error else response


def _begins(call: CallPieces, index: int | None, given_id: str, name: str, arguments: Any) -> bool:
    """Whether a piece begins another call instead of going on with this one."""
    other_id = bool(given_id and call.id and given_id != call.id)
    if not name or not call.name:
        return bool(name and other_id and call.parts)
    if name != call.name or (other_id and index is None):
        return True
    if _opens(arguments) and call.is_whole:
        return True
    if other_id:
        return call.is_whole or not call.parts
    same_place = given_id or index is not None
    return not same_place and (call.is_whole or not call.parts)


def _opens(arguments: Any) -> bool:
    """Whether arguments begin here."""
    if isinstance(arguments, str):
        return arguments.lstrip().startswith("{")
    return arguments is not None


def _in_order(calls: list[CallPieces]) -> list[CallPieces]:
    """Return calls by their number where all have one, else as they came."""
    if any(call.index is None for call in calls):
        return calls
    return sorted(calls, key=lambda call: call.index or 0)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) < 6:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
