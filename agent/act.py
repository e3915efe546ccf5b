"""Takes the next call of the queue through gate, policy, run and observation; one call a step."""

from __future__ import annotations

import shlex

from agent import gate
from agent.approval import Word, decide
from agent.brains.base import OWN_BRAIN
from agent.control import CONTROLS
from agent.controls import carry_out
from agent.dispatch import STARTS_JOBS, Invalid, Prepared, end, execute, prepare, queue
from agent.events import ApprovalAnswered, ApprovalAsked, FixOpened
from agent.fold import View
from agent.foreseen import foreseen
from agent.reach import beyond
from agent.records import CallRecord
from agent.run import Run
from agent.values import CallStatus
from tools.base import Risk

SHOWN_INPUT = 400
"""So much standard input is shown to whoever approves, in characters; our scripts are longer."""
CLAIMED = STARTS_JOBS | {"build_image", "pull_image", "fetch_config", "fetch_weights"}
CLAIMED |= {"stop_container", "start_container"}
CLAIMED |= {"install_packages", "make_environment", "add_to_group", "set_limits", "operator_step"}
CLAIMED |= {"configure_docker_runtime"}
"""Changes that may be sent again after a crash: jobs are claimed by their call id, and the others
come to the same when they are done twice."""


def act(run: Run) -> None:
    """Carry the head of the queue one step further: to its result, or to a question."""
    record = run.view.calls[run.view.queue[0]]
    if record.started >= 0 and record.risk > Risk.READ and record.call.tool not in CLAIMED:
        words = "the run broke off while this call was under way; its effect is not known"
        end(run, record.call, CallStatus.UNKNOWN, words)
        return
    if record.call.problem:
        end(run, record.call, CallStatus.INVALID, record.call.problem)
        return
    try:
        ready = prepare(run, record.call)
    except Invalid as error:
        end(run, record.call, CallStatus.INVALID, str(error))
        return
    queue(run, ready, "brain")
    stopped = _stopped_by(run.view, record) if ready.risk > Risk.READ else ""
    if stopped:
        end(run, ready.call, CallStatus.CANCELLED, f"not run: {stopped}")
    elif _may_go(run, record, ready):
        _go(run, ready)


def _stopped_by(view: View, record: CallRecord) -> str:
    """Say which earlier change of the same turn did not come about; the later ones count on it.

    Reads still run, and so does a fix's check. It is read from the record, so that a run which
    broke off after a refusal goes on by the same rule.
    """
    for call_id in view.turns[record.turn]:
        earlier = view.calls[call_id]
        if earlier is record:
            return ""
        if earlier.risk > Risk.READ and earlier.status is not CallStatus.OK:
            how = _NOT_DONE.get(earlier.status or CallStatus.UNKNOWN, "did not succeed")
            return f"{earlier.call.tool} before it in this turn {how}"
    return ""


_NOT_DONE = {CallStatus.REFUSED: "was refused", CallStatus.CANCELLED: "was not run"}


def _may_go(run: Run, record: CallRecord, ready: Prepared) -> bool:
    ruling = gate.judge(run.view, ready.call, ready.risk, ready.touches)
    if not ruling.go:
        end(run, ready.call, CallStatus.REFUSED, ruling.reason)
        return False
    if record.approval:
        return _heed(run, record, ready)
    if record.started >= 0:
        return True  # it was let go on before the run broke off
    decision = decide(
        run.policy,
        ready.call,
        ready.risk,
        ready.touches,
        always_asks=ready.tool.always_asks,
        foreseen=run.policy.mode == "auto" and foreseen(run.view, ready.call),
        beyond=beyond(run.view, ready.call) if ready.risk <= Risk.READ else "",
    )
    if decision.word is Word.DENY:
        end(run, ready.call, CallStatus.REFUSED, decision.reason)
    elif decision.word is Word.ASK:
        _ask(run, ready, decision.reason)
    return decision.word is Word.ALLOW


def _heed(run: Run, record: CallRecord, ready: Prepared) -> bool:
    """Do as the person said: yes lets it go on, no is a refusal, stop ends the run."""
    answer = run.view.answers[record.asked]
    chosen = ready.call.tool == "ask" and answer.by == "person"
    if chosen or answer.answer == "yes":
        return True
    who = f"{answer.by} said {answer.answer}"
    words = f"{who}: {answer.note}" if answer.note else who
    end(run, ready.call, CallStatus.REFUSED, words)
    return False


def _ask(run: Run, ready: Prepared, reason: str) -> None:
    call = ready.call
    undo = ready.tool.undo_text(ready.args)
    if undo is None:
        undo = "cannot be undone by bringup" if ready.risk > Risk.READ else ""
    asked = ApprovalAsked(
        approval_id=f"a{len(run.view.approvals) + 1}",
        call_id=call.id,
        title=ready.tool.title(ready.args),
        command=_shown(ready),
        risk=ready.risk,
        touches=ready.touches,
        target=call.target,
        why=call.why,
        undo=undo,
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
    run.record(asked, *_answers_itself(run, ready, asked))


def _shown(ready: Prepared) -> str:
    """Return the exact command; what goes to its standard input too, where that is not a script."""
    if ready.command is None:
        return ready.call.tool
    words = (ready.command.stdin or "").strip()
    text = ready.command.text
    if ready.command.cwd not in (None, "/"):
        text = f"cd {shlex.quote(str(ready.command.cwd))} && {text}"
    whole = ready.command.via == "engine" or len(words) < SHOWN_INPUT
    return f"{text} <<< {words!r}" if words and whole else text


def settle(run: Run) -> None:
    """Answer what the policy answers by itself and a run that broke off has left open."""
    for asked in run.view.pending_approvals:
        ready = prepare(run, run.view.calls[asked.call_id].call)
        run.record(*_answers_itself(run, ready, asked))


def _answers_itself(
    run: Run, ready: Prepared, asked: ApprovalAsked
) -> tuple[ApprovalAnswered, ...]:
    """Return the answer that a flag or the policy gives, if one does."""
    name = asked.approval_id
    if run.policy.yes and ready.risk is Risk.CHANGE and _flag_may(run, ready):
        return (ApprovalAnswered(approval_id=name, answer="yes", by="flag"),)
    header = run.view.header
    interactive = header is not None and header.interactive
    if run.policy.on_ask == "deny" and not interactive:
        note = "nobody can be asked, and --on-ask deny says that this means no"
        return (ApprovalAnswered(approval_id=name, answer="no", by="policy", note=note),)
    return ()


def _flag_may(run: Run, ready: Prepared) -> bool:
    """Whether ``--yes`` answers: not a question, and no stop that the goal does not name.

    Where a model decides, nobody has read what it asks for: the flag answers only what bringup's
    own knowledge leads to as well.
    """
    if run.view.brain != OWN_BRAIN and not foreseen(run.view, ready.call):
        return False
    foreign = ready.call.tool in gate.ENDS and ready.call.purpose.kind != "recover"
    named = ready.call.args.get("name") in run.policy.stop and ready.call.tool == "stop_container"
    return not ready.tool.always_asks and (not foreign or named)


def _go(run: Run, ready: Prepared) -> None:
    if ready.call.purpose.kind == "fix" and ready.risk > Risk.READ:
        _open_fix(run, ready)
    if ready.call.tool in CONTROLS:
        carry_out(run, ready)
        return
    execute(run, ready)


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
