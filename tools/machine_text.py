"""How the raw texts of a machine's facts come, and words that their parsers share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools.command import Ending, Result
from tools.errors import BadReply, ToolFailed
from tools.machine_parts import Problem, Trouble

_PART = r" ([a-z_]+)=(?:\x02\n([^\x03]*)\x03?|([^\n\x02]*))"
"""What follows the marker: a key and its text, or a key and its value. No text is read twice."""
_ENDED = re.compile(r"\n?ended (\d{1,9})\s*\Z")

MISSING, DENIED = 127, 126
OUT_OF_TIME = (124, 137, 143)
"""Exit codes of what was ended because its time was over: by ``timeout``, or by a signal."""


@dataclass(frozen=True, slots=True)
class Part:
    """The raw text of a part, and how its gathering ended."""

    text: str = ""
    code: int | None = MISSING
    """Exit code; ``None`` where the answer broke off before or within it."""

    @property
    def lines(self) -> list[str]:
        """Its lines, without the ends that some shells add."""
        return [line.rstrip("\r") for line in self.text.split("\n") if line.strip()]

    def rows(self, word: str) -> Iterator[list[str]]:
        """Yield the fields of the lines that begin with a word and a tab."""
        for line in self.lines:
            fields = line.split("\t")
            if fields[0] == word and len(fields) > 1:
                yield fields[1:]

    def values(self, word: str) -> list[str]:
        """Return what follows a word at the beginning of lines."""
        lead = f"{word} "
        return [line[len(lead) :].strip() for line in self.lines if line.startswith(lead)]

    def value(self, word: str) -> str:
        """Return what follows that word on the first such line, or the empty text."""
        return next(iter(self.values(word)), "")

    def problem(self, name: str, code: int | None = 0, said: str = "") -> Problem | None:
        """Return what went wrong, or ``None``.

        Args:
            name: of the part, for people.
            code: how a program in it ended; 0: as the whole.
            said: its words; empty: the last line of the text.
        """
        code = code or self.code
        if code == 0:
            return None
        words = said or next((line for line in reversed(self.lines)), "")
        note = " ".join(words.split())[:200]
        if code in OUT_OF_TIME:
            note = "no answer within its time"
        elif code is None:
            note = "the machine's answer ended before it was told"
        return Problem(part=name, kind=_kind(code, words), note=note)


def _kind(code: int | None, words: str) -> Trouble:
    if code == MISSING:
        return "missing"
    if code is None:
        return "cut off"
    if code in OUT_OF_TIME:
        return "timed out"
    if code == DENIED or re.search(r"permission denied|operation not permitted", words, re.I):
        return "denied"
    return "failed"


def parts_of(marker: str, result: Result) -> dict[str, Part]:
    """Take the parts out of what the machine answered, whatever is printed around them.

    Raises:
        ToolFailed: there is no shell that could run the script.
        BadReply: no part came.
    """
    found: dict[str, Part] = {}
    for key, text, value in re.findall(re.escape(marker) + _PART, result.stdout):
        end = _ENDED.search(text)
        if value or not text:
            found[key] = Part(value.strip(), 0)
        else:
            told = text[: end.start()] if end else text.removesuffix("\n")
            found[key] = Part(told, int(end[1]) if end else None)
    if found:
        return found
    if result.ending is Ending.EXITED and result.code in (MISSING, DENIED):
        raise ToolFailed(f"the machine has no `sh` that can be started ({result.how})")
    raise BadReply(f"the machine told no facts ({result.how}): {result.tail[-500:]}")


def whole(text: str) -> int | None:
    """Return a whole number, or ``None`` where there is none."""
    text = text.strip()
    return int(text) if re.fullmatch(r"-?\d{1,20}", text) else None


def decimal(text: str) -> float | None:
    """Return a number such as ``112.5``, or ``None`` where there is none."""
    text = text.strip()
    return float(text) if re.fullmatch(r"-?\d{1,20}(\.\d+)?", text) else None


def mib_of_kib(text: str) -> int | None:
    """Return MiB for a number of KiB."""
    number = whole(text)
    return None if number is None else number // 1024


def mib_of_bytes(text: str) -> int | None:
    """Return MiB for a number of bytes."""
    number = whole(text)
    return None if number is None else number // 2**20


def by_words(lines: list[str], sign: str) -> dict[str, str]:
    """Read ``name SIGN value`` lines; the first of a name counts."""
    found: dict[str, str] = {}
    for line in lines:
        name, mark, value = line.partition(sign)
        if mark:
            found.setdefault(name.strip(), value.strip())
    return found
