"""Our shell scripts: how they get to the target, and how their answers are read.

A script comes on standard input, so nothing has to be installed; every value is a word of its own
and never part of the text. It answers one ``key=value`` a line behind the call's marker, so banners
do not matter, and closes with ``end``.

Free text (pieces of logs) is such a value too, between the control characters STX and ETX. It comes
as it was written and in one piece, without a mark on each line: redaction has to find secrets and
paths in it, even those that a terminal's width has broken over two lines. The scripts take ETX out
of it, so no log can end it early and forge an answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

from tools.base import CallContext
from tools.command import Command, Ending, Result
from tools.errors import BadReply, ToolFailed

HOST_KEY = r"SHA256:[A-Za-z0-9+/]{43}"
"""A key's fingerprint, as ssh prints it."""
_ANSWER = r" ([a-z_]+)=(?:\x02\n([^\x03]*?)(?:\n\x03|\Z)|(.*))"
"""What follows the marker: a key and its text, or a key and its value."""


def script(
    call: CallContext,
    name: str,
    words: tuple[str, ...],
    parts: tuple[str, ...],
    timeout_s: float = 20.0,
) -> Command:
    """Return a command that runs one of our scripts.

    The host key, by which the host was known, travels with the text: it is no word of the command
    and changes nothing that a person approves.

    Args:
        call: gives the marker and the folder of jobs, the first two words.
        name: a file of ``tools/scripts``, without its suffix.
        words: what it is given besides.
        parts: files that define functions for it.
        timeout_s: limit in seconds.
    """
    key = call.host_key if re.fullmatch(HOST_KEY, call.host_key) else ""
    text = "".join(script_text(part) for part in (*parts, name))
    argv = ("sh", "-s", "--", call.marker, f"{call.host_dir}/jobs", *words)
    return Command(argv, stdin=f"host_key='{key}'\n{text}", timeout_s=timeout_s)


def read_answers(call: CallContext, result: Result) -> dict[str, str]:
    """Read what a script answers: its values, and its texts, which are left out where empty.

    Raises:
        BadReply: the answer is missing or incomplete.
        ToolFailed: the script says why it did nothing.
    """
    answers = {}
    for key, text, value in re.findall(re.escape(call.marker) + _ANSWER, result.stdout):
        answers[key] = text or value.rstrip("\r")
    if result.ending is not Ending.EXITED:
        raise ToolFailed(f"the script on the target did not end by itself: {result.how}")
    if "end" not in answers:
        raise BadReply(f"the target's shell gave no complete answer ({result.how}): {result.tail}")
    if "error" in answers:
        raise ToolFailed(answers["error"])
    return answers


def number(answers: Mapping[str, str], key: str) -> int:
    """Return an answer that is a whole number.

    Raises:
        BadReply: it is missing, or is something else.
    """
    try:
        return int(answers[key])
    except (KeyError, ValueError):
        said = answers.get(key, "nothing")
        raise BadReply(
            f"the target's shell should tell a number, {key}, and said: {said}"
        ) from None


def script_text(name: str) -> str:
    """Return a file of ``tools/scripts``, given without its suffix."""
    return files("tools").joinpath("scripts", f"{name}.sh").read_text(encoding="utf-8")
