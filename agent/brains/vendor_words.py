"""The words of vendors and servers when they fail, as data: ``prompts/endpoints.yaml``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict


class Entry(BaseModel):
    """What all entries share."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Example(Entry):
    """A real reply, and what is to be read out of it."""

    status: int | None
    """``None``: it came in the middle of a stream."""
    body: str
    limit: int | None = None
    parameter: str = ""
    retry: float | None = None


class Words(Entry):
    """One way to say one kind of failure."""

    id: str
    kind: str
    of: tuple[str, ...]
    """Who says so."""
    status: tuple[int, ...] = ()
    """Only with one of these; empty for any, also in the middle of a stream."""
    patterns: tuple[str, ...]
    """Regular expressions; the groups ``limit``, ``parameter`` and ``retry`` are read."""
    parameter: str = ""
    """The field of the request that this is about, where no group says so."""
    source: str
    examples: tuple[Example, ...]

    @cached_property
    def regexes(self) -> tuple[re.Pattern[str], ...]:
        """The compiled patterns."""
        return tuple(re.compile(pattern, re.IGNORECASE) for pattern in self.patterns)

    def find(self, status: int | None, said: str) -> Found | None:
        """Return what is said where these are the words."""
        if self.status and status not in self.status:
            return None
        matches = [match for regex in self.regexes for match in regex.finditer(said)]
        if not matches:
            return None
        named: dict[str, str] = {}
        for match in matches:
            named = {key: text for key, text in match.groupdict().items() if text} | named
        limit = re.sub(r"\D", "", named.get("limit", ""))
        return Found(
            words=self,
            limit=int(limit[:12]) if limit else None,
            parameter=named.get("parameter", "") or self.parameter,
            retry=named.get("retry", ""),
        )


@dataclass(frozen=True, slots=True)
class Found:
    """Words that were found, with what they name."""

    words: Words
    limit: int | None
    parameter: str
    retry: str


class Vocabulary(Entry):
    """All words, the telling ones first, with what a person can do about each kind of failure."""

    advice: dict[str, str]
    parameters: tuple[str, ...]
    """Fields of a request that servers complain of, where they are only mentioned."""
    words: tuple[Words, ...]

    def find(self, status: int | None, said: str) -> Found | None:
        """Return the first words that fit."""
        return next(self.all_found(status, said), None)

    def all_found(self, status: int | None, said: str) -> Iterator[Found]:
        """Yield all words that fit, in order."""
        for words in self.words:
            found = words.find(status, said)
            if found is not None:
                yield found


@cache
def load() -> Vocabulary:
    """Read the words that are shipped."""
    text = (files("prompts") / "endpoints.yaml").read_text(encoding="utf-8")
    return Vocabulary.model_validate(yaml.safe_load(text))
