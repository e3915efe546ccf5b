"""Draws a timeline's rows: time, kind, and what happened, within the width of the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.cells import set_cell_size
from rich.console import Console, ConsoleOptions
from rich.text import Text

from agent.visible import cut, in_ascii, visible

WIDEST_KIND = 11
"""Columns of the kind, with a blank after it."""
_TIME = 9
_LEAST_BODY = 16
_MOST_WRAPPED = 12


@dataclass(frozen=True, slots=True)
class Line:
    """One line of what happened; text of any origin, shown literally."""

    text: str
    style: str = ""
    wrap: bool = False
    """Prose goes on in the next line; anything else is cut at the edge."""
    right: str = ""
    """Shown at the right edge, such as how long it took."""
    right_style: str = "dim"
    mark: str = ""
    """Shown before the text, in a style of its own."""
    mark_style: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that happened."""

    kind: str
    lines: tuple[Line, ...]
    t: float | None = None
    """Seconds since the run began; without it the time column stays empty."""
    style: str = ""
    """Of the kind."""
    gap: bool = False
    """Whether an empty line goes before it."""


def clock(seconds: float) -> str:
    """Return ``mm:ss``, with hours where there are any."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


@dataclass(frozen=True)
class Drawing:
    """Rows as something that rich prints."""

    rows: tuple[Row, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield the lines; a time that repeats is shown once."""
        shown, blank = "", True
        for row in self.rows:
            if row.gap and not blank:
                yield Text()
            blank = not any(line.text for line in row.lines)
            time = clock(row.t) if row.t is not None else ""
            yield from _draw(row, "" if time == shown else time, console, options)
            shown = time or shown


def _draw(row: Row, time: str, console: Console, options: ConsoleOptions) -> Iterator[Text]:
    ascii_only = options.ascii_only
    width = max(_LEAST_BODY, options.max_width - _TIME - WIDEST_KIND)
    name = in_ascii(visible(row.kind)) if ascii_only else visible(row.kind)
    name = cut(name.replace("\n", " "), WIDEST_KIND - 1, ascii_only=ascii_only)
    kind: Text | None = Text(set_cell_size(name, WIDEST_KIND), row.style)
    for line in row.lines:
        mark = Text(in_ascii(line.mark) if ascii_only else line.mark, line.mark_style)
        if mark:
            mark.append(" ")
        indent = mark.cell_len
        for body in _body(line, width - indent, console, ascii_only):
            start = Text.assemble(
                (f"{time:>7}".ljust(_TIME), "dim"), kind or " " * WIDEST_KIND, mark
            )
            time, kind, mark = "", None, Text(" " * indent)
            drawn = start.append_text(body)
            drawn.rstrip()
            yield drawn


def _body(line: Line, width: int, console: Console, ascii_only: bool) -> Iterable[Text]:
    text, right = visible(line.text), line.right
    if ascii_only:
        text, right = in_ascii(text), in_ascii(right)
    if line.wrap:
        return _wrapped(Text(text, line.style), width, console)
    room = width - len(right) - 2 if right else width
    if room < _LEAST_BODY // 2:
        text, right, room = f"{text}\n{right}", "", width
    first, *others = [cut(part, room, ascii_only=ascii_only) for part in text.split("\n")]
    head = Text(first, line.style)
    if right:
        head.pad_right(width - head.cell_len - len(right))
        head.append(right, line.right_style)
    return [head, *(Text(part, line.style) for part in others)]


def _wrapped(text: Text, width: int, console: Console) -> list[Text]:
    lines = list(text.wrap(console, width)) or [Text()]
    if len(lines) > _MOST_WRAPPED:
        more = Text(f"({len(lines) - _MOST_WRAPPED} more lines)", "dim")
        return [*lines[:_MOST_WRAPPED], more]
    return lines
