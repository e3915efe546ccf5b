"""Reads what programs write into logs; pure, and wary: a log is data from somebody else."""

from __future__ import annotations

import re

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_FRAME = re.compile(r"^[\s─━═╭╮╰╯│┃║┌┐└┘|]+|[\s─━═╭╮╰╯│┃║┌┐└┘|]+$")
_TRACEBACK = "Traceback (most recent call last):"
_ERROR = re.compile(
    r"\b(?:ERROR|CRITICAL|FATAL)\b|\b[A-Za-z_.]*(?:Error|Exception)\b:|\b(?:fatal )?error:|^Error\b"
    r"|Segmentation fault|(?i:out of memory)|^Killed\b"
)
_PERCENT = re.compile(r"^(.*?\d{1,3}(?:\.\d+)?\s?%)")
_OF_TOTAL = re.compile(r"(?<![\w./-])\d+/\d+(?![\w./-])")
_VOLATILE = re.compile(
    "|".join(
        (
            r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?",
            r"\b\d\d?:\d\d:\d\d(?:[.,]\d+)?",
            r"\b\d+(?:\.\d+)?\s?(?:ms|s|secs?|seconds?|min|minutes?)\b",
            r"0x[0-9a-fA-F]+|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
            r"\b(?=[a-f]*\d)[0-9a-f]{12,64}\b",
            r"/tmp/[^\s:'\"]+",  # noqa: S108
            r"(?i:\b(?:pid|process|thread|port)\W{0,2}\d+)|\be\d+\b",
            r"(?<![\w.])(?<!\d/)(?<!of )\d{4,}"
            r"(?!\d|\.\d|\s?(?:%|[kKMGT]?i?B\b|bytes\b|/\s?\d|of\b))",
        )
    )
)
"""Dates, times of day, durations, addresses and ids, files below /tmp, pids and ports, events; and
any other whole number of four digits or more that is no amount."""


def plain(text: str) -> str:
    """Return a log as a terminal would show it in the end: no escapes, rewritten lines once."""
    lines = _ESCAPES.sub("", text).split("\n")
    return "\n".join(_last_state(line) for line in lines).strip("\n")


def progress(text: str) -> str:
    """Return the last line that tells how far something is, such as ``Loading weights: 45%``."""
    for line in reversed(plain(text).splitlines()):
        percent = _PERCENT.match(line)
        if percent:
            return percent[1].strip()
        if _OF_TOTAL.search(line):
            return line.strip()
    return ""


def earliest_error(text: str) -> str:
    """Return the first traceback's last line, or else the first line that tells of an error.

    What comes first is usually the cause, and what comes last its echo.
    """
    lines = plain(text).splitlines()
    for number, line in enumerate(lines):
        before, found, _ = line.partition(_TRACEBACK)
        if found:
            return _end_of_traceback(lines[number + 1 :], before) or line.strip()
    for number, line in enumerate(lines):
        if _ERROR.search(_unframed(line)):
            return _message(lines[number:])
    return ""


def steady(text: str) -> str:
    """Return a message without what differs each time it is said: times, pids, ports, ids.

    Small numbers (exit codes, versions) and amounts (``5.1 GB``, ``3 of 10``, ``45%``) stay: where
    they change, something has happened.
    """
    return _VOLATILE.sub("#", text)


def _end_of_traceback(lines: list[str], prefix: str) -> str:
    """Return the first line that is not indented, behind a log prefix like the one given."""
    shape = _shape(prefix)
    for line in lines:
        same = _shape(line[: len(prefix)]) == shape
        rest = line[len(prefix) :] if same else line
        if rest.strip() and not rest[0].isspace():
            return rest.strip()
    return ""


def _message(lines: list[str]) -> str:
    """Return the error's own words: where the line is only a heading, those of the next one."""
    for line in lines:
        words = _unframed(line)
        if words and words.lower().rstrip(":") not in ("error", "fatal", "critical"):
            return words
    return _unframed(lines[0])


def _last_state(line: str) -> str:
    states = [state for state in line.split("\r") if state.strip()]
    return _CONTROLS.sub("", states[-1]).rstrip() if states else ""


def _unframed(line: str) -> str:
    return _FRAME.sub("", line)


def _shape(text: str) -> str:
    return re.sub(r"\d", "0", text)
