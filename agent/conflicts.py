"""Judges what pip says of packages that do not fit each other after a build: warnings, not errors.

Each sentence is told apart by what is known: whether it was so before the change, who declares it,
and whether what declares it still imports in the new image.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from agent.facts import Known
from agent.fold import View
from tools.image_probe import ImageAnswers, ImageProbe

BEFORE = "it was so before this change"
_LINE = re.compile(
    r"^(?P<by>\S+) (?P<by_version>\S+) requires (?P<wish>.+?), "
    r"(?:which is (?P<missing>not installed)|but you have (?P<name>\S+) (?P<have>\S+) which)"
)
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Conflict:
    """One sentence of pip, and what is made of it."""

    by: str
    by_version: str
    wish: str
    """What it asks for, such as ``transformers<5.0.0``."""
    have: str
    """What there is, such as ``transformers 5.3.0``; empty for nothing."""
    matters: bool | None
    """``None``: not known yet; the server's start will tell."""
    why: str
    evidence: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """In one line, for people."""
        have = f"there is {self.have}" if self.have else "it is not installed"
        verdict = {True: "matters", False: "does not matter", None: "not known"}[self.matters]
        return f"{self.by} {self.by_version} wants {self.wish}, {have}: {verdict}: {self.why}"


def module_of(distribution: str) -> str:
    """Return the module that a distribution's name suggests."""
    return canonicalize_name(distribution).replace("-", "_")


def declarers(lines: list[str]) -> list[str]:
    """Return who declares what does not fit, of lines about a version that is there."""
    found = [match for line in lines if (match := _LINE.match(line)) and not match["missing"]]
    return sorted({match["by"] for match in found})


def judge(view: View, base: str, derived: str, lines: list[str]) -> list[Conflict]:
    """Judge pip's sentences about an image that was derived from another."""
    before, after = _probed(view, base), _probed(view, derived)
    return [
        _judged(match, before, after) for line in lines if (match := _LINE.match(line)) is not None
    ]


def _probed(view: View, image: str) -> Known | None:
    rows = view.facts.known(ImageProbe)
    return next((row for row in reversed(rows) if row.args.get("image") == image), None)


def _answers(known: Known | None) -> ImageAnswers | None:
    seen = known.observation if known else None
    return seen if isinstance(seen, ImageAnswers) else None


def _judged(match: re.Match[str], before: Known | None, after: Known | None) -> Conflict:
    have = "" if match["missing"] else f"{match['name']} {match['have']}"
    matters, why, rows = _reason(match, before, after)
    evidence = tuple(row.event for row in rows if row is not None)
    return Conflict(match["by"], match["by_version"], match["wish"], have, matters, why, evidence)


def _reason(
    match: re.Match[str], before: Known | None, after: Known | None
) -> tuple[bool | None, str, list[Known | None]]:
    base, new = _answers(before), _answers(after)
    name = canonicalize_name(match["name"] or _wished(match["wish"]))
    if base is not None and base.environment is not None:
        was = base.environment.versions.get(name)
        if was == match["have"]:
            return False, BEFORE, [before]
    module = module_of(match["by"])
    outcome = new.imports.modules.get(module) if new and new.imports else None
    if outcome is not None and outcome.ok:
        return False, f"{module} still imports in the new image", [after]
    if outcome is not None:
        return True, f"{module} does not import there: {outcome.error}", [after]
    return None, "nothing has tried it yet", []


def _wished(wish: str) -> str:
    found = _NAME.match(wish)
    return found.group(0) if found else wish
