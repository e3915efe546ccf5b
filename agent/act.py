"""Takes the next call of the queue through gate, policy, run and observation; one call a step."""

from __future__ import annotations

from agent import gate
from agent.approval import Word, decide
from agent.control import CONTROLS
from agent.controls import carry_out
from agent.dispatch import Invalid, Prepared, end, execute, prepare, queue
from agent.events import ApprovalAnswered, ApprovalAsked, FixOpened
from agent.fold import CallRecord
from agent.run import Run
from agent.values import CallStatus
from tools.base import Risk
from tools.registry import TOOLS

REPEATABLE = frozenset(
    tool.name for tool in TOOLS if tool.risk is Risk.READ or "process_up" in tool.establishes
)
"""Calls that may be sent again after a crash: reads, and jobs that are claimed by their call id."""


def act(run: Run) -> None:
    """Carry the head of the queue one step further: to its result, or to a question."""
    record = run.view.calls[run.view.queue[0]]
    if record.started >= 0 and record.call.tool not in REPEATABLE:
        words = "the run broke off while this call was under way; its effect is not known"
        end(run, record.call, CallStatus.UNKNOWN, words)
        return
    try:
        ready = prepare(run, record.call)
    except Invalid as error:
        end(run, record.call, CallStatus.INVALID, str(error))
        return
    queue(run, ready, "brain")
    if _may_go(run, record, ready):
        _go(run, ready)


def _may_go(run: Run, record: CallRecord, ready: Prepared) -> bool:
    ruling = gate.judge(run.view, ready.call, ready.risk, ready.touches)
    if not ruling.go:
        _refuse(run, ready, ruling.reason)
        return False
    if record.approval:
        return _heed(run, record, ready)
    decision = decide(
        run.policy,
        ready.call,
        ready.risk,
        ready.touches,
        always_asks=ready.tool.always_asks,
    )
    if decision.word is Word.DENY:
        _refuse(run, ready, decision.reason)
    elif decision.word is Word.ASK:
        _ask(run, ready, decision.reason)
    return decision.word is Word.ALLOW


def _heed(run: Run, record: CallRecord, ready: Prepared) -> bool:
    """Do as the person said: yes lets it go on, no is a refusal, stop ends the run."""
    answer = run.view.answers[record.asked]
    if ready.call.tool == "ask" or answer.answer == "yes":
        return True
    who = f"{answer.by} said {answer.answer}"
    _refuse(run, ready, f"{who}: {answer.note}" if answer.note else who)
    return False


def _ask(run: Run, ready: Prepared, reason: str) -> None:
    call = ready.call
    asked = ApprovalAsked(
        approval_id=f"a{len(run.view.approvals) + 1}",
        call_id=call.id,
        title=ready.tool.summary.splitlines()[0],
        command=ready.command.text if ready.command else call.tool,
        risk=ready.risk,
        touches=ready.touches,
        target=call.target,
        why=call.why,
        undo=ready.tool.undo_text(ready.args) or "cannot be undone by bringup",
        reason=reason,
    )
    if call.tool == "ask":
        asked = asked.model_copy(
            update={
                "title": str(call.args["question"]),
                "choices": tuple(call.args["choices"]),
                "undo": "",
            }
        )
    elif call.tool == "use_port":
        asked = asked.model_copy(update={"title": f"Use port {call.args['port']} instead."})
    run.record(asked)
    if call.tool == "ask":
        return
    if run.policy.yes and ready.risk <= Risk.CHANGE and not ready.tool.always_asks:
        run.record(ApprovalAnswered(approval_id=asked.approval_id, answer="yes", by="flag"))
    elif run.policy.on_ask == "deny" and not _interactive(run):
        note = "nobody can be asked, and --on-ask deny says that this means no"
        run.record(
            ApprovalAnswered(approval_id=asked.approval_id, answer="no", by="policy", note=note)
        )


def _interactive(run: Run) -> bool:
    return run.view.header is not None and run.view.header.interactive


def _go(run: Run, ready: Prepared) -> None:
    if ready.call.purpose.kind == "fix" and ready.risk > Risk.READ:
        _open_fix(run, ready)
    if ready.call.tool in CONTROLS:
        carry_out(run, ready)
        return
    ended = execute(run, ready)
    if ready.risk > Risk.READ and ended.status is not CallStatus.OK:
        _cancel_changes(run, f"{ready.call.tool} before it in this turn did not succeed")


def _open_fix(run: Run, ready: Prepared) -> None:
    ref = ready.call.purpose.ref
    if any(fix.opened.diagnosis_id == ref for fix in run.view.fixes.values()):
        return
    diagnosis = run.view.diagnoses[ref]
    fix_id = f"f{len(run.view.fixes) + 1}"
    run.record(
        FixOpened(
            fix_id=fix_id,
            diagnosis_id=ref,
            subject=diagnosis.subject,
            target=ready.call.target,
        )
    )


def _refuse(run: Run, ready: Prepared, reason: str) -> None:
    end(run, ready.call, CallStatus.REFUSED, reason)
    if ready.risk > Risk.READ:
        _cancel_changes(run, f"{ready.call.tool} before it in this turn was refused")


def _cancel_changes(run: Run, reason: str) -> None:
    """Cancel the later changes of the turn; its reads still run, and so does a fix's check."""
    for call_id in list(run.view.queue):
        record = run.view.calls[call_id]
        try:
            ready = prepare(run, record.call)
        except Invalid:
            continue
        if ready.risk > Risk.READ:
            queue(run, ready, "brain")
            end(run, ready.call, CallStatus.CANCELLED, f"not run: {reason}")
