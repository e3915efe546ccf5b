"""The state of a run as the fold of its transcript; nothing else remembers anything.

``View.apply`` takes one event at a time, in constant time, so a run of any length costs the same a
step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agent import events as e
from agent.asked import Asked
from agent.control import CONTROLS
from agent.effects import Effects, still_failed
from agent.facts import FactStore, Known
from agent.goal import Goal, recorded_goal
from agent.records import CallRecord, FailedLooks, FixRecord
from agent.stir import Stir
from agent.values import CallStatus
from tools import registry
from tools.base import Risk


class View:
    """What a run is at this point."""

    def __init__(self, events: Iterable[e.AnyEvent] = ()) -> None:
        self.header: e.RunStarted | None = None
        self.goal: Goal | None = None
        self.facts = FactStore()
        self.calls: dict[str, CallRecord] = {}
        self.queue: list[str] = []
        """Ids of the brain's calls without a result, in order."""
        self.brain = ""
        """Name of the brain that decides now."""
        self.endpoint: dict[str, Any] = {}
        """Where that asks a model; empty for the playbook."""
        self.turn = 0
        self.turns: dict[int, tuple[str, ...]] = {}
        """Ids of each turn's calls."""
        self.cursor = -1
        self.t = 0.0
        """Time of the last event, in seconds since the run began."""
        self.diagnoses: dict[str, e.DiagnosisRecorded] = {}
        self.fixes: dict[str, FixRecord] = {}
        self.approvals: dict[str, e.ApprovalAsked] = {}
        self.answers: dict[str, e.ApprovalAnswered] = {}
        self.notes: dict[str, e.NoteAdded] = {}
        self.claim: e.Claimed | None = None
        self.checks: dict[str, e.CheckRan] = {}
        self.hypotheses: tuple[dict[str, Any], ...] = ()
        self.verified: bool | None = None
        """The verdict on the last claim: ``None`` until all checks have run."""
        self.gave_up: CallRecord | None = None
        self.limit: e.LimitReached | None = None
        self.error: e.ErrorMet | None = None
        self.ended: e.RunEnded | None = None
        self.port: int | None = None
        self.candidate = 0
        """Number of the candidate that is tried now."""
        self.rejected: dict[int, str] = {}
        """Candidates that were given up, with the reason."""
        self.effects = Effects()
        self.changes: list[CallRecord] = []
        """Calls above READ that were started, in that order."""
        self.refused: list[CallRecord] = []
        """Changes that a person or the policy refused."""
        self.failed_changes: list[CallRecord] = []
        self.failed_looks = FailedLooks()
        self.asked = Asked()
        self.stir = Stir()
        for event in events:
            self.apply(event)

    def apply(self, event: e.AnyEvent) -> None:
        """Fold one more event in."""
        self.cursor, self.t = event.seq, event.t
        handler = _HANDLERS.get(event.type)
        if handler is not None:
            handler(self, event)
        self.stir.take(self, event)

    def need_goal(self) -> Goal:
        """Return the goal; a run without a header has none."""
        if self.goal is None:
            raise ValueError("the transcript has no run_started event")
        return self.goal

    @property
    def pending_approvals(self) -> list[e.ApprovalAsked]:
        """What was asked and not answered."""
        return [item for key, item in self.approvals.items() if key not in self.answers]

    @property
    def open_fixes(self) -> list[FixRecord]:
        """Fixes whose check has not run."""
        return [fix for fix in self.fixes.values() if fix.closed is None]

    @property
    def servers(self) -> dict[str, CallRecord]:
        """Servers that this run started and did not stop, oldest first: job name to call."""
        return self.effects.servers

    @property
    def server_job(self) -> str | None:
        """The job of the server that was started last and not stopped."""
        return next(reversed(self.servers), None)

    def job_of(self, record: CallRecord) -> str:
        """Return the name of a start's job, also where it is not known to have come about."""
        run_id = self.header.run_id if self.header else ""
        return str(record.observation.get("job") or f"{run_id}-{record.call.id}")

    @property
    def may_run(self) -> dict[str, CallRecord]:
        """Servers that run, as far as is known, or whose start broke off: job name to call."""
        unsure = {
            self.job_of(record): record
            for record in self.changes
            if record.call.tool == "start_server" and record.status is CallStatus.UNKNOWN
        }
        gone = self.effects.over
        return {job: by for job, by in (self.servers | unsure).items() if job not in gone}

    def diagnosis_of(self, fix: FixRecord) -> e.DiagnosisRecorded:
        """Return the diagnosis that a fix belongs to."""
        return self.diagnoses[fix.opened.diagnosis_id]


def _run_started(view: View, event: e.RunStarted) -> None:
    view.header = event
    _decider(view, event)
    view.goal = recorded_goal(event.goal, event.version)
    view.port = view.goal.port


def _decider(view: View, event: e.RunStarted | e.DeciderChanged) -> None:
    view.brain, view.endpoint = event.brain, event.endpoint


