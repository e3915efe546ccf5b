"""Which addresses of other hosts a host reaches over TCP; all are tried at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from pydantic import TypeAdapter, ValidationError

from tools.base import Observation
from tools.command import Command, Result
from tools.errors import BadReply
from tools.probe import ALONE, check_started, last_marked

TRY_S = 3.0
"""How long an address may take to answer."""

Place = tuple[str, int]
"""An IP address and a port."""


class Tried(Observation):
    """How one attempt to connect ended."""

    ok: bool
    ms: float | None = None
    """From asking to being connected; one round trip."""
    source: str = ""
    """The own address that the connection went out by: it tells which device was used."""
    error: str = ""


_FORM = TypeAdapter(tuple[Tried, ...])


def reach_command(
    marker: str, python: str, places: Sequence[Place], *, limit_s: float = TRY_S
) -> Command:
    """Return the command that connects to places and sends nothing on these connections.

    Args:
        marker: see ``tools.machine.machine_command``.
        python: a Python 3.8 or newer on the host.
        places: where to.
        limit_s: how long each may take.
    """
    payload = json.dumps({"places": places, "limit_s": limit_s})
    words = (python, *ALONE, "-", marker, payload)
    return Command(words, stdin=_script(), timeout_s=4 * limit_s)


@cache
def _script() -> str:
    return files("tools").joinpath("probes", "reach.py").read_text(encoding="utf-8")


def read_reach(
    result: Result, marker: str, python: str, places: Sequence[Place]
) -> tuple[Tried, ...]:
    """Read how each attempt ended, in the order of the places.

    Raises:
        ToolFailed: there is no such Python.
        BadReply: the answer is missing, or has another form.
    """
    text = last_marked(marker, result.stdout)
    if text is None:
        check_started(python, result)
        raise BadReply(f"{python} gave no answer ({result.how}): {result.tail}")
    try:
        found = _FORM.validate_json(text)
    except ValidationError as error:
        raise BadReply(f"{python}: the answer has another form: {text[:200]}") from error
    if len(found) != len(places):
        raise BadReply(f"{python}: {len(found)} answers to {len(places)} questions")
    return found
