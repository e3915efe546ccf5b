"""What a model thought, parted from what it said, where a server left both in one text."""

from __future__ import annotations

import re
from typing import Literal

_HINTS = ("<", "[THINK]", "◁", "analysis")
_OPENER = re.compile(
    r"^[ \t]*(?:<(think|thinking|thought|reasoning|seed:think)>|(\[THINK\])|(◁think▷))",
    re.MULTILINE,
)
_LONE_CLOSER = re.compile(
    r"(?<![`'\"])(?:</(?:think|thinking|thought|reasoning|seed:think)>|\[/THINK\]|◁/think▷)"
)
_CHANNEL = re.compile(
    r"(?:<\|start\|>\s{0,3}assistant\s{0,3})?"
    r"<\|channel\|>\s{0,3}(analysis|final|commentary)([^<]{0,120})"
    r"(?:<\|constrain\|>[^<]{0,20})?<\|message\|>"
)
_CHANNEL_END = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
_LIVE_OPENER, _LIVE_CLOSER = "<think>", "</think>"
_BARE_START = "analysis"
_BARE_NEXT = re.compile(r"assistant(?=final|commentary)")


def part(text: str) -> tuple[str, str]:
    """Return what is for people (calls in it included) and what was thought.

    Known are ``<think>`` and its like (also without the opening tag, which many chat templates put
    into the prompt, and without the closing one), ``[THINK]``, and channels of gpt-oss (also with
    their special tokens left out).
    """
    if not any(hint in text for hint in _HINTS):
        return text, ""
    if "<|channel|>" in text:
        return _channels(text)
    if text.startswith(_BARE_START) and (found := _BARE_NEXT.search(text)):
        said = text[found.end() :].removeprefix("final")
        return said, text[len(_BARE_START) : found.start()].strip()
    return _tags(text)


def _tags(text: str) -> tuple[str, str]:
    said: list[str] = []
    thought: list[str] = []
    at = 0
    opener = _OPENER.search(text)
    closer = _LONE_CLOSER.search(text)
    if closer and (opener is None or closer.start() < opener.start()):
        thought.append(text[: closer.start()])
        at = closer.end()
        opener = _OPENER.search(text, at)
    while opener is not None:
        said.append(text[at : opener.start()])
        end = _closing(opener)
        found = text.find(end, opener.end())
        if found < 0:
            thought.append(text[opener.end() :])
            at = len(text)
            break
        thought.append(text[opener.end() : found])
        at = found + len(end)
        opener = _OPENER.search(text, at)
    said.append(text[at:])
    return "".join(said), "\n".join(piece.strip() for piece in thought).strip()


def _closing(opener: re.Match[str]) -> str:
    if opener.group(1):
        return f"</{opener.group(1)}>"
    return "[/THINK]" if opener.group(2) else "◁/think▷"


def _channels(text: str) -> tuple[str, str]:
    """Analysis is thought; a message to a function stays as it is, since it is a call."""
    said: list[str] = []
    thought: list[str] = []
    at = 0
    while (found := _CHANNEL.search(text, at)) is not None:
        said.append(text[at : found.start()])
        end = _CHANNEL_END.search(text, found.end())
        stop = end.start() if end else len(text)
        body = text[found.end() : stop]
        if "to=" in found.group(2):
            said.append(text[found.start() : stop])
        elif found.group(1) == "analysis":
            thought.append(body.strip())
        else:
            said.append(body)
        at = end.end() if end and end.group() in ("<|end|>", "<|return|>", "<|call|>") else stop
    said.append(text[at:])
    return "".join(said), "\n".join(thought).strip()


class Visible:
    """Hides a thought at the beginning of a text that comes in pieces; for showing it live."""

    def __init__(self) -> None:
        self._held = ""
        self._state: Literal["before", "thinking", "said"] = "before"

    def feed(self, piece: str) -> str:
        """Return what may be shown now; the beginning of a tag is held back."""
        if self._state == "said":
            return piece
        text = self._held + piece
        self._held = ""
        if self._state == "before":
            begun = text.lstrip()
            if not begun.startswith(_LIVE_OPENER):
                return self._not_yet(text, begun)
            self._state, text = "thinking", begun[len(_LIVE_OPENER) :]
        _, closer, after = text.partition(_LIVE_CLOSER)
        if closer:
            self._state = "said"
            return after.lstrip()
        self._held = text[1 - len(_LIVE_CLOSER) :]
        return ""

    def _not_yet(self, text: str, begun: str) -> str:
        if _LIVE_OPENER.startswith(begun):
            self._held = text
            return ""
        self._state = "said"
        return text
