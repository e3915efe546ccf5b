"""Files that a brain neither reads nor changes, for what is in them: keys, passwords, logins.

What a look finds goes to whoever runs the model, and text on a host can ask for any file. This is
the one place that says which files are left alone; the names are data, in
``prompts/policies/private_files.yaml``. Paths are compared as text: a link of another name that
leads to such a file, and a copy of it, are not known.
"""

from __future__ import annotations

import posixpath
import re
from functools import cache
from importlib.resources import files

import yaml

from agent.values import ToolCall

_PATHS = ("path", "config", "model", "folder")
"""Arguments that name a file or a folder that is read, or changed."""
_PLACES = ("source", "to")
"""Arguments that name a path behind ``HOST:``."""
_SEARCHES = ("grep", "copy_files")
"""Tools that read a folder with all below it, or carry it away."""


def kept_private(call: ToolCall) -> str:
    """Say why a call may not have what it names; empty where it may."""
    for name in (*_PATHS, *_PLACES):
        path = call.args.get(name)
        if isinstance(path, str) and name in _PLACES:
            path = path.partition(":")[2]
        if not isinstance(path, str) or not path.startswith("/"):
            continue
        if is_private(path):
            return f"{path} is where keys or passwords are kept: no brain's business, look yourself"
        if call.tool in _SEARCHES and is_wide(path):
            return f"keys and passwords are kept somewhere in {path}: name a folder further down"
    return ""


def is_private(path: str) -> bool:
    """Tell whether an absolute path names such a file, or lies in such a folder."""
    return _patterns()["files"].fullmatch(_plain(path)) is not None


def is_wide(path: str) -> bool:
    """Tell whether such files are to be expected somewhere below an absolute path."""
    return _patterns()["wide"].fullmatch(_plain(path)) is not None


def _plain(path: str) -> str:
    """Return a path as the system reads it, as far as its text tells, in lower case."""
    return "/" + posixpath.normpath(path).lstrip("/").lower()


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    source = files("prompts") / "policies" / "private_files.yaml"
    data: dict[str, list[str]] = yaml.safe_load(source.read_text(encoding="utf-8"))
    return {
        name: re.compile("|".join(map(_expression, rows)), re.DOTALL) for name, rows in data.items()
    }


def _expression(pattern: str) -> str:
    folder = pattern.endswith("/") and pattern != "/"
    escaped = re.escape(pattern.rstrip("/").lower() if folder else pattern.lower())
    words = escaped.replace(r"\*\*/", "(?:/|/.*/)").replace(r"\*", "[^/]*")
    return f"{words}(?:/.*)?" if folder else words
