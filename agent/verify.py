"""Runs the goal's checks without any brain; only this module says *ready*."""

from __future__ import annotations

from agent.check import Standing
from agent.checking import run_check
from agent.checks import check_of, standing
from agent.events import CheckRan
from agent.fold import View
from agent.run import Run


def _known_for_good(view: View, name: str) -> Standing | None:
    """Return how a check of an image stands, if it was asked: what an image holds never changes."""
    check = check_of(view, name)
    if not check.of_image:
        return None
    now = standing(view, check)
    return now if now.verdict.passed else None


def verify(run: Run) -> None:
    """Run every check of the goal now, in order, and record each verdict.

    A failed check ends the round: the ones after it are recorded as undecided, so that nothing is
    asked of what is known not to stand.
    """
    view = run.view
    round_ = view.claim.seq if view.claim else view.cursor
    failed = next((name for name, ran in view.checks.items() if not ran.passed), "")
    for name in view.need_goal().all_checks:
        if name in view.checks:
            continue
        if failed:
            run.record(CheckRan(name=name, passed=None, text=f"not run: {failed} failed"))
            continue
        now = _known_for_good(view, name) or run_check(run, name, f"v{round_}.{name}", "verify")
        run.record(
            CheckRan(
                name=name,
                passed=now.verdict.passed,
                text=now.verdict.failure or now.verdict.text,
                evidence=now.evidence,
            )
        )
        if not now.verdict.passed:
            failed = name
