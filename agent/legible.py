"""Whether a call can be shown as it is: what is not seen by whoever approves must not be in it."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

_HIDDEN_KINDS = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_PLAIN = frozenset("\n\t")
# Drawn as nothing, though Unicode counts them as letters and marks: fillers, joiners, selectors.
_FILLERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)


def hidden_in(value: Any) -> str:
    r"""Return the first character of any text in a JSON value that would not show.

    Escape sequences, characters without width and those that reorder text are such; line breaks and
    tabs are not.

    Returns:
        The character as an escape, such as ``\u202e``; empty where all can be seen.
    """
    if isinstance(value, str):
        found = "" if value.isascii() and value.isprintable() else _first(value)
        return found.encode("unicode_escape", "surrogatepass").decode("ascii")
    if isinstance(value, dict):
        value = (*value, *value.values())
    if not isinstance(value, list | tuple):
        return ""
    return next(filter(None, map(hidden_in, value)), "")


def _first(text: str) -> str:
    return next(filter(_is_hidden, text), "")


def _is_hidden(character: str) -> bool:
    kind = unicodedata.category(character)
    return (kind in _HIDDEN_KINDS and character not in _PLAIN) or bool(_FILLERS.match(character))
