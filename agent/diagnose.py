"""The diagnosis engine: failures and facts in, ranked hypotheses out; it serves every brain.

Signatures are data and say what a failure's words usually mean. What a kind means for causes, the
deciding probe and the fix is code, one module a kind (``kinds/``). Nothing here acts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from agent import knowledge
from agent.calls import full
from agent.checks import check_of, standing
from agent.fold import View
from agent.kinds import (
    by_hand,
    host_key,
    missing_module,
    resource_held,
    unknown,
    unsupported_model,
    version_pin,
)
from agent.kinds.base import Case, Failure, Hypothesis
from agent.knowledge import Signature
from agent.site import site_of
from agent.values import FixVerdict

KINDS: dict[str, Callable[[Case], Hypothesis]] = {
    "version-pin": version_pin.explain,
    "missing-module": missing_module.explain,
    "unsupported-model": unsupported_model.explain,
    "resource-held": resource_held.explain,
    "host-key": host_key.explain,
    "wrong-platform": unknown.explain,
    "gpu-runtime": unknown.explain,
    "permission": unknown.explain,
    "download": unknown.explain,
    "by-hand": by_hand.explain,
    "unknown": unknown.explain,
}
"""The working kinds; a kind turns a matched failure into a hypothesis."""

REFUSED = "It was refused"
"""How the advice of a hypothesis begins whose fix a person or the policy did not want."""
TRIES = {"by-hand": 3}
"""How often a fix of a kind may fail before its cause is given up; others once."""
NEARER = 0.3
"""How much more a failed change weighs than the check it was to mend: it is the nearer cause."""


@dataclass(frozen=True, slots=True)
class _Match:
    signature: Signature
    groups: dict[str, str]
    at: int


def rank(view: View, check: str) -> list[Hypothesis]:
    """Return what may explain that ``check`` fails, best first; never empty for a failed check."""
    site = site_of(view)
    found: list[Hypothesis] = []
    for failure, bonus in failures(view, check):
        matches = _matches(failure)
        for match in matches:
            case = Case(view, site, failure, match.signature, match.groups)
            found.append(_weigh(KINDS[match.signature.kind](case), bonus))
        if not matches:
            found.append(_weigh(unknown.explain(Case(view, site, failure, None, {})), bonus))
    left = [_without_refused(view, item) for item in found if not _refuted(view, item)]
    tried = [replace(item, fix=None, probe=None, advice=_tried(item)) for item in found]
    return sorted(left or tried, key=lambda item: -item.score)


def _tried(hypothesis: Hypothesis) -> str:
    plan = hypothesis.fix.text if hypothesis.fix else ""
    words = f"It was tried and did not help: {plan}." if plan else ""
    return f"{words} {hypothesis.advice}".strip()


def failures(view: View, check: str) -> list[tuple[Failure, float]]:
    """Return the failed changes that nothing has mended since, then the check's own failure."""
    site = site_of(view)
    rows: list[tuple[Failure, float]] = []
    for record in reversed(view.failed_changes):
        subject = record.touches[0] if record.touches else site.environment
        words = record.message or str(record.status)
        failure = Failure(record.call.tool, words, subject, site.target, (f"e{record.ended}",))
        rows.append((failure, NEARER))
    now = standing(view, check_of(view, check))
    if now.verdict.failure:
        subject = check_of(view, check).subject(site)
        own = Failure(check, now.verdict.failure, subject, site.target, now.evidence)
        rows.append((own, 0.0))
    return rows


def signature_of(view: View, check: str, text: str) -> str:
    """Name a failure so that the same one has the same name: the playbook's id, else its words."""
    failure = Failure(check, text, site_of(view).environment, "", ())
    for match in _matches(failure):
        kept = sorted(set(match.groups) - set(match.signature.measures))
        values = ",".join(f"{key}={match.groups[key]}" for key in kept)
        return f"{match.signature.id}({values})" if values else match.signature.id
    line = unknown.decisive_line(text)
    plain = re.sub(r"0x[0-9a-f]+|\d+", "N", line)
    return f"{check}: {plain}"


def _matches(failure: Failure) -> list[_Match]:
    """Return the signatures that fit, the one that matches earliest in the text first."""
    rows: list[_Match] = []
    for signature in knowledge.load().signatures:
        if signature.checks and failure.check not in signature.checks:
            continue
        hit = signature.regex.search(failure.text)
        if hit:
            groups = {key: value for key, value in hit.groupdict().items() if value is not None}
            rows.append(_Match(signature, groups, hit.start()))
    return sorted(rows, key=lambda row: (row.at, -row.signature.weight))


def _weigh(hypothesis: Hypothesis, bonus: float) -> Hypothesis:
    return replace(hypothesis, score=round(hypothesis.score + bonus, 3))


def _without_refused(view: View, hypothesis: Hypothesis) -> Hypothesis:
    """Take away a fix that a person or the policy refused: asking again would wear them out."""
    calls = hypothesis.fix.calls if hypothesis.fix else ()
    for call in calls:
        said = [no.message for no in view.refused if no.call.same_as(full(call))]
        if said:
            plan = hypothesis.fix.text if hypothesis.fix else ""
            advice = f"{REFUSED} ({said[-1]}): {plan}. Do it yourself, or run it again."
            return replace(hypothesis, fix=None, advice=f"{advice} {hypothesis.advice}".strip())
    return hypothesis


def _refuted(view: View, hypothesis: Hypothesis) -> bool:
    """Whether this very cause was already acted on without success."""
    count = 0
    for fix in view.fixes.values():
        if fix.closed is None or fix.closed.verdict is FixVerdict.VERIFIED:
            continue
        if fix.broke_off(view.calls):
            continue
        diagnosis = view.diagnosis_of(fix)
        same = (diagnosis.kind, diagnosis.cause) == (hypothesis.kind, hypothesis.cause)
        if same and hypothesis.fix is not None and diagnosis.plan == hypothesis.fix.text:
            count += 1
    return count >= TRIES.get(hypothesis.kind, 1)
