"""Carries out the control tools: what a brain says of the run itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from agent import diagnose, gate
from agent.checking import run_check
from agent.checks import checks_of, standing
from agent.control import (
    AppliedArgs,
    AskArgs,
    ClaimArgs,
    DiagnosisArgs,
    GiveUpArgs,
    Said,
    UseCandidateArgs,
    UseImageArgs,
    UsePortArgs,
    WaitArgs,
    Waited,
)
from agent.dispatch import Prepared, closing, end
from agent.events import AnyEvent, CallStarted, Claimed, DiagnosisRecorded, FixClosed
from agent.limits import time_left_s
from agent.records import FixRecord
from agent.run import Run
from agent.site import site_of
from agent.values import CallStatus, FixVerdict
from tools.images import ImageState, InspectImage

WAIT_PIECE_S = 1.0
"""A wait is made of pieces of so many seconds, so that it can be ended, and tells what is left."""


def carry_out(run: Run, ready: Prepared) -> None:
    """Do what the control call says and record its one result."""
    _ACTS[type(ready.args)](run, ready, ready.args)


def _said(run: Run, ready: Prepared, said: Said, *found: AnyEvent) -> None:
    """Record what came of the call and its result in one go: neither is without the other."""
    data = said.model_dump(mode="json")
    run.record(*found, closing(ready.call, CallStatus.OK, said.text, data))


def _record_diagnosis(run: Run, ready: Prepared, args: DiagnosisArgs) -> None:
    site = site_of(run.view)
    checks = checks_of(site)
    if args.check not in checks:
        known = ", ".join(checks)
        end(run, ready.call, CallStatus.INVALID, f"no check {args.check}; known: {known}")
        return
    last = next(reversed(run.view.diagnoses.values()), None)
    if last is not None and last.seq == run.view.cursor:  # the run broke off right behind it
        _said(run, ready, _recorded(last))
        return
    check = checks[args.check]
    subject = check.subject(site)
    ruling = gate.evidence_ruling(run.view, site.target, subject, args.evidence)
    if not ruling.go:
        end(run, ready.call, CallStatus.REFUSED, ruling.reason)
        return
    now = standing(run.view, check).verdict
    if now.passed:
        end(run, ready.call, CallStatus.REFUSED, f"{args.check} holds: there is nothing to mend")
        return
    diagnosis = DiagnosisRecorded(
        diagnosis_id=f"d{len(run.view.diagnoses) + 1}",
        kind=args.kind,
        cause=args.cause,
        evidence=args.evidence,
        subject=subject,
        target=site.target,
        check=args.check,
        signature=diagnose.signature_of(run.view, args.check, now.failure),
        plan=args.plan,
    )
    _said(run, ready, _recorded(diagnosis), diagnosis)


def _recorded(diagnosis: DiagnosisRecorded) -> Said:
    name = diagnosis.diagnosis_id
    return Said(text=f"recorded as {name}", ref=name)


def _applied(run: Run, ready: Prepared, args: AppliedArgs) -> None:
    fixes = [fix for fix in run.view.fixes.values() if fix.opened.diagnosis_id == args.diagnosis]
    closed = fixes[-1].closed if fixes else None
    if not fixes or (closed is not None and closed.seq != run.view.cursor):
        words = f"there is no open fix of {args.diagnosis}"
        refused = any(no.call.purpose.ref == args.diagnosis for no in run.view.refused)
        status = CallStatus.CANCELLED if refused else CallStatus.INVALID
        end(run, ready.call, status, f"{words}: nothing of it was done" if refused else words)
    elif closed is not None:  # the run broke off right behind the verdict
        _said(run, ready, _judged(closed))
    else:
        closed = judge_fix(run, fixes[-1], f"{ready.call.id}k")
        _said(run, ready, _judged(closed), closed)


def _judged(closed: FixClosed) -> Said:
    text = f"{closed.fix_id} {closed.verdict}"
    return Said(text=text, ref=closed.fix_id, verdict=closed.verdict)


def judge_fix(run: Run, fix: FixRecord, call_id: str) -> FixClosed:
    """Run a fix's check and compare the failure with the one that it was to remove."""
    diagnosis = run.view.diagnosis_of(fix)
    now = run_check(run, diagnosis.check, call_id, "fix_check")
    verdict, after = _compare(run, diagnosis.check, diagnosis.signature, now.verdict)
    done = [run.view.calls[name] for name in fix.calls]
    applied = any(record.status is CallStatus.OK for record in done)
    reason = ""
    if verdict is FixVerdict.REFUTED and fix.broke_off(run.view.calls) and not applied:
        verdict = FixVerdict.INCONCLUSIVE
        reason = "a call of it broke off, so it may never have been applied"
    elif verdict is FixVerdict.REFUTED:
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
    said = Said(text="the checks decide").model_dump(mode="json")
    run.record(
        closing(ready.call, CallStatus.OK, "the checks decide", said), Claimed(text=args.text)
    )


