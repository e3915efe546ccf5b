"""Whether a call may go ahead now, and why not. Pure: a call and the view in, a ruling out.

The loop *diagnose, fix, verify* is enforced here and not by a prompt:

- every call above READ names its purpose, and the purpose has to be true of the record;
- a fix needs a recorded diagnosis whose evidence exists and is newer than the last change to its
subject;
- a change of another purpose waits while a fix of the same subject is open;
- what a person has refused is not asked again until the person says something;
- reads, ``recover`` and other subjects are never blocked.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.checks import check_of, checks_of, standing
from agent.control import CONTROLS, Ask
from agent.fold import View
from agent.site import site_of
from agent.values import CallStatus, ToolCall
from agent.ways_back import way_back
from tools.base import Risk, Subject
from tools.host_changes import TakeBack


@dataclass(frozen=True, slots=True)
class Ruling:
    """Go ahead, or not and why; the reason is for whoever asked for the call."""

    go: bool
    reason: str = ""


GO = Ruling(True)
ENDS = frozenset({"stop_container", "remove_container", "exec_in_container"})
"""Tools by which a container ends, or may end, that can be somebody else's."""


def judge(view: View, call: ToolCall, risk: Risk, touches: tuple[Subject, ...]) -> Ruling:
    """Rule on one call that is about to run."""
    if risk <= Risk.READ:
        return GO
    refused = _refused(view, call)
    if refused:
        words = f"the person refused this very call ({refused}): do something else, ask, or give_up"
        return Ruling(False, words)
    purpose = call.purpose
    rule = _PURPOSES.get(purpose.kind)
    if rule is None:
        return Ruling(
            False,
            f"{call.tool} changes something, so it needs a purpose: "
            "fix (a diagnosis id), advance (an unmet check), recover (a call id) or requested",
        )
    ruling = rule(view, call, touches)
    if ruling.go and call.tool == TakeBack().name:
        ruling = _taken_back(view, call)
    if not ruling.go or purpose.kind == "recover":
        return ruling
    return _no_open_fix(view, call, touches)


def evidence_ruling(view: View, target: str, subject: Subject, evidence: tuple[str, ...]) -> Ruling:
    """Rule on evidence: it exists, and is newer than the last change to its subject."""
    if not evidence:
        return Ruling(False, "a diagnosis needs evidence: ids of events that show the cause")
    ended = {
        f"e{record.ended}": record
        for record in view.calls.values()
        if record.ended >= 0 <= record.started
    }
    for name in evidence:
        if name not in ended or ended[name].call.tool in CONTROLS:
            return Ruling(
                False,
                f"{name} is not the result of a call on a host: leave it out, and cite results "
                "such as e12",
            )
    about = [
        record
        for record in map(ended.__getitem__, evidence)
        if record.call.target == target and (subject in record.touches or not record.touches)
    ]
    if not about:
        return Ruling(False, f"none of {', '.join(evidence)} is about {subject}")
    changed = view.facts.last_change(target, subject)
    if max(record.ended for record in about) < changed:
        return Ruling(
            False,
            f"the evidence is older than the last change to {subject} (e{changed}): look again",
        )
    return GO


def _refused(view: View, call: ToolCall) -> str:
    """Return the event by which a person refused this very call and has said nothing since.

    An answer to a question of the brain's is a word of the person's too, unless it is a no.
    """
    for record in reversed(view.refused):
        answer = view.answers.get(record.asked)
        by_person = answer is not None and (answer.by, answer.answer) == ("person", "no")
        if by_person and record.call.same_as(call):
            return "" if _spoke_since(view, record.ended) else f"e{record.ended}"
    return ""


def _spoke_since(view: View, seq: int) -> bool:
    answers = [
        answer.seq
        for key, answer in view.answers.items()
        if answer.by == "person"
        and answer.answer != "no"
        and view.calls[view.approvals[key].call_id].call.tool == Ask().name
    ]
    return any(said > seq for said in (*answers, *(note.seq for note in view.notes.values())))


