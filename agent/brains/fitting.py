"""Arguments made to fit their schema, where there is one way to read them; the tool validates.

A value that fits is never touched. What is done is a table: digits that stand as text, one thing
where a list of them is wanted, JSON that stands as text, names in another spelling.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from agent.brains.loose_json import Broken, read_value
from agent.brains.schema_kinds import Schema, fits, kinds_of, known_as, properties_of

WRAPPERS = ("arguments", "parameters", "args", "kwargs")
"""Names under which models put all arguments once more."""

_INTEGER = re.compile(r"[-+]?\d{1,18}(?:\.0{1,6})?")
_NUMBER = re.compile(r"[-+]?\d{1,18}(?:\.\d{1,18})?(?:[eE][-+]?\d{1,3})?")
_NOTHING = ("null", "None", "none", "")
_EXACT = 2**53
"""Floats below hold whole numbers exactly."""
_TRUTH = {"true": True, "false": False}
_DEPTH = 12
"""Levels of schemas that are followed."""


class _Unfit(Exception):
    """No way to make a value fit is known."""


def fit(args: dict[str, Any], schema: Schema) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments as the schema wants them, and what was changed, in words.

    Args:
        args: A JSON object.
        schema: JSON schema of a tool's parameters; ``$ref`` into its own ``$defs`` is followed.
    """
    args, notes = _unwrapped(args, schema)
    fitted, more = _fit_members(args, schema, schema, 0)
    return (fitted, (*notes, *more)) if notes or more else (args, ())


def _unwrapped(args: dict[str, Any], schema: Schema) -> tuple[dict[str, Any], tuple[str, ...]]:
    if len(args) != 1:
        return args, ()
    ((name, inner),) = args.items()
    if name not in WRAPPERS or name in properties_of(schema):
        return args, ()
    if isinstance(inner, str):
        inner = _parsed(inner, dict)
    return (inner, (f"taken out of {name!r}",)) if isinstance(inner, dict) else (args, ())


def _fit_members(
    args: dict[str, Any], schema: Schema, root: Schema, depth: int
) -> tuple[dict[str, Any], list[str]]:
    properties = properties_of(schema)
    wanted = schema.get("required")
    required = wanted if isinstance(wanted, list) else []
    fitted: dict[str, Any] = {}
    notes: list[str] = []
    for said, value in args.items():
        name = said if said in properties else known_as(said, args, properties)
        if name != said:
            notes.append(f"{said} is {name}")
        entry = properties.get(name)
        if not isinstance(entry, Mapping):
            fitted[name] = value
            continue
        kinds = list(kinds_of(entry, root))
        if any(fits(value, kind, root) for kind in kinds):
            fitted[name] = value
        elif name not in required and _means_nothing(value, kinds):
            notes.append(f"{name} left out")
        else:
            fitted[name], note = _changed(value, kinds, root, depth)
            notes += [f"{name} {note}"] if note else []
    return fitted, notes


def _means_nothing(value: Any, kinds: list[Schema]) -> bool:
    if value is None:
        return True
    takes_text = any(kind.get("type") in ("string", None) for kind in kinds)
    return isinstance(value, str) and value.strip() in _NOTHING and not takes_text


def _changed(value: Any, kinds: list[Schema], root: Schema, depth: int) -> tuple[Any, str]:
    """Return the value in the first form that fits one of the kinds, or as it was."""
    for kind in kinds if depth < _DEPTH else ():
        try:
            changed = _as(value, kind, root, depth)
        except _Unfit:
            continue
        return changed, f"read as {kind.get('type', 'one of its choices')}"
    return value, ""


def _as(value: Any, kind: Schema, root: Schema, depth: int) -> Any:
    """Return the value as this kind.

    Raises:
        _Unfit: there is no plain way.
    """
    choices = kind.get("enum", [kind["const"]] if "const" in kind else None)
    if isinstance(choices, list) and isinstance(value, str):
        same = [one for one in choices if isinstance(one, str) and one.lower() == value.lower()]
        if len(same) == 1:
            return same[0]
    form = _FORMS.get(str(kind.get("type")))
    if form is None:
        raise _Unfit
    changed = form(value, kind, root, depth)
    if isinstance(choices, list) and changed not in choices:
        raise _Unfit
    return changed


def _integer(value: Any, kind: Schema, root: Schema, depth: int) -> int:
    if isinstance(value, list):
        value = _only(value)
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value.strip().partition(".")[0])
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    raise _Unfit


def _number(value: Any, kind: Schema, root: Schema, depth: int) -> int | float:
    if isinstance(value, list):
        value = _only(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if not isinstance(value, str) or not _NUMBER.fullmatch(value.strip()):
        raise _Unfit
    if _INTEGER.fullmatch(value.strip()):
        return _integer(value, kind, root, depth)
    if not math.isfinite(float(value)):
        raise _Unfit
    return float(value)


def _boolean(value: Any, kind: Schema, root: Schema, depth: int) -> bool:
    if isinstance(value, str) and value.strip().lower() in _TRUTH:
        return _TRUTH[value.strip().lower()]
    raise _Unfit


def _string(value: Any, kind: Schema, root: Schema, depth: int) -> str:
    if isinstance(value, list):
        value = _only(value)
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise _Unfit


def _array(value: Any, kind: Schema, root: Schema, depth: int) -> list[Any]:
    if isinstance(value, str) and value.lstrip()[:1] in ("", "["):
        value = _parsed(value, list)
    if value is None:
        raise _Unfit
    items = kind.get("items")
    options = list(kinds_of(items, root)) if isinstance(items, Mapping) else [{}]
    return [
        item
        if any(fits(item, option, root) for option in options)
        else _must(_changed(item, options, root, depth + 1))
        for item in (value if isinstance(value, list) else [value])
    ]


def _object(value: Any, kind: Schema, root: Schema, depth: int) -> dict[str, Any]:
    if isinstance(value, str):
        value = _parsed(value, dict)
    if not isinstance(value, dict):
        raise _Unfit
    return _fit_members(value, kind, root, depth + 1)[0]


def _null(value: Any, kind: Schema, root: Schema, depth: int) -> None:
    if not isinstance(value, str) or value.strip() not in _NOTHING:
        raise _Unfit


_FORMS: dict[str, Callable[[Any, Schema, Schema, int], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "string": _string,
    "array": _array,
    "object": _object,
    "null": _null,
}


def _only(value: Any) -> Any:
    """Return the only member of a list."""
    if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], list):
        return value[0]
    raise _Unfit


def _must(changed: tuple[Any, str]) -> Any:
    value, note = changed
    if not note:
        raise _Unfit
    return value


def _parsed(text: str, form: type) -> Any:
    """Return the JSON that stands as text, if that is what the text is and nothing else."""
    if text.lstrip()[:1] != ("{" if form is dict else "["):
        return None
    try:
        read = read_value(text)
    except Broken:
        return None
    whole = not text[read.end :].strip() and isinstance(read.value, form)
    return read.value if whole else None
