"""What all kinds share: a failure, the case it makes, and the hypothesis that comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agent.facts import Known
from agent.fold import View
from agent.knowledge import Signature
from agent.site import Site
from agent.values import ToolCall
from tools.base import Risk, Subject
from tools.image_probe import ImageAnswers, ImageProbe
from tools.packages import EnvironmentState, PythonEnvironment


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that failed, in its own words."""

    check: str
    """The check, or the tool of a change that failed."""
    text: str
    subject: Subject
    target: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FixPlan:
    """A candidate fix: ordered calls and what they do, in words."""

    calls: tuple[ToolCall, ...]
    text: str
    risk: Risk = Risk.CHANGE


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A possible cause, with what would decide it and what would remove it."""

    kind: str
    cause: str
    check: str
    subject: Subject
    evidence: tuple[str, ...]
    score: float
    probe: ToolCall | None = None
    """The cheapest READ call that tells it from its look-alikes; ``None`` once that is known."""
    fix: FixPlan | None = None
    advice: str = ""
    """What a person can do where there is no fix for us."""
    question: tuple[str, ...] = ()
    """A question and its choices where a fix needs the person's word first."""

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON for the transcript and for a model."""
        return {
            "kind": self.kind,
            "cause": self.cause,
            "check": self.check,
            "score": self.score,
            "evidence": list(self.evidence),
            "probe": self.probe.tool if self.probe else None,
            "fix": self.fix.text if self.fix else None,
            "advice": self.advice,
        }


@dataclass(frozen=True)
class Case:
    """A failure that a signature has matched, with everything a kind may look at."""

    view: View
    site: Site
    failure: Failure
    signature: Signature | None
    groups: Mapping[str, str]

    @cached_property
    def environment(self) -> EnvironmentState | None:
        """What is known of the environment, be it stale."""
        if self.site.is_image:
            answers = self.answers
            return answers.environment if answers else None
        rows = self.view.facts.known(PythonEnvironment)
        mine = [row.observation for row in rows if row.args.get("python") == self.site.python]
        seen = mine[-1] if mine else None
        return seen if isinstance(seen, EnvironmentState) else None

    @cached_property
    def answers(self) -> ImageAnswers | None:
        """What the image in use has answered; ``None`` for a venv, and before it was asked."""
        rows = [row for row in self.view.facts.known(ImageProbe) if self._is_of_image(row)]
        seen = rows[-1].observation if rows else None
        return seen if isinstance(seen, ImageAnswers) else None

    def _is_of_image(self, row: Known) -> bool:
        return row.args.get("image") == self.site.image and row.target == self.site.target

    @cached_property
    def params(self) -> dict[str, str]:
        """The signature's parameters, filled with what the pattern caught."""
        raw = self.signature.params if self.signature else {}
        return {key: _fill(value, self.groups) for key, value in raw.items()}

    def hypothesis(self, **more: Any) -> Hypothesis:
        """Build the hypothesis of this case; ``more`` sets or replaces fields."""
        words = self.words()
        fields: dict[str, Any] = {
            "kind": self.signature.kind if self.signature else "unknown",
            "cause": _fill(self.signature.cause, words) if self.signature else "",
            "advice": _fill(self.signature.advice, words) if self.signature else "",
            "check": self.failure.check,
            "subject": self.failure.subject,
            "evidence": self.failure.evidence,
            "score": self.signature.weight if self.signature else 0.1,
        }
        return Hypothesis(**(fields | more))

    def words(self) -> dict[str, str]:
        """Return what a template may name."""
        seen = self.environment
        params = self.params
        package = params.get("package", "")
        installed = seen.versions.get(package, "(not installed)") if seen else "(unknown)"
        return {
            **self.groups,
            **params,
            "installed": installed,
            "environment": self.site.place,
            "free_mib": str(seen.free_mib) if seen else "?",
            "python_version": (seen.python_version if seen else None) or "?",
        }


def _fill(template: str, words: Mapping[str, str]) -> str:
    """Fill ``{name}`` by plain replacement: the values are data and may hold braces."""
    text = template
    for key, value in words.items() if "{" in template else ():
        text = text.replace("{" + key + "}", value)
    return text
