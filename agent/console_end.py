"""How a run ended, for people: the outcome, what is known of it, and what to type next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from agent import events as e
from agent.console_rows import CHECK_MARKS, Story
from agent.timeline_rows import one_line
from agent.values import Outcome
from agent.visible import cut, in_ascii, visible

_STYLES = {Outcome.READY: "green", Outcome.NOT_REACHED: "red", Outcome.UNREACHABLE: "red"}
_WIDEST = 100
_LONGEST = 400
_REMEDY = 2000
"""How much is shown of why a host is not reached: the last words say what to do."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One labelled thing that is known at the end."""

    label: str
    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class End:
    """The end of a run."""

    title: str
    style: str
    facts: tuple[Fact, ...]
    command: str = ""
    """A command to try, to be copied as it stands."""


def end_of(story: Story) -> End:
    """Say how a run ended, also where it only waits, or broke off without an end."""
    ended = story.ended
    run_id = story.header.run_id if story.header else "RUN"
    if ended is None and story.waiting:
        return End("PARKED", "yellow", tuple(_parked(story.waiting, run_id)))
    if ended is None and story.unanswered is not None:
        said = Fact("", one_line(story.unanswered.text), "bold")
        waits = Fact("", "Nothing is lost; once the model answers, the run can go on.")
        go_on = Fact("go on", f"bringup resume {run_id}")
        return End("NO MODEL", "red", (said, waits, go_on))
    if ended is None:
        go_on = Fact("go on", f"bringup resume {run_id}")
        return End("BROKEN OFF", "yellow", (Fact("", "The run has no end on record."), go_on))
    report = ended.report
    if ended.outcome is Outcome.READY:
        facts = (*_ready(report), *_checks(report), *_fixes(report), *_images(report, run_id))
    else:
        found = (
            *_checks(report),
            *_fixes(report),
            *_images(report, run_id),
            *_found(report),
        )
        facts = (*_not_ready(ended, story), *found)
    title = ended.outcome.value.replace("_", " ").upper()
    style = _STYLES.get(ended.outcome, "yellow")
    facts = (*facts, *_running(report, run_id))
    return End(title, style, facts, visible(str(report.get("try", ""))))


def draw(end: End, footer: Sequence[str], console: Console) -> None:
    """Print the end; what is to be copied stands on lines of its own, whole."""
    ascii_only = console.options.ascii_only

    def text(words: str, style: str = "") -> Text:
        words = visible(words)
        return Text(in_ascii(words) if ascii_only else words, style)

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    lead = [text(fact.text, fact.style) for fact in end.facts if not fact.label]
    for fact in end.facts:
        if fact.label:
            label_style = fact.style or "dim"
            grid.add_row(text(fact.label, label_style), text(fact.text))
    gap = [Text()] if lead and grid.row_count else []
    body = Group(*lead, *gap, *([grid] if grid.row_count else []))
    title = Text(f" {end.title} ", f"bold {end.style}")
    width = min(console.width, _WIDEST)
    console.print()
    console.print(Panel(body, title=title, title_align="left", border_style=end.style, width=width))
    if end.command:
        console.print(text(end.command), soft_wrap=True)
    for line in footer:
        console.print(text(line, "dim"), soft_wrap=True)


def plain_lines(end: End, footer: Iterable[str]) -> list[str]:
    """Return the end as lines of plain text."""
    facts = [f"{fact.label}: {fact.text}" if fact.label else fact.text for fact in end.facts]
    command = [end.command] if end.command else []
    return [end.title, *map(one_line, facts), *command, *map(visible, footer)]


def _parked(waiting: Iterable[e.ApprovalAsked], run_id: str) -> Iterator[Fact]:
    yield Fact("", "It waits for an answer; nothing is lost.", "bold")
    for asked in waiting:
        yield Fact(asked.approval_id, one_line(asked.title))
        yield Fact("command", one_line(asked.command))
        yield Fact("touches", ", ".join(one_line(str(item)) for item in asked.touches))
        yield Fact("why", one_line(asked.why))
        yield Fact("asked as", one_line(asked.reason))
    yield Fact("answer", f"bringup approve {run_id}")


