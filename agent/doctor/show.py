"""Shows a checkup to people: hosts, what they reach of each other, findings with what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions
from rich.text import Text

from agent.doctor.ask import Answer
from agent.doctor.between import Between, NetworkView
from agent.doctor.checkup import Checkup, title
from agent.doctor.finding import Finding, Level
from agent.doctor.fleet_rows import GAP, HEAD, row_of, widths
from agent.doctor.pair import Pair
from agent.doctor.words import lines_of, speed
from agent.goal_parts import LOCAL
from agent.name_ranges import fold
from agent.visible import cut, in_ascii, visible

BLOCKS = 4
"""Up to so many hosts are shown in a few lines each, more of them in one."""
LABEL = 10
MARKS: dict[Level, tuple[str, str]] = {
    "error": ("✗", "red"),
    "warning": ("!", "yellow"),
    "note": ("·", "dim"),
}
_BY = {"you": "", "administrator": " Needs root.", "bringup": " bringup can do it."}


@dataclass(frozen=True, slots=True)
class Shown:
    """A checkup as something that rich prints, in the width and encoding of its console."""

    checkup: Checkup

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield the lines; text from hosts is never markup."""
        page = Page(console, options)
        answers = self.checkup.answers
        if len(answers) > BLOCKS:
            yield from page.table(answers)
        else:
            for answer in answers:
                yield from page.block(answer)
        yield from page.between(self.checkup.between)
        yield from page.findings(self.checkup.findings, named=len(answers) > 1)
        yield page.text(summary(self.checkup), "bold")


