"""Makes text from hosts safe to show: it cannot move the cursor, hide, colour or reorder text."""

from __future__ import annotations

import re
import unicodedata

from rich.cells import cell_len, set_cell_size

# Colours, cursor moves, window titles and links (OSC 8), and two-character escapes.
_ESCAPES = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[PX^_].*?(?:\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_STARTERS = ("\x1b", "\x9b", "\x9d")
"""One of these begins every escape: most text has none."""
_INVISIBLE = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
_IN_ASCII = str.maketrans(
    {"«": "<", "»": ">", "…": "...", "·": "-", "✓": "+", "✗": "x", "→": "->", "—": "-", "─": "-"}
)


def visible(text: str) -> str:
    """Return text without escape sequences, with other invisible characters spelled out.

    Line breaks stay. Of a line that was written over, as progress bars do, the last state is kept;
    a tab becomes spaces.
    """
    if any(map(text.__contains__, _STARTERS)):
        text = _ESCAPES.sub("", text)
    text = text.replace("\r\n", "\n")
    if text.replace("\n", "").isprintable():
        return text
    return "\n".join(map(_visible_line, text.split("\n")))


def _visible_line(line: str) -> str:
    if line.isprintable():
        return line
    last = line.rstrip("\r").rpartition("\r")[2].expandtabs(4)
    return last if last.isprintable() else "".join(map(_spelled, last))


def in_ascii(text: str) -> str:
    """Return text for a terminal that knows ASCII only; nothing is dropped."""
    return text.translate(_IN_ASCII).encode("ascii", "backslashreplace").decode()


def cut(text: str, width: int, *, ascii_only: bool = False) -> str:
    """Return text of at most ``width`` columns, with an ellipsis where something was cut off."""
    if cell_len(text) <= width:
        return text
    ellipsis = "..." if ascii_only else "…"
    return set_cell_size(text, max(0, width - len(ellipsis))).rstrip() + ellipsis


def _spelled(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
