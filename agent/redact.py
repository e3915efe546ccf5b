"""Takes secrets and machine paths out of whatever is about to be written.

A secret becomes ``«secret:NAME»`` where its name is known and ``«secret:shape-N»`` where only its
shape gave it away; a path becomes ``«home»`` and the like. The same value has the same placeholder
all through a run, so two recordings with different secrets read alike. Text that cannot be checked
is withheld, never let through.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Literal, TypeVar, get_origin

from pydantic import BaseModel

from agent.harmless import INDEX_HINTS, Harmless, written
from agent.secret_forms import FLAG, MIN_LENGTH, SHAPES, flat, forms_of, hints_in, wrapped
from agent.secret_forms import secrets_of as secrets_of

T = TypeVar("T")

WITHHELD = "«withheld»"
"""Stands for text that could not be checked."""
MAX_DEPTH = 100
"""Data nested deeper is withheld; a JSON reader would refuse it later."""

_MOST_PASSES = 8
_NESTED = (BaseModel, dict, list)
_KEPT, _ROWS = (Enum, int, float, type(None)), (list, tuple)
_SHORT = 256
"""Texts of so many characters come again and again (keys, paths, names): they are remembered."""
_REMEMBERED = 4096
_SHAPE = r"secret:shape-\d{1,6}"
_SHAPE_NUMBER = re.compile(r"«secret:shape-(\d{1,6})»")
_PATH_NAME = re.compile(r"(?!withheld$)[a-z][a-z0-9_-]{0,31}")
# The first slash of a path comes after anything that cannot belong to one, or after -I, \n or a
# colour code; a path ends where its last component does.
_FIRST_SLASH = (
    r"/(?:(?<![\w.~+»-]/)|(?<=-[BIL]/)|(?<=\\[nrt]/)|(?<=[0-9\[][mK]/)"
    r"|(?<=[\s\"'(]\./))"  # ./root/x, as pip says from the folder /
)
_AFTER_PATH = r"(?![\w~+-])(?!\.[\w.~+-])"
# pip names its indexes and where wheels lie: a company's inner hosts, and no part of what happened.
_INDEXES = re.compile(
    r"(Looking in (?:indexes|links): )(?!«index»)[^\r\n]+"
    r"|(?<=[ (])https?://[^\s/]+/(?:packages|simple)/[^\s]*/(?=[^\s/]+)"
    r"|(?<![\w.»-])\.?(?:file://)?/[^\s'\"]{0,1000}/(?=[^\s/'\"]+\.whl\b)"
)


class Redactor:
    """Replaces secrets and paths by placeholders, and placeholders by what they stand for."""

    def __init__(self, secrets: Mapping[str, str], paths: Mapping[str, str]) -> None:
        """Take the values that are known beforehand.

        Args:
            secrets: name to value; values shorter than ``MIN_LENGTH`` are ignored.
            paths: placeholder name to absolute path; ``/`` and relative paths are ignored.

        Raises:
            ValueError: a path's name cannot be a placeholder.
        """
        self._paths = {name: _normal(path) for name, path in paths.items() if _normal(path)}
        for name in self._paths:
            if not _PATH_NAME.fullmatch(name):
                raise ValueError(f"{name!r} cannot name a path: use a-z, 0-9, - and _")
        self._secrets = {
            re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:64]: value
            for name, value in secrets.items()
            if len(value) >= MIN_LENGTH
        }
        self._forms = {
            flat(form): name
            for name, value in reversed(self._secrets.items())
            for form in forms_of(value)
        }
        self._path_names = {path: name for name, path in reversed(self._paths.items())}
        self._placeholders = _placeholders(self._secrets, self._paths)
        forms = {form for value in self._secrets.values() for form in forms_of(value)}
        found = [
            f"(?P<placeholder>{self._placeholders.pattern})",
            *map(wrapped, _longest_first(forms)),
        ]
        self._secret_pattern = re.compile("|".join(found))
        any_path = "|".join(re.escape(path[1:]) for path in _longest_first(self._path_names))
        self._path_pattern = re.compile(f"{_FIRST_SLASH}(?:{any_path}){_AFTER_PATH}")
        self._shapes: dict[str, str] = {}
        self._next_shape = 1
        self._names: dict[str, None] = {}
        self._short = lru_cache(maxsize=_REMEMBERED)(self._text)
        path = self._path_pattern if self._path_names else None
        self._harmless = Harmless(self._forms, path, MAX_DEPTH)

    @classmethod
    def from_private(cls, private: Mapping[str, str], secrets: Mapping[str, str]) -> Redactor:
        """Build the redactor of an earlier run from what ``private`` returned."""
        return cls(secrets, private)

    def private(self) -> dict[str, str]:
        """Return the paths by name, for the run's private file; secrets are never in it."""
        return dict(self._paths)

    @property
    def names(self) -> tuple[str, ...]:
        """The placeholders used so far, by first use, such as ``home`` and ``secret:HF_TOKEN``."""
        return tuple(self._names)

    def note(self, text: str) -> None:
        """Take over the numbers in text written earlier, so that none is used twice."""
        for match in _SHAPE_NUMBER.finditer(text):
            self._next_shape = max(self._next_shape, int(match[1]) + 1)

    def redact(self, value: T) -> T:
        """Return an event or a JSON value without secrets and paths; itself where it has none.

        Redacting twice changes nothing. What our own models choose from a fixed list (``Literal``,
        ``Enum``) is left alone.
        """
        with suppress(Exception):  # whatever fails is found and withheld by walking
            if isinstance(value, _NESTED) and self._harmless(written(value)):
                return value
        return self.walk(value)

    def walk(self, value: T) -> T:
        """Do as ``redact``, for a value that ``leaves`` has said no to."""
        with suppress(Exception):  # then the text that fails is found and withheld
            redacted: T = _walk(value, self._replaced, 0)
            return redacted
        redacted = _walk(value, self._safe, 0)
        return redacted

    def leaves(self, text: str) -> bool:
        """Return whether a value with this JSON surely holds nothing to hide."""
        return self._harmless(text)

    def restore(self, value: T, *, secrets: bool = False) -> T:
        """Put paths back in place of their placeholders.

        Args:
            value: an event or a JSON value.
            secrets: put secrets back too. Only for what a process gets by environment or standard
                input, once that was allowed: any host can print a placeholder.
        """

        def real(match: re.Match[str]) -> str:
            name = match[0][1:-1]
            if name in self._paths:
                return self._paths[name]
            secret = self._secrets.get(name.removeprefix("secret:"))
            return secret if secrets and secret is not None else match[0]

        def change(text: str) -> str:
            return self._placeholders.sub(real, text) if "«" in text else text

        restored: T = _walk(value, change, 0)
        return restored

    def _safe(self, text: str) -> str:
        """Redact one text; whatever goes wrong on the way withholds it."""
        with suppress(Exception):  # fail closed: no defect of ours may let a secret through
            return self._replaced(text)
        return WITHHELD

    def _replaced(self, text: str) -> str:
        return self._short(text) if len(text) <= _SHORT else self._text(text)

    def _text(self, text: str) -> str:
        if not text.isascii():
            text = text.encode("utf-8", "backslashreplace").decode("utf-8")
        for _ in range(_MOST_PASSES):
            before, text = text, self._pass(text)
            if text == before:
                return text
        return WITHHELD

    def _pass(self, text: str) -> str:
        """Replace what is seen; a placeholder may set apart a token that ran into its neighbour."""
        if self._forms:
            line = flat(text)
            if any(map(line.__contains__, self._forms)):
                text = self._secret_pattern.sub(self._registered, text)
        text = self._hide_shapes(text)
        if any(map(text.__contains__, INDEX_HINTS)):
            text = _INDEXES.sub(_index, text)
        if self._path_names:
            text = self._path_pattern.sub(self._path, text)
        return text

    def _registered(self, match: re.Match[str]) -> str:
        if match["placeholder"]:
            return match[0]
        return self._placeholder(f"secret:{self._forms[flat(match[0])]}")

    def _path(self, match: re.Match[str]) -> str:
        return self._placeholder(self._path_names[match[0]])

    def _hide_shapes(self, text: str) -> str:
        found = hints_in(text)
        for hints, pattern in SHAPES if found else ():
            if not found.isdisjoint(hints):
                text = pattern.sub(self._shape, text)
        return text

    def _shape(self, match: re.Match[str]) -> str:
        start, end = match.span("secret")
        begin = match.start()
        name = self._shapes.get(match["secret"])
        if name is None:
            name = self._shapes[match["secret"]] = f"secret:shape-{self._next_shape}"
            self._next_shape += 1
        return match[0][: start - begin] + self._placeholder(name) + match[0][end - begin :]

    def _placeholder(self, name: str) -> str:
        self._names.setdefault(name)
        return f"«{name}»"


