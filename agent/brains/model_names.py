"""Names the models that there are where the one that was asked for is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from agent.brains.failures import LONGEST, Failure, one_line

_NAMED = 5
_ROOM = 250


def with_names(failure: Failure, model: str, listed: Iterable[Mapping[str, Any]]) -> Failure:
    """Return a failure that names the nearest models of a server's list.

    Args:
        failure: that something was not found.
        model: the name that was asked for.
        listed: the server's list; where it holds the name, something else was not found.
    """
    names = [str(row.get("id") or row.get("name") or "") for row in listed]
    names = [name for name in names if name]
    if not names or model in names:
        return failure
    near = get_close_matches(model, names, n=_NAMED, cutoff=0.3) or names[:_NAMED]
    more = len(names) - len(near)
    tail = one_line(f"; it has {', '.join(near)}{f' and {more} more' if more else ''}", _ROOM)
    begin = one_line(f"no model {model!r} there: {failure.text}", LONGEST - len(tail))
    return replace(failure, text=begin + tail)
