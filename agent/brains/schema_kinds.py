"""Whether a value fits a JSON schema, and what a schema's plain alternatives are.

Only what tools' schemas use: types, unions, choices, items, members, references into the schema
itself. Patterns and ranges are the tool's own to check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DEPTH = 12
"""Levels of unions and references that are followed."""
_MOST_MEMBERS = 100
"""Of objects with more members, names in other spellings are left alone."""

Schema = Mapping[str, Any]


def spelling(name: str) -> str:
    """Return a name in snake case: ``maxTokens`` and ``max-tokens`` are ``max_tokens``."""
    return _HUMP.sub("_", name).replace("-", "_").replace(" ", "_").lower()


def properties_of(schema: Schema) -> Schema:
    """Return the schemas of an object's members by name."""
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def known_as(said: str, args: Mapping[str, Any], properties: Schema) -> str:
    """Return the one parameter that is written like this but for case and dashes."""
    if len(args) > _MOST_MEMBERS:
        return said
    folded = spelling(said)
    matching = [name for name in properties if spelling(name) == folded]
    rivals = [key for key in args if spelling(key) == folded]
    return matching[0] if len(matching) == len(rivals) == 1 else said


def kinds_of(schema: Schema, root: Schema, depth: int = 0) -> Iterator[Schema]:
    """Yield the plain alternatives of a schema: references followed, unions taken apart."""
    if depth > _DEPTH:
        return
    schema = _followed(schema, root)
    for key in ("anyOf", "oneOf", "allOf"):
        options = schema.get(key)
        if isinstance(options, list) and options:
            for option in options:
                if isinstance(option, Mapping):
                    yield from kinds_of(option, root, depth + 1)
            return
    types = schema.get("type")
    if isinstance(types, list):
        yield from ({**schema, "type": one} for one in types)
    else:
        yield schema


def _followed(schema: Schema, root: Schema) -> Schema:
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    group, _, name = reference.removeprefix("#/").partition("/")
    group_of = root.get(group)
    target = group_of.get(name) if isinstance(group_of, Mapping) else None
    return target if isinstance(target, Mapping) and "$ref" not in target else {}


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": _is_integer,
    "number": lambda value: _is_integer(value) or isinstance(value, float),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def fits(value: Any, kind: Schema, root: Schema) -> bool:
    """Whether a value is what one plain alternative wants, as far as this module looks.

    Args:
        value: A JSON value; 8000.0 is no integer here, though JSON says so.
        kind: One of ``kinds_of`` a schema.
        root: The schema into which references lead.
    """
    check = _CHECKS.get(str(kind.get("type")))
    if check is not None and not check(value):
        return False
    choices = kind.get("enum")
    if isinstance(choices, list) and value not in choices:
        return False
    if "const" in kind and value != kind["const"]:
        return False
    items = kind.get("items")
    if isinstance(value, list) and isinstance(items, Mapping):
        options = list(kinds_of(items, root))
        return all(any(fits(item, option, root) for option in options) for item in value)
    return not isinstance(value, dict) or _members_fit(value, kind, root)


def _members_fit(value: Mapping[str, Any], kind: Schema, root: Schema) -> bool:
    properties = properties_of(kind)
    for said, member in value.items():
        if said not in properties and known_as(said, value, properties) != said:
            return False
        entry = properties.get(said)
        if isinstance(entry, Mapping):
            options = kinds_of(entry, root)
            if not any(fits(member, option, root) for option in options):
                return False
    return True