def _ready(report: dict[str, Any]) -> Iterator[Fact]:
    where = str(report.get("address") or "All checks hold.")
    on = f" on {report['only_on']}" if report.get("only_on") else ""
    yield Fact("", one_line(f"{where}{on}"), "bold")
    ready, load = ("ready after", "seconds_to_ready"), ("loaded in", "seconds_to_load")
    first, rate = ("first token after", "ttft_s"), ("tokens/s", "tokens_per_s")
    yield from _speeds(report, ready, load)
    yield from _speeds(report, first, rate)


def _speeds(report: dict[str, Any], *parts: tuple[str, str]) -> Iterator[Fact]:
    """Yield one line of the numbers that are known."""
    words = []
    for label, key in parts:
        value = report.get(key)
        if isinstance(value, int | float):
            per_s = key == "tokens_per_s"
            words.append(f"{value:.1f} {label}" if per_s else f"{label} {span(value)}")
    if words:
        yield Fact("", " · ".join(words))


def _not_ready(ended: e.RunEnded, story: Story) -> Iterator[Fact]:
    report = ended.report
    cause = str(report.get("cause") or "")
    longest = _REMEDY if ended.outcome is Outcome.UNREACHABLE else _LONGEST
    yield Fact("", cut(one_line(cause or ended.summary), longest), "bold")
    if story.limit is not None and ended.outcome is Outcome.LIMIT:
        yield Fact("limit", one_line(story.limit.text))
    if report.get("evidence"):
        yield Fact("seen in", ", ".join(map(str, report["evidence"])))
    if report.get("advice"):
        yield Fact("advice", one_line(str(report["advice"])))
    for asked in story.waiting:
        yield Fact("not answered", f"{asked.approval_id}: {one_line(asked.title)}")


def _checks(report: dict[str, Any]) -> Iterator[Fact]:
    for check in report.get("checks") or ():
        mark, style = CHECK_MARKS[check.get("passed")]
        yield Fact(
            f"{mark} {check.get('name')}",
            cut(one_line(str(check.get("text", ""))), _LONGEST),
            style,
        )


def _fixes(report: dict[str, Any]) -> Iterator[Fact]:
    for fix in report.get("fixes") or ():
        words = f"{fix.get('verdict')}: {fix.get('cause')}; {fix.get('plan')}"
        yield Fact(f"fix {fix.get('fix')}", cut(one_line(words), _LONGEST))


def _images(report: dict[str, Any], run_id: str) -> Iterator[Fact]:
    """Yield what was given up, what pip's conflicts come to, and what of others was stopped."""
    for item in report.get("rejected") or ():
        words = f"{item.get('candidate')}: {item.get('reason')}"
        yield Fact("given up", cut(one_line(words), _LONGEST))
    for item in report.get("conflicts") or ():
        yield Fact("conflict", cut(one_line(str(item.get("text", ""))), _LONGEST))
    for item in report.get("stopped") or ():
        words = f"{item.get('service')} (bringup undo {run_id}, or {item.get('restart')})"
        yield Fact("stopped", one_line(words))


def _found(report: dict[str, Any]) -> Iterator[Fact]:
    """Yield what a run had found when it was cut short."""
    for item in report.get("diagnoses") or ():
        words = f"{item.get('cause')} (seen in {', '.join(item.get('evidence') or ())})"
        yield Fact(f"cause {item.get('diagnosis')}", cut(one_line(words), _LONGEST))
    for item in report.get("failing") or ():
        yield Fact(
            f"✗ {item.get('name')}", cut(one_line(str(item.get("text", ""))), _LONGEST), "red"
        )
    for item in report.get("changes") or ():
        words = f"{item.get('tool')}: {item.get('text') or item.get('status')}"
        yield Fact("changed", cut(one_line(words), _LONGEST))


def _running(report: dict[str, Any], run_id: str) -> Iterator[Fact]:
    running = [str(job) for job in report.get("running") or ()]
    if running:
        yield Fact("still runs", f"{', '.join(running)} (bringup stop {run_id} ends it)")
    left = [one_line(str(name)) for name in report.get("left") or ()]
    if left:
        yield Fact("left there", f"{', '.join(left)}, ended (bringup undo {run_id} removes it)")


def span(seconds: float) -> str:
    """Return a duration in words: ``0.21 s``, ``48.1 s``, ``2 min 5 s``."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