def _fix(view: View, call: ToolCall, touches: tuple[Subject, ...]) -> Ruling:
    purpose = call.purpose
    diagnosis = view.diagnoses.get(purpose.ref)
    if diagnosis is None:
        return Ruling(False, f"there is no diagnosis {purpose.ref or '(none named)'}; record one")
    for fix in view.fixes.values():
        if fix.opened.diagnosis_id == purpose.ref and fix.closed is not None:
            return Ruling(False, f"the fix of {purpose.ref} was judged already; diagnose again")
    return GO


def _advance(view: View, call: ToolCall, touches: tuple[Subject, ...]) -> Ruling:
    purpose = call.purpose
    if purpose.ref not in checks_of(site_of(view)):
        return Ruling(False, f"advance names an unmet check; `{purpose.ref}` is not a check")
    if standing(view, check_of(view, purpose.ref)).verdict.passed:
        return Ruling(False, f"advance names an unmet check; {purpose.ref} holds already")
    if purpose.postcondition not in checks_of(site_of(view)):
        return Ruling(False, "advance names the check that is probed afterwards as postcondition")
    return GO


def _recover(view: View, call: ToolCall, touches: tuple[Subject, ...]) -> Ruling:
    purpose = call.purpose
    record = view.calls.get(purpose.ref)
    if record is None or not record.had_effect:
        return Ruling(False, f"recover ends an effect of this run; {purpose.ref} has none")
    if record.call.target != call.target:
        return Ruling(False, f"{purpose.ref} had its effect on {record.call.target}")
    if call.tool in ENDS and call.args["name"] not in view.effects.services:
        return Ruling(False, f"{call.args['name']} is not a container of this run")
    own = {*record.touches, Subject(kind="job", key=view.job_of(record))}
    foreign = ", ".join(str(subject) for subject in touches if subject not in own)
    if foreign:
        return Ruling(False, f"{purpose.ref} had no effect on {foreign}")
    return GO


def _taken_back(view: View, call: ToolCall) -> Ruling:
    """A change is taken back by what its own result says, and by nothing that a brain makes up."""
    record = view.calls.get(call.args["call"])
    wanted = way_back(record) if record and record.call.target == call.target else None
    if wanted is None:
        return Ruling(False, f"{call.args['call']} changed nothing here that can be taken back")
    if call.args != wanted:
        return Ruling(False, f"what {call.tool} takes back of {wanted['call']} is {wanted}")
    return GO


def _requested(view: View, call: ToolCall, touches: tuple[Subject, ...]) -> Ruling:
    purpose = call.purpose
    answered = [
        record
        for record in view.calls.values()
        if (record.call.id, record.call.tool) == (purpose.ref, "ask")
        and record.status is CallStatus.OK
        and record.approval not in ("", "no")
        and view.answers[record.asked].by == "person"
    ]
    with_words = [
        no
        for no in view.refused
        if purpose.ref in (no.call.id, f"e{no.ended}") and no.asked and view.answers[no.asked].note
    ]
    if purpose.ref in view.notes or answered or with_words:
        return GO
    return Ruling(
        False,
        "requested names what the person said: a message, an answer to `ask`, or the words given "
        f"with a no; not {purpose.ref or '(none named)'}",
    )


def _no_open_fix(view: View, call: ToolCall, touches: tuple[Subject, ...]) -> Ruling:
    for fix in view.open_fixes:
        same = call.purpose.kind == "fix" and call.purpose.ref == fix.opened.diagnosis_id
        if same or fix.opened.target != call.target:
            continue
        shared = set(touches) & _subjects_of(view, fix.calls, fix.opened.subject)
        if shared:
            names = ", ".join(sorted(str(item) for item in shared))
            return Ruling(
                False,
                f"fix {fix.opened.fix_id} of {fix.opened.diagnosis_id} is open on {names}: "
                "say `applied` first, so that its check runs",
            )
    return GO


def _subjects_of(view: View, calls: list[str], subject: Subject) -> set[Subject]:
    found = {subject}
    for call_id in calls:
        found |= set(view.calls[call_id].touches)
    return found


_PURPOSES = {"fix": _fix, "advance": _advance, "recover": _recover, "requested": _requested}