def _ask(run: Run, ready: Prepared, args: AskArgs) -> None:
    record = run.view.calls[ready.call.id]
    answer = run.view.answers[record.asked]
    said = f"{answer.by} chose {answer.answer}"
    said += f" and said: {answer.note}" if answer.note else ""
    _said(run, ready, Said(text=said, answer=answer.answer))


def _wait(run: Run, ready: Prepared, args: WaitArgs) -> None:
    """Let time pass in short pieces; Ctrl-C ends it, and in a replay no time passes."""
    if run.view.calls[ready.call.id].started < 0:
        run.record(CallStarted(call_id=ready.call.id))
    left_s = max(0.0, time_left_s(run.view))
    whole_s = min(float(args.seconds), left_s)
    rest_s = whole_s
    while rest_s > 0:
        run.tell(ready.call.id, "progress", f"waiting, {math.ceil(rest_s)} s left")
        run.sleep(min(WAIT_PIECE_S, rest_s))
        rest_s -= WAIT_PIECE_S
    cut = "" if whole_s == args.seconds else "; the run has no more time"
    text = f"waited {whole_s:.0f} s{cut}"
    _said(run, ready, Waited(text=text, waited_s=round(whole_s, 3)))


def _use_port(run: Run, ready: Prepared, args: UsePortArgs) -> None:
    _said(run, ready, Said(text=f"port {args.port} from now on", port=args.port))


def _use_candidate(run: Run, ready: Prepared, args: UseCandidateArgs) -> None:
    view = run.view
    names = [item.title for item in view.need_goal().candidates]
    if args.number >= len(names):
        words = f"there is no candidate {args.number}; the goal names {len(names)}, from 0"
        end(run, ready.call, CallStatus.INVALID, words)
    elif args.number in {view.candidate, *view.rejected}:
        words = f"candidate {args.number} is the present one, or was given up before"
        end(run, ready.call, CallStatus.REFUSED, words)
    elif view.open_fixes or view.may_run or view.effects.serving:
        words = "a fix is open, or a server of the present candidate runs: end that first"
        end(run, ready.call, CallStatus.REFUSED, words)
    else:
        _said(run, ready, Said(text=f"{names[args.number]} from now on"))


def _use_image(run: Run, ready: Prepared, args: UseImageArgs) -> None:
    rows = run.view.facts.known(InspectImage)
    seen = [row.observation for row in rows if row.args.get("image") == args.image]
    own = site_of(run.view).candidate.image
    if not own or args.base != own:
        words = f"{args.base} is not the image of the present candidate"
        end(run, ready.call, CallStatus.REFUSED, words)
        return
    if not any(isinstance(state, ImageState) and state.present for state in seen):
        words = f"{args.image} has not been seen on the host; inspect_image tells"
        end(run, ready.call, CallStatus.REFUSED, words)
        return
    _said(run, ready, Said(text=f"{args.image}, derived before, stands in for {args.base}"))


def _give_up(run: Run, ready: Prepared, args: GiveUpArgs) -> None:
    said = Said(text=args.cause)
    end(run, ready.call, CallStatus.OK, args.cause, said.model_dump(mode="json"))


_ACTS: dict[type, Callable[[Run, Prepared, Any], None]] = {
    DiagnosisArgs: _record_diagnosis,
    AppliedArgs: _applied,
    ClaimArgs: _claim,
    AskArgs: _ask,
    WaitArgs: _wait,
    UsePortArgs: _use_port,
    UseCandidateArgs: _use_candidate,
    UseImageArgs: _use_image,
    GiveUpArgs: _give_up,
}
