"""Carries out the control tools: what a brain says of the run itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent import diagnose, gate
from agent.checking import run_check
from agent.checks import CHECKS, standing
from agent.control import (
    AppliedArgs,
    AskArgs,
    ClaimArgs,
    DiagnosisArgs,
    GiveUpArgs,
    Said,
    UsePortArgs,
)
from agent.dispatch import Prepared, closing, end
from agent.events import AnyEvent, Claimed, DiagnosisRecorded, FixClosed
from agent.fold import FixRecord
from agent.run import Run
from agent.site import site_of
from agent.values import CallStatus, FixVerdict


def carry_out(run: Run, ready: Prepared) -> None:
    """Do what the control call says and record its one result."""
    _ACTS[type(ready.args)](run, ready, ready.args)


def _said(run: Run, ready: Prepared, said: Said, *found: AnyEvent) -> None:
    """Record what came of the call in one go with its result, so that neither is without the other."""
    data = said.model_dump(mode="json")
    run.record(*found, closing(ready.call, CallStatus.OK, said.text, data))


def _record_diagnosis(run: Run, ready: Prepared, args: DiagnosisArgs) -> None:
    if args.check not in CHECKS:
        known = ", ".join(CHECKS)
        end(run, ready.call, CallStatus.INVALID, f"no check {args.check}; known: {known}")
        return
    site, check = site_of(run.view), CHECKS[args.check]
    subject = check.subject(site)
    ruling = gate.evidence_ruling(run.view, site.target, subject, args.evidence)
    if not ruling.go:
        end(run, ready.call, CallStatus.REFUSED, ruling.reason)
        return
    now = standing(run.view, check).verdict
    diagnosis_id = f"d{len(run.view.diagnoses) + 1}"
    run.record(
        DiagnosisRecorded(
            diagnosis_id=diagnosis_id,
            kind=args.kind,
            cause=args.cause,
            evidence=args.evidence,
            subject=subject,
            target=site.target,
            check=args.check,
            signature=diagnose.signature_of(run.view, args.check, now.failure),
            plan=args.plan,
        )
    )
    _said(run, ready, Said(text=f"recorded as {diagnosis_id}", ref=diagnosis_id))


def _applied(run: Run, ready: Prepared, args: AppliedArgs) -> None:
    fix = next(
        (item for item in run.view.open_fixes if item.opened.diagnosis_id == args.diagnosis),
        None,
    )
    if fix is None:
        words = f"there is no open fix of {args.diagnosis}"
        end(run, ready.call, CallStatus.INVALID, words)
        return
    closed = judge_fix(run, fix, f"{ready.call.id}k")
    run.record(closed)
    text = f"{fix.opened.fix_id} {closed.verdict}"
    _said(run, ready, Said(text=text, ref=fix.opened.fix_id, verdict=closed.verdict))


def judge_fix(run: Run, fix: FixRecord, call_id: str) -> FixClosed:
    """Run a fix's check and compare the failure with the one that it was to remove."""
    diagnosis = run.view.diagnosis_of(fix)
    now = run_check(run, diagnosis.check, call_id, "fix_check")
    verdict, after = _compare(run, diagnosis.check, diagnosis.signature, now.verdict)
    done = [run.view.calls[name] for name in fix.calls]
    applied = any(record.status is CallStatus.OK for record in done)
    reason = ""
    if verdict is FixVerdict.REFUTED:
        reason = (
            "left as it is: the change itself succeeded and does no harm that a check shows"
            if applied
            else "nothing to undo: no call of it succeeded"
        )
    return FixClosed(
        fix_id=fix.opened.fix_id,
        verdict=verdict,
        before=diagnosis.signature,
        after=after,
        evidence=now.evidence,
        kept=applied,
        reason=reason,
    )


def _compare(run: Run, check: str, before: str, now: Any) -> tuple[FixVerdict, str]:
    if now.passed:
        return FixVerdict.VERIFIED, ""
    if now.passed is None or not now.failure:
        return FixVerdict.INCONCLUSIVE, ""
    after = diagnose.signature_of(run.view, check, now.failure)
    return (FixVerdict.REFUTED if after == before else FixVerdict.PROGRESSED), after


def _claim(run: Run, ready: Prepared, args: ClaimArgs) -> None:
    _said(run, ready, Said(text="the checks decide"))
    run.record(Claimed(text=args.text))


def _ask(run: Run, ready: Prepared, args: AskArgs) -> None:
    record = run.view.calls[ready.call.id]
    answer = run.view.answers[record.asked]
    _said(run, ready, Said(text=f"{answer.by} chose {answer.answer}", answer=answer.answer))


def _use_port(run: Run, ready: Prepared, args: UsePortArgs) -> None:
    _said(run, ready, Said(text=f"port {args.port} from now on", port=args.port))


def _give_up(run: Run, ready: Prepared, args: GiveUpArgs) -> None:
    said = Said(text=args.cause)
    end(run, ready.call, CallStatus.OK, args.cause, said.model_dump(mode="json"))


_ACTS: dict[type, Callable[[Run, Prepared, Any], None]] = {
    DiagnosisArgs: _record_diagnosis,
    AppliedArgs: _applied,
    ClaimArgs: _claim,
    AskArgs: _ask,
    UsePortArgs: _use_port,
    GiveUpArgs: _give_up,
}
