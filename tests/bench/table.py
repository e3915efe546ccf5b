"""The one table: what was measured, what stands beside it, and what it should be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

HEAD = ("what", "ours", "beside", "theirs", "ours ÷ theirs", "target", "met")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; what a cell does not apply to stays empty."""

    what: str
    ours: str
    beside: str = ""
    theirs: str = ""
    ratio: float | None = None
    judged: float | None = None
    """The figure that the target is about."""
    at_most: float | None = None
    unit: str = ""
    """Of the target."""

    def cells(self) -> tuple[str, ...]:
        """Return the cells as text."""
        ratio = "" if self.ratio is None else short(self.ratio)
        if self.judged is None or self.at_most is None:
            return (self.what, self.ours, self.beside, self.theirs, ratio, "", "")
        target = f"≤ {self.at_most:g} {self.unit}".strip()
        met = "yes" if self.judged <= self.at_most else "**no**"
        return (self.what, self.ours, self.beside, self.theirs, ratio, target, met)


def short(value: float, unit: str = "") -> str:
    """Return a number with three digits that matter, thousands set apart, and its unit."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}".strip()


def markdown(rows: Iterable[Row]) -> str:
    """Return the table in Markdown, its columns in line."""
    grid = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in grid) for column in range(len(HEAD))]
    lines = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in grid]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines) + "\n"
