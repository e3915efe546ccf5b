"""Our shell scripts: how they get to the target, and how their answers are read.

A script comes on standard input, so nothing has to be installed; every value is a word of its own
and never part of the text. It answers one ``key=value`` a line behind the call's marker, so banners
do not matter, and closes with ``end``; free text travels in base64.
"""

from __future__ import annotations

import base64
import binascii
from importlib.resources import files

from tools.base import CallContext
from tools.command import Command, Ending, Result
from tools.errors import BadReply, ToolFailed


def script(
    call: CallContext,
    name: str,
    words: tuple[str, ...],
    parts: tuple[str, ...],
    timeout_s: float = 20.0,
) -> Command:
    """Return a command that runs one of our scripts.

    Args:
        call: gives the marker and the folder of jobs, the first two words.
        name: a file of ``tools/scripts``, without its suffix.
        words: what it is given besides.
        parts: files that define functions for it.
        timeout_s: limit in seconds.
    """
    text = "".join(script_text(part) for part in (*parts, name))
    argv = ("sh", "-s", "--", call.marker, f"{call.host_dir}/jobs", *words)
    return Command(argv, stdin=text, timeout_s=timeout_s)


def read_answers(call: CallContext, result: Result) -> dict[str, str]:
    """Read a script's ``key=value`` lines.

    Raises:
        BadReply: the answer is missing or incomplete.
        ToolFailed: the script says why it did nothing.
    """
    answers = {}
    for line in result.stdout.split("\n"):
        _, found, rest = line.partition(f"{call.marker} ")
        key, equals, value = rest.partition("=")
        if found and equals:
            answers[key] = value.rstrip("\r")
    if result.ending is not Ending.EXITED:
        raise ToolFailed(f"the script on the target did not end by itself: {result.how}")
    if "end" not in answers:
        raise BadReply(f"the target's shell gave no complete answer ({result.how}): {result.tail}")
    if "error" in answers:
        raise ToolFailed(answers["error"])
    return answers


def decoded(word: str) -> bytes:
    """Return what came in base64.

    Raises:
        BadReply: it came damaged.
    """
    try:
        return base64.b64decode(word, validate=True)
    except binascii.Error as error:
        raise BadReply(f"a piece of a log came damaged: {error}") from error


def script_text(name: str) -> str:
    """Return a file of ``tools/scripts``, given without its suffix."""
    return files("tools").joinpath("scripts", f"{name}.sh").read_text(encoding="utf-8")
