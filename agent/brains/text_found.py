"""What a reader of calls in text is, and what it finds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NAME = r"[A-Za-z_][\w.:/-]{0,99}"
"""A tool's name as models write it, as a regular expression."""
PREFIX = r"(?:[|\uff5c]DSML[|\uff5c]|[a-z]{1,20}:)?"
"""What stands before a tag's own name, as in ``<minimax:tool_call>``."""

MOST = 128
"""Calls of one reply, or arguments of one call, that are read."""


@dataclass(frozen=True, slots=True)
class Found:
    """What stood at a marker."""

    calls: tuple[tuple[str, Any], ...]
    """Names as they were written, each with its arguments: an object, or text to be read."""
    end: int
    closed: bool = True
    """Whether the closing marker is there too."""
    certain: bool = True
    """Whether it is whole even if the reply was cut right here."""


Reader = Callable[[str, "re.Match[str]"], Found | None]
"""Takes the text and the match of a marker in it; ``None``: no call stands there."""


def end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a pattern that begins at ``at`` ends; ``at`` itself if it does not match."""
    match = pattern.match(text, at)
    return match.end() if match else at
