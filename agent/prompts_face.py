"""Asks a person about what a run wants to do, and takes only a deliberate answer.

Whoever answers sees the whole command with nothing hidden in it. What was typed before the question
is thrown away, and several lines at once are a paste and no answer.
"""

from __future__ import annotations

import os
import re
import select
import sys
import termios
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agent.events import AnyEvent, ApprovalAsked, CallQueued, DiagnosisRecorded
from agent.timeline_rows import one_line
from agent.values import Purpose
from agent.visible import in_ascii
from tools.base import Risk

YES_NO = ("yes", "no")
PASTE_S = 0.05
"""More input within so many seconds of a line belongs to a paste."""
MOST_TRIES = 20
"""After so many answers that say nothing the run is stopped."""
_LONGEST_ANSWER = 4096
_RISKS = {
    Risk.READ: "read: it only looks",
    Risk.CHANGE: "change",
    Risk.DESTROY: "destroy: it may lose data, or end what is not ours",
}
# Drawn as nothing, though Python counts them as printable: fillers, joiners, variation selectors.
_HIDDEN = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef"
)
_PART = re.compile(f"( {{8,}})|([{_HIDDEN}])|(.)", re.DOTALL)


class TerminalAsker:
    """Asks on a terminal; told the events too, it can say why something is asked."""

    def __init__(self, console: Console, stdin: TextIO | None = None) -> None:
        self._console = console
        self._stdin = stdin
        self._purposes: dict[str, Purpose] = {}
        self._diagnoses: dict[str, DiagnosisRecorded] = {}

    def on_event(self, event: AnyEvent) -> None:
        """Remember what calls are for."""
        match event:
            case CallQueued():
                self._purposes[event.call.id] = event.call.purpose
            case DiagnosisRecorded():
                self._diagnoses[event.diagnosis_id] = event

    def ask(self, asked: Iterable[ApprovalAsked]) -> dict[str, dict[str, str]]:
        """Ask one after the other; a stop ends the questions.

        Returns:
            By approval id: ``answer`` (``yes``, ``no``, ``stop`` or one of the choices), ``by`` and
            ``note``. A closed standard input is a stop.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        answers: dict[str, dict[str, str]] = {}
        for approval in asked:
            self._show(approval)
            answer, note = self._answer(approval)
            answers[approval.approval_id] = {"answer": answer, "by": "person", "note": note}
            if answer == "stop":
                break
        return answers

    def _show(self, approval: ApprovalAsked) -> None:
        console = self._console
        console.print()
        console.rule(self._text(f"approval {approval.approval_id}", "bold yellow"), style="yellow")
        console.print(self._exact(approval.title, "bold"))
        if approval.choices == YES_NO:
            command = self._exact(approval.command)
            console.print(Text.assemble(("$ ", "dim"), command), soft_wrap=True)
            if any(special for _, special in spelled(approval.command)):
                words = "Characters that would not show are spelled out."
                console.print(self._text(words, "red"))
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, style="dim")
        grid.add_column(overflow="fold")
        for label, text in self._facts(approval):
            grid.add_row(label, self._exact(text))
        console.print(grid)

    def _facts(self, approval: ApprovalAsked) -> Iterator[tuple[str, str]]:
        if approval.choices == YES_NO:
            yield "on", approval.target
            yield "risk", _RISKS[approval.risk]
            yield "touches", ", ".join(map(str, approval.touches)) or "nothing that it names"
        if approval.why:
            yield "why", approval.why
        yield from self._purpose(self._purposes.get(approval.call_id, Purpose()))
        if approval.undo:
            yield "undo", approval.undo
        if approval.reason:
            yield "asked as", approval.reason

    def _purpose(self, purpose: Purpose) -> Iterator[tuple[str, str]]:
        diagnosis = self._diagnoses.get(purpose.ref)
        if diagnosis is not None:
            yield "cause", f"{diagnosis.diagnosis_id}: {diagnosis.cause}"
            yield "seen in", ", ".join(diagnosis.evidence)
        elif purpose.ref:
            yield "for", f"{purpose.kind} {purpose.ref}"

    def _answer(self, approval: ApprovalAsked) -> tuple[str, str]:
        if approval.choices == YES_NO:
            options = "y yes, this once   n no (a reason may follow)   s stop the run"
        else:
            numbered = (f"{n} {one_line(word)}" for n, word in enumerate(approval.choices, start=1))
            options = "   ".join([*numbered, "s stop the run"])
        for _ in range(MOST_TRIES):
            self._console.print(self._text(options, "cyan"))
            line = self._line(f"{approval.approval_id}? ")
            if line is None:
                with suppress(OSError):  # the terminal may be gone
                    self._console.print()
                return "stop", "the input ended"
            found = understood(line, approval.choices)
            if found is not None:
                return found
            self._console.print(self._text("That is no answer.", "yellow"))
        return "stop", f"{MOST_TRIES} answers said nothing"

    def _line(self, prompt: str) -> str | None:
        """Return one line typed from now on: empty for a paste, ``None`` where the input ends."""
        descriptor = (self._stdin or sys.stdin).fileno()
        with suppress(termios.error):  # not a terminal: nothing can be typed ahead
            termios.tcflush(descriptor, termios.TCIFLUSH)
        self._console.print(self._text(prompt, "bold"), end="")
        try:
            data = os.read(descriptor, _LONGEST_ANSWER)
        except OSError:  # the terminal is gone
            return None
        except KeyboardInterrupt:
            self._console.print()  # what comes next begins on a line of its own
            raise
        if not data:
            return None
        more = bool(select.select([descriptor], [], [], PASTE_S)[0])
        if more or data.count(b"\n") > 1:
            return ""
        return data.decode(errors="replace")

    def _text(self, text: str, style: str = "") -> Text:
        ascii_only = self._console.options.ascii_only
        return Text(in_ascii(text) if ascii_only else text, style)

    def _exact(self, text: str, style: str = "") -> Text:
        """Return a text of any origin with nothing hidden in it."""
        shown = Text(style=style)
        for part, special in spelled(text):
            shown.append_text(self._text(part, "bold red reverse" if special else ""))
        return shown


def understood(line: str, choices: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the answer that a line is, and its note; ``None`` for none.

    A yes is nothing but ``y`` or ``yes``; after ``n`` or ``no`` comes the reason. After the number
    of a choice may come words of one's own, behind a comma or another such sign.
    """
    words = line.strip()
    if words.lower() in {"s", "stop"}:
        return "stop", ""
    if choices == YES_NO:
        if words.lower() in {"y", "yes"}:
            return "yes", ""
        refusal = re.fullmatch(r"(?i:no?)(?:[\s,:;]+(.*))?", words)
        return ("no", (refusal[1] or "").strip()) if refusal else None
    if words in choices:
        return words, ""
    chosen = re.fullmatch(r"(?a:(\d{1,3}))(?:\s*[,:;]+\s*(.*))?", words)
    if chosen and 1 <= int(chosen[1]) <= len(choices):
        return choices[int(chosen[1]) - 1], (chosen[2] or "").strip()
    return None


def spelled(text: str) -> Iterator[tuple[str, bool]]:
    """Yield a text in parts, each with whether it spells out what would not show.

    Control, invisible and reordering characters become escapes, a long run of blanks its length.
    """
    run = ""
    for match in _PART.finditer(text):
        blanks, hidden, character = match.groups()
        if not blanks and not hidden and character.isprintable():
            run += character
            continue
        if run:
            yield run, False
            run = ""
        yield f"<{len(blanks)} blanks>" if blanks else _escape(match[0]), True
    if run:
        yield run, False


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