def _index(match: re.Match[str]) -> str:
    return f"{match[1]}«index»" if match[1] else "«index»/"


def _walk(value: Any, change: Callable[[str], str], depth: int) -> Any:
    """Return ``value`` with every text changed, keys too; what is no JSON value is withheld."""
    if depth > MAX_DEPTH:
        return WITHHELD
    if type(value) is str:
        return change(value)
    if isinstance(value, _KEPT):
        return value
    return change(value) if isinstance(value, str) else _walk_inside(value, change, depth + 1)


def _walk_inside(value: Any, change: Callable[[str], str], depth: int) -> Any:
    if isinstance(value, dict):
        return {change(str(key)): _walk(item, change, depth) for key, item in value.items()}
    if isinstance(value, BaseModel):
        names = _free_fields(type(value))
        return value.model_copy(
            update={name: _walk(getattr(value, name), change, depth) for name in names}
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [item.name for item in dataclasses.fields(value) if item.init]
        changed = {name: _walk(getattr(value, name), change, depth) for name in fields}
        return dataclasses.replace(value, **changed)
    if isinstance(value, Mapping):
        return _walk_inside(dict(value), change, depth)
    if isinstance(value, _ROWS):
        items = [_walk(item, change, depth) for item in value]
        _change_after_flags(value, items, change)
        return tuple(items) if isinstance(value, tuple) else items
    return WITHHELD


def _change_after_flags(
    words: Sequence[Any], changed: list[Any], change: Callable[[str], str]
) -> None:
    """Treat ``--api-key`` and the next word of an argument vector as one thing."""
    for place, (flag, word) in enumerate(pairwise(words), start=1):
        if isinstance(flag, str) and isinstance(word, str) and FLAG.fullmatch(flag):
            changed[place] = change(f"{flag} {word}").removeprefix(f"{flag} ")


@cache
def _free_fields(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the fields of a model whose text is not chosen from a fixed list."""
    return tuple(
        name
        for name, info in model.model_fields.items()
        if get_origin(info.annotation) is not Literal
    )


def _placeholders(secrets: Iterable[str], paths: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for our own placeholders; one that a host invents is text like any other."""
    names = [_SHAPE, "withheld", *(f"secret:{re.escape(name)}" for name in secrets), *paths]
    return re.compile(f"«(?:{'|'.join(names)})»")


def _longest_first(texts: Iterable[str]) -> list[str]:
    return sorted(texts, key=lambda text: (-len(text), text))


def _normal(path: str) -> str:
    """Return an absolute path without a slash at its end, or nothing for other paths."""
    return path.rstrip("/") if path.startswith("/") else ""
