"""What a run had found when it was cut short: causes, changes, and the check that it was at."""

from __future__ import annotations

from typing import Any

from agent.check import Standing
from agent.checks import checks_of, standing
from agent.events import DiagnosisRecorded
from agent.fold import View
from agent.frontier import frontier
from agent.site import site_of


def found(view: View) -> dict[str, Any]:
    """Return what is not told elsewhere in a report; what there is none of is left out.

    ``diagnoses``: causes on record that no fix was made of · ``changes``: all that was done to
    hosts · ``failing``: the checks that are known to fail, else the first that does not hold yet.
    """
    data: dict[str, Any] = {
        "diagnoses": [
            {
                "diagnosis": item.diagnosis_id,
                "kind": item.kind,
                "cause": item.cause,
                "check": item.check,
                "plan": item.plan,
                "evidence": list(item.evidence),
            }
            for item in _without_fix(view)
        ],
        "changes": [
            {
                "tool": record.call.tool,
                "target": record.call.target,
                "touches": [str(subject) for subject in record.touches],
                "status": str(record.status or "not known"),
                "text": record.message,
                "evidence": [f"e{record.ended}"] if record.ended >= 0 else [],
            }
            for record in view.calls.values()
            if record.had_effect
        ],
        "failing": [
            {"name": name, "text": now.verdict.text, "evidence": list(now.evidence)}
            for name, now in _failing(view)
        ],
    }
    return {key: value for key, value in data.items() if value}


def _failing(view: View) -> list[tuple[str, Standing]]:
    known = {name: standing(view, check) for name, check in checks_of(site_of(view)).items()}
    failing = [(name, now) for name, now in known.items() if now.verdict.failure]
    first = frontier(view)
    return failing or ([(first.check, first.standing)] if first.standing else [])


def open_diagnosis(view: View) -> DiagnosisRecorded | None:
    """Return the last cause on record whose check does not hold and that no fix was made of."""
    checks = checks_of(site_of(view))
    for item in reversed(_without_fix(view)):
        check = checks.get(item.check)
        if check is not None and not standing(view, check).verdict.passed:
            return item
    return None


def _without_fix(view: View) -> list[DiagnosisRecorded]:
    fixed = {fix.opened.diagnosis_id for fix in view.fixes.values()}
    return [item for name, item in view.diagnoses.items() if name not in fixed]