def _reply(view: View, event: e.ReplyReceived) -> None:
    view.turn = event.turn
    view.asked.replied(event)
    view.turns[event.turn] = tuple(call.id for call in event.calls)
    for call in event.calls:
        view.calls[call.id] = CallRecord(call, event.turn)
        view.queue.append(call.id)


def _queued(view: View, event: e.CallQueued) -> None:
    record = view.calls.setdefault(event.call.id, CallRecord(event.call, view.turn))
    record.call = event.call  # its arguments in full
    record.origin, record.risk, record.touches = event.origin, event.risk, event.touches
    record.queued = event.seq


def _started(view: View, event: e.CallStarted) -> None:
    record = view.calls[event.call_id]
    if record.risk > Risk.READ:
        if record.started < 0:  # one that is claimed may be sent again
            view.changes.append(record)
        view.facts.changed(record.call.target, record.touches, event.seq)
    record.started = event.seq
    for fix in view.open_fixes:
        if record.call.purpose.kind == "fix" and (
            record.call.purpose.ref == fix.opened.diagnosis_id
        ):
            fix.calls.append(event.call_id)


def _ended(view: View, event: e.CallEnded) -> None:
    record = view.calls[event.call_id]
    record.ended, record.status, record.message = event.seq, event.status, event.message
    record.observation = event.observation
    if event.call_id in view.queue:
        view.queue.remove(event.call_id)
    if record.had_effect:
        view.facts.changed(record.call.target, record.touches, event.seq)
    if record.had_effect and event.status is not CallStatus.OK:
        view.failed_changes.append(record)
    view.failed_looks.note(record)
    view.asked.ended(record)
    view.effects.note(record, event)
    if event.status is CallStatus.OK:
        _learn(view, record, event)
    if event.status is CallStatus.REFUSED and record.risk > Risk.READ:
        view.refused.append(record)
    if record.call.tool == "give_up" and event.status is CallStatus.OK:
        view.gave_up = record


def _learn(view: View, record: CallRecord, event: e.CallEnded) -> None:
    name = record.call.tool
    if name in CONTROLS:
        _control(view, record, event)
        return
    tool = registry.find(name)
    observation = tool.observation_type.model_validate(event.observation)
    view.facts.learn(
        Known(
            name,
            record.call.target,
            record.call.args,
            observation,
            record.touches,
            event.id,
            event.seq,
        )
    )
    view.failed_changes = still_failed(view.failed_changes, record, event.observation)


def _control(view: View, record: CallRecord, event: e.CallEnded) -> None:
    if record.call.tool == "use_port":
        view.port = int(event.observation["port"])
    elif record.call.tool == "use_candidate":
        view.rejected[view.candidate] = str(record.call.args["reason"])
        view.candidate = int(record.call.args["number"])
        view.failed_changes = []


def _asked(view: View, event: e.ApprovalAsked) -> None:
    view.approvals[event.approval_id] = event
    view.calls[event.call_id].asked = event.approval_id


def _answered(view: View, event: e.ApprovalAnswered) -> None:
    view.answers[event.approval_id] = event
    view.calls[view.approvals[event.approval_id].call_id].approval = event.answer


def _diagnosis(view: View, event: e.DiagnosisRecorded) -> None:
    view.diagnoses[event.diagnosis_id] = event


def _fix_opened(view: View, event: e.FixOpened) -> None:
    view.fixes[event.fix_id] = FixRecord(event)


def _fix_closed(view: View, event: e.FixClosed) -> None:
    view.fixes[event.fix_id].closed = event


def _check(view: View, event: e.CheckRan) -> None:
    view.checks[event.name] = event
    wanted = view.need_goal().all_checks
    if all(name in view.checks for name in wanted):
        view.verified = all(view.checks[name].passed for name in wanted)


def _claimed(view: View, event: e.Claimed) -> None:
    view.claim, view.checks, view.verified = event, {}, None


def _set(name: str) -> Callable[[View, Any], None]:
    def handler(view: View, event: Any) -> None:
        setattr(view, name, event)

    return handler


def _hypotheses(view: View, event: e.HypothesisRanked) -> None:
    view.hypotheses = event.hypotheses


def _note(view: View, event: e.NoteAdded) -> None:
    view.notes[event.id] = event


_HANDLERS: dict[str, Callable[[View, Any], None]] = {
    "run_started": _run_started,
    "request_failed": lambda view, event: view.asked.attempt_failed(event),
    "reply": _reply,
    "decider": _decider,
    "hint": lambda view, event: view.asked.hinted(event),
    "call_queued": _queued,
    "call_started": _started,
    "call_ended": _ended,
    "approval_asked": _asked,
    "approval_answered": _answered,
    "diagnosis": _diagnosis,
    "fix_opened": _fix_opened,
    "fix_closed": _fix_closed,
    "check": _check,
    "claim": _claimed,
    "note": _note,
    "hypotheses": _hypotheses,
    "limit": _set("limit"),
    "error": _set("error"),
    "run_ended": _set("ended"),
}
