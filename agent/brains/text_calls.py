"""Tool calls that a server left in a reply's text, found and taken out; pure.

A call counts where its name is one of the tools that were offered. A marker that a model only
quotes (in backticks, quotes, a quoted line or a longer code block) is text: a log that holds a call
is not a wish.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from agent.brains.names import Toolbox
from agent.brains.said import SaidCall, said_call
from agent.brains.text_formats import read_alone
from agent.brains.text_found import MOST, Found
from agent.brains.text_markers import FORMATS, LEFT_OVER, Format

LONGEST = 500_000
"""Characters in which calls are looked for; a longer text is left as it is."""

_MOST_TRIES = 60
_WITH_WORDS = re.compile("|".join(form.marker.pattern for form in FORMATS), re.MULTILINE)
_MARKERS = re.compile(
    "|".join(form.marker.pattern for form in FORMATS if not form.word), re.MULTILINE
)
_ALONE = re.compile(r"\s*(?:[{\[]|[A-Za-z_][\w.]{0,99}\()")
_JSON = re.compile(r"\s*\[?\s*\{")
_JSON_CALL = re.compile(
    r"^[ \t]{0,9}\{\s{0,9}\"(?:name|tool|tool_name)\"\s{0,3}:\s{0,3}\"[^\"\n]{1,100}\"\s{0,3},"
    r"\s{0,9}\"(?:arguments|parameters|args|input)\"",
    re.MULTILINE,
)
_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class TextCalls:
    """What a text holds."""

    calls: tuple[SaidCall, ...] = ()
    text: str = ""
    """The text without them."""
    form: str = ""
    """The format in which they were written."""
    attempted: str = ""
    """Format of a call that could not be read, or that is to a tool that was not offered."""
    notes: tuple[str, ...] = ()


def find_calls(
    text: str, toolbox: Toolbox, *, cut_off: bool = False, thought: bool = False
) -> TextCalls:
    """Return the calls in a text and the text without them.

    The format of the first call found is the reply's format; what looks like a call in another one
    stays text.

    Args:
        text: What the model said.
        toolbox: The tools that were offered.
        cut_off: Whether the reply ended at its length limit: what may be half is no call then.
        thought: Whether the model only thought it: calls without their closing marker, and in
            blocks such as are written for examples, are none then.
    """
    if not text or len(text) > LONGEST:
        return TextCalls(text=text)
    search = _Search(text, toolbox, cut_off, thought)
    if not search.alone():
        search.go()
    return search.result()


@dataclass(slots=True)
class _Search:
    """The state of going through a text."""

    text: str
    toolbox: Toolbox
    cut_off: bool
    thought: bool
    calls: list[SaidCall] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    at: int = 0
    """Where the text begins that is not looked through."""
    form: str = ""
    attempted: str = ""

    def alone(self) -> bool:
        """Take a text that is nothing but calls."""
        if not _ALONE.match(self.text):
            return False
        found = read_alone(self.text)
        form = "json" if _JSON.match(self.text) else "pythonic"
        if found is None or not self.accept(found, form):
            return False
        self.at = len(self.text)
        return True

    def go(self) -> None:
        """Take calls out from the first marker to the last."""
        tries, at = 0, 0
        worded = any(form.word in self.text for form in FORMATS if form.word)
        markers = _WITH_WORDS if worded else _MARKERS
        while tries < _MOST_TRIES and len(self.calls) < MOST:
            marker = markers.search(self.text, at)
            if marker is None:
                break
            form = next(form for form in FORMATS if form.stands_at(self.text, marker))
            start = form.start(self.text, marker.start(), self.at)
            at = marker.end()
            if not self.is_quoted(start) and self.take(form, start, marker.end()):
                at = self.at
            else:
                tries += 1

    def take(self, form: Format, start: int, end: int) -> bool:
        """Take the calls whose marker stands from ``start`` to ``end``; ``False``: it is text."""
        if self.form not in ("", form.name):
            return False
        found = form.read(self.text, start)
        if found is None or not self.accept(found, form.name):
            if not self.attempted and form.attempts(self.text, start, end):
                self.attempted = form.name
            return False
        self.kept.append(self.text[self.at : start])
        self.at = found.end
        return True

    def accept(self, found: Found, form: str) -> bool:
        """Take calls if all of them count."""
        if self.thought and (form == "fenced" or not found.closed):
            return False
        if self.cut_off and not found.certain:
            return False
        if not all(self.toolbox.known(name) for name, _ in found.calls):
            return False
        read = [said_call(name, raw, self.toolbox, self.cut_off) for name, raw in found.calls]
        if form == "fenced" and any(
            call.problem or self.toolbox.lacks(call.name, call.args) for call, _ in read
        ):
            return False
        self.calls += [call for call, _ in read]
        self.notes += [note for _, notes in read for note in notes]
        self.form = form
        return True

    def is_quoted(self, start: int) -> bool:
        """Whether a marker is only spoken of."""
        line = self.text.rfind("\n", 0, start) + 1
        if start > line and self.text[start - 1] in "`'\"\u201c\u2018":
            return True
        if self.text[line : line + 4].lstrip().startswith("> "):
            return True
        if self.text.count("```", self.at, start) % 2 == 0:
            return False
        block = self.text.find("\n", self.text.rfind("```", self.at, start))
        return bool(self.text[block:start].strip())

    def result(self) -> TextCalls:
        """Return what was found, in the form for people."""
        text = "".join((*self.kept, self.text[self.at :]))
        if self.calls:
            text = _LINES.sub("\n\n", LEFT_OVER.sub("", text))
        elif not self.attempted and _JSON_CALL.search(text):
            self.attempted = "json"
        return TextCalls(
            tuple(self.calls), text.strip(), self.form, self.attempted, tuple(self.notes)
        )
