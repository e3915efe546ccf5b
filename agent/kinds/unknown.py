"""unknown: no signature fits; the earliest decisive line is shown and nothing is guessed."""

from __future__ import annotations

import re

from agent.kinds.base import Case, Hypothesis

_ERROR_LINE = re.compile(r"^\s*(?:[\w.]*(?:Error|Exception|Exit)\b.*|(?:ERROR|FATAL|fatal)\b.*)")


def explain(case: Case) -> Hypothesis:
    """Name the failure by its own words; a matched signature of this kind brings its advice."""
    if case.signature is not None:
        return case.hypothesis()
    name, line = case.failure.check, decisive_line(case.failure.text)
    said = line if line.startswith(name) else f"{name} fails: {line}"
    return case.hypothesis(
        cause=said if line else f"{name} fails",
        advice="No playbook knows this failure; `bringup show` has the whole output.",
    )


def decisive_line(text: str) -> str:
    """Return the earliest line that reads like an error, else the last line that is not empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        if _ERROR_LINE.match(line):
            return line
    return lines[-1] if lines else ""