@dataclass(frozen=True, slots=True)
class ShownPair:
    """What one host lacks that another has, as something that rich prints."""

    pair: Pair

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield the lines, what weighs most first."""
        page, pair = Page(console, options), self.pair
        if not pair.whole:
            for answer in (pair.a, pair.b):
                if answer.facts is None:
                    why = page.text(f"{answer.member.name}: {answer.trouble}")
                    yield from page.wrapped(page.text("  ✗ ", "red"), why)
            yield page.text("nothing is compared without the facts of both", "bold")
            return
        a, b = pair.a.member.name, pair.b.member.name
        for difference in pair.differences:
            mark, style = MARKS[difference.level]
            yield from page.wrapped(
                page.text(f"  {mark} ", style), page.text(f"{difference.part}: {difference.text}")
            )
        count = len(pair.differences)
        said = f"{b} lacks nothing that {a} has"
        if count:
            said = f"{count} differences" if count > 1 else "1 difference"
            said = f"{said}: what {a} has, and {b} has not"
        yield page.text(said, "bold")


def summary(checkup: Checkup) -> str:
    """Return the last line: how many hosts, and how many findings of each level."""
    answers = checkup.answers
    out = [it.member.name for it in answers if not it.reached]
    levels = [finding.level for _, finding in checkup.findings]
    counts = [
        f"{levels.count(level)} {level}{'s' if levels.count(level) > 1 else ''}"
        for level in MARKS
        if level in levels
    ]
    hosts = "1 host" if len(answers) == 1 else f"{len(answers)} hosts"
    missing = f", {len(out)} not reached" if out else ""
    return f"{hosts}{missing}: {', '.join(counts) or 'nothing found'}"


class Page:
    """Lines for one console."""

    def __init__(self, console: Console, options: ConsoleOptions) -> None:
        self._console, self._width = console, options.max_width
        self._ascii = options.ascii_only

    def text(self, words: str, style: str = "") -> Text:
        """Return text of any origin, safe to show."""
        words = visible(words).replace("\n", " ")
        return Text(in_ascii(words) if self._ascii else words, style)

    def block(self, answer: Answer) -> Iterator[Text]:
        """Yield one host in a few lines."""
        member = answer.member
        words = (
            [member.name]
            if member.address in (member.name, LOCAL)
            else [member.name, member.address]
        )
        words += [f"inside {member.host.container}"] if member.host.container else []
        words += [f"[{', '.join(member.roles)}]"] if member.roles else []
        head = self.text("  ".join(words), "bold")
        head.truncate(max(8, self._width - 10), overflow="ellipsis")
        head.append(f"  {answer.took_s:.1f} s", "dim")
        yield head
        if answer.facts is None:
            yield self.text("  no facts" if answer.reached else "  not reached", "red")
        else:
            for part, words_ in lines_of(answer.facts):
                label = Text(f"  {part:<{LABEL - 2}}", "dim")
                yield from self.wrapped(label, self.text(words_))
        yield Text()

    def table(self, answers: Sequence[Answer]) -> Iterator[Text]:
        """Yield a line for each host."""
        rows = [row_of(answer) for answer in answers]
        columns = widths([HEAD, *rows], self._width)
        yield self._row(HEAD, columns, "bold")
        for answer, row in zip(answers, rows, strict=True):
            yield self._row(row, columns, "" if answer.facts else "red")
        yield Text()

    def _row(self, cells: Sequence[str], columns: Sequence[int], style: str) -> Text:
        """Return one line; a reason in the second cell may run to its end."""
        line = Text()
        alone = not any(cells[2:])
        for number, (cell, width) in enumerate(zip(cells, columns, strict=True)):
            if not width:
                continue
            room = self._width - line.cell_len if alone and number else width
            shown = Text(cut(self.text(cell).plain, room, ascii_only=self._ascii), style)
            shown.pad_right(max(0, width - shown.cell_len))
            line.append_text(shown).append(" " * GAP)
            if alone and number:
                break
        line.rstrip()
        return line

    def between(self, between: Between) -> Iterator[Text]:
        """Yield what the hosts reach of each other, by network."""
        if not between.links and not between.not_tried:
            return
        yield self.text("Between the hosts (TCP to their ssh ports)", "bold")
        for view in between.networks:
            yield from self.wrapped("  ", self.text(network_words(view)), indent=4)
        if not between.networks and between.links:
            yield self.text("  they have no network in common")
        for name, why in between.not_tried:
            yield from self.wrapped("  ", self.text(f"{name} tried nothing: {why}"), indent=4)
        yield Text()

    def findings(
        self, rows: Iterable[tuple[tuple[str, ...], Finding]], *, named: bool
    ) -> Iterator[Text]:
        """Yield findings, worst first, each with what to do; ``named`` tells whose they are."""
        last = None
        for hosts, finding in rows:
            if finding.level != last:
                yield from [Text()] if last else []
                yield self.text(f"{finding.level.capitalize()}s", "bold")
                last = finding.level
            mark, style = MARKS[finding.level]
            about = title(hosts if named else (), finding)
            line = self.text(f"{about}: " if about else "", "bold")
            line.append_text(self.text(finding.text))
            yield from self.wrapped(self.text(f"  {mark} ", style), line)
            if finding.do:
                do = self.text(f"{finding.do}{_BY[finding.by]}", "dim")
                yield from self.wrapped(self.text("    → "), do)
        yield from [Text()] if last else []

    def wrapped(self, start: Text | str, body: Text, indent: int | None = None) -> Iterator[Text]:
        """Yield a text over as many lines as it needs, the later ones indented."""
        first = Text(start) if isinstance(start, str) else start
        inner = first.cell_len if indent is None else indent
        for line in body.wrap(self._console, max(16, self._width - max(inner, first.cell_len))):
            drawn = first.append_text(line)
            drawn.rstrip()
            yield drawn
            first = Text(" " * inner)


def network_words(view: NetworkView) -> str:
    """Say of a network who reaches whom by it, and how fast."""
    bad = len(view.links) - len(view.reached)
    how = (
        "all reach each other" if not bad else f"{len(view.reached)} of {len(view.links)} ways work"
    )
    if not view.reached:
        how = "no way works"
    ms = f", {view.ms:.1f} ms" if view.ms is not None else ""
    rate = f"{speed(view.speed_mbit)}, " if view.speed_mbit else ""
    nics = ", ".join(view.nics[:3])
    return f"{view.network} ({rate}{nics}): {fold(view.hosts)}: {how}{ms}"
