"""Reads a program's ``--help`` text, by whichever parser it was written; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w.-]*")
_USAGE = re.compile(
    r"^[ \t]*usage:(.*?)(?:\n[ \t]*\n|\Z)", re.IGNORECASE | re.DOTALL | re.MULTILINE
)
_BORDER = re.compile(r"^[│┃|]|[│┃|]\s*$")
_MAX_INDENT = 12
"""Definitions stand further left than this, and continued descriptions further right."""


def parse_help(text: str) -> tuple[list[str], list[str]]:
    """Return the options, in all their spellings, and the names of the positionals, in order."""
    options = [option for line in text.splitlines() for option in _defined(line)]
    found = _USAGE.search(text)
    positionals = list(_positionals(found[1])) if found else []
    return list(dict.fromkeys(options)), list(dict.fromkeys(positionals))


def _defined(line: str) -> list[str]:
    """Return the options that a line defines: in its first columns, before any description."""
    line = _BORDER.sub("", _BORDER.sub("", line))
    body = line.lstrip(" *")
    if len(line) - len(body) > _MAX_INDENT:
        return []
    options: list[str] = []
    for column in re.split(r"\s{2,}", body):
        if not column.startswith("-"):
            break
        options += [option.rstrip(".") for option in _OPTION.findall(column)]
    return options


def _positionals(usage: str) -> Iterator[str]:
    """Yield the words of a usage line that are neither options, their values nor the program."""
    groups = list(_groups(usage))
    begin = next((n for n, group in enumerate(groups) if _is_option(group)), len(groups))
    value_follows = False
    for group in groups[begin:]:
        if _is_option(group):
            value_follows = group.startswith("-")
        elif value_follows:
            value_follows = False
        elif re.search(r"\w", group):
            yield re.sub(r"[\[\]]|\.{3}", "", group).strip().split()[0]


def _is_option(group: str) -> bool:
    return group.startswith(("-", "[-")) or group.upper() in ("[OPTIONS]", "OPTIONS")


def _groups(usage: str) -> Iterator[str]:
    """Split at spaces that stand in no bracket: ``[--a A] [B] c`` gives three groups."""
    depth, group = 0, ""
    for character in usage:
        depth += {"[": 1, "(": 1, "{": 1, "]": -1, ")": -1, "}": -1}.get(character, 0)
        if character.isspace() and depth <= 0:
            if group:
                yield group
            group = ""
        else:
            group += character
    if group:
        yield group
