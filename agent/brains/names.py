"""The tools that a model was offered, found again under the names that models give them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from agent.brains.schema_kinds import Schema, spelling

LONGEST_NAME = 100
"""Characters of a tool's name that are kept."""

_LONGEST_SAID = 300
_TAG = re.compile(r"<[^<>]{0,60}>")
_SEPARATOR = re.compile(r"[.:/]|__")
_AROUND = " \t\r\n\"'`()[]*,;"


class Toolbox:
    """What was offered, by name."""

    def __init__(self, tools: Sequence[Mapping[str, Any]]) -> None:
        """Take the tools as they were sent: OpenAI function schemas."""
        self._schemas: dict[str, Schema] = {}
        for tool in tools:
            function = tool.get("function", tool)
            schema = function.get("parameters")
            self._schemas[str(function.get("name"))] = schema if isinstance(schema, Mapping) else {}

    def known(self, said: str) -> str:
        """Return the offered name that is meant, empty where none is.

        Namespaces, markup, brackets and call numbers are taken off, and ``readFile`` or
        ``read-file`` is ``read_file``.
        """
        if said in self._schemas:
            return said
        for name in _plainer(said[:_LONGEST_SAID]):
            if name in self._schemas:
                return name
            if spelling(name) in self._spellings:
                return self._spellings[spelling(name)]
        return ""

    def schema(self, name: str) -> Schema:
        """Return the schema of an offered tool's parameters, empty for others."""
        return self._schemas.get(name, {})

    def lacks(self, name: str, args: Mapping[str, Any]) -> bool:
        """Whether arguments that a tool requires are missing."""
        required = self.schema(name).get("required")
        return isinstance(required, list) and any(key not in args for key in required)

    @cached_property
    def _spellings(self) -> dict[str, str]:
        """Names by their spelling, where it is one tool's alone."""
        found: dict[str, list[str]] = {}
        for name in self._schemas:
            found.setdefault(spelling(name), []).append(name)
        return {key: names[0] for key, names in found.items() if len(names) == 1}


def _plainer(said: str) -> Iterator[str]:
    """Yield what may be the bare name in what a model wrote, the longest first."""
    bare = _TAG.sub(" ", said.partition("<|")[0] if said[:2] != "<|" else said).strip(_AROUND)
    yield bare
    parts = [part.strip(_AROUND) for part in _SEPARATOR.split(bare)]
    while parts and parts[-1].isdigit():
        parts.pop()
    if parts:
        yield parts[-1]


def printable(name: str) -> str:
    """Return a name that may be shown and stored: one line, not too long."""
    return "".join(char for char in name[:LONGEST_NAME] if char.isprintable()).strip()
