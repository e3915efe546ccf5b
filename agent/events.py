"""The typed events of a run: a transcript is a list of these, and a run's state is their fold.

Every event has a number (``seq``, from 0, without gaps), seconds since the run began (``t``) and a
``type``. Event ids that people and brains cite are ``e<seq>``.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, TypeAdapter

from agent.asking import DeciderChanged as DeciderChanged
from agent.asking import HintGiven as HintGiven
from agent.asking import ReplyReceived as ReplyReceived
from agent.asking import RequestFailed as RequestFailed
from agent.asking import RequestMade as RequestMade
from agent.event import Event
from agent.values import CallStatus, FixVerdict, Json, Outcome, ToolCall
from tools.base import Risk, Subject
from tools.command import Result

FORMAT_VERSION = 1
"""Version of the transcript's format; a newer one is refused with a clear message."""


class RunStarted(Event):
    """The header: everything that a replay needs besides the events."""

    type: Literal["run_started"] = "run_started"
    format: int = FORMAT_VERSION
    run_id: str
    started_at: str
    """Wall clock, ISO 8601 with zone; the only wall clock in the transcript."""
    seed: str
    """Source of the run's ids and markers."""
    version: str
    """Version of bringup."""
    goal: dict[str, Json]
    brain: str
    mode: str
    interactive: bool
    """Whether a person could be asked while the run went on."""
    yes: bool = False
    grants: tuple[str, ...] = ()
    """What the policy allowed unasked, in words."""
    policy: dict[str, Json] = Field(default_factory=dict)
    host_dir: str = ""
    """Folder on the targets for what the run leaves there."""
    endpoint: dict[str, Json] = Field(default_factory=dict)
    """The model that decides: ``base_url`` and ``model``; empty for the playbook."""


class HypothesisRanked(Event):
    """What the diagnosis engine thinks, best first, when that changed."""

    type: Literal["hypotheses"] = "hypotheses"
    hypotheses: tuple[dict[str, Json], ...]


class DiagnosisRecorded(Event):
    """A cause that somebody stands by, with its evidence and the check that will tell."""

    type: Literal["diagnosis"] = "diagnosis"
    diagnosis_id: str
    kind: str
    cause: str
    evidence: tuple[str, ...]
    """Event ids."""
    subject: Subject
    target: str = "local"
    check: str
    """Name of the check whose failure the fix is to remove."""
    signature: str = ""
    """The failure's signature when the diagnosis was made."""
    plan: str = ""
    """The fix in words."""


class CallQueued(Event):
    """A call was taken up: what it is, what it may do, and what gate and policy said."""

    lasting: ClassVar[bool] = False

    type: Literal["call_queued"] = "call_queued"
    call: ToolCall
    origin: Literal["brain", "survey", "verify", "fix_check", "job_end"] = "brain"
    risk: Risk = Risk.READ
    touches: tuple[Subject, ...] = ()
    command: str = ""
    """The exact command, for people."""


class CallStarted(Event):
    """Written and synced before the command is sent: from here on it may have had an effect."""

    type: Literal["call_started"] = "call_started"
    call_id: str
    argv: tuple[str, ...] = ()


class CallSampled(Event):
    """What the connector returned, as it came: the raw material of replay."""

    type: Literal["call_sampled"] = "call_sampled"
    call_id: str
    n: int
    argv: tuple[str, ...]
    result: Result


class CallEnded(Event):
    """The one result of a call."""

    type: Literal["call_ended"] = "call_ended"
    call_id: str
    tool: str
    status: CallStatus
    observation: dict[str, Json] = Field(default_factory=dict)
    message: str = ""
    duration_s: float = 0.0


class ApprovalAsked(Event):
    """Somebody is asked; the run waits, or parks where nobody can be asked."""

    type: Literal["approval_asked"] = "approval_asked"
    approval_id: str
    call_id: str
    title: str
    command: str
    risk: Risk
    touches: tuple[Subject, ...]
    target: str
    why: str = ""
    undo: str = ""
    reason: str = ""
    """Why it is asked: the rule that says so."""
    choices: tuple[str, ...] = ("yes", "no")


class ApprovalAnswered(Event):
    """The answer, by whom, used once."""

    type: Literal["approval_answered"] = "approval_answered"
    approval_id: str
    answer: str
    """yes, no, stop, or for a question one of its choices."""
    by: Literal["person", "policy", "flag"]
    note: str = ""


class FixOpened(Event):
    """The first call of a diagnosis' fix is about to run."""

    type: Literal["fix_opened"] = "fix_opened"
    fix_id: str
    diagnosis_id: str
    subject: Subject
    target: str


class FixClosed(Event):
    """The fix's check has run."""

    type: Literal["fix_closed"] = "fix_closed"
    fix_id: str
    verdict: FixVerdict
    before: str
    """Failure signature before."""
    after: str
    """Failure signature after, empty where the check holds."""
    evidence: tuple[str, ...]
    kept: bool = True
    reason: str = ""
    """Why a fix that did not help was kept, or what is left of it."""


class CheckRan(Event):
    """One of the goal's checks, run by code."""

    type: Literal["check"] = "check"
    name: str
    passed: bool | None
    """``None``: could not be decided."""
    text: str
    evidence: tuple[str, ...] = ()


class Claimed(Event):
    """A brain says that the goal is reached; verify decides."""

    type: Literal["claim"] = "claim"
    text: str


class NoteAdded(Event):
    """Something the person said."""

    type: Literal["note"] = "note"
    text: str


class LimitReached(Event):
    """A limit ended the run."""

    type: Literal["limit"] = "limit"
    name: str
    value: float
    text: str


class ErrorMet(Event):
    """Something that ended the run and is not an outcome: a lost host, a defect of ours."""

    type: Literal["error"] = "error"
    text: str
    where: str = ""


class RedactionMap(Event):
    """The placeholders in use; their values are never in the transcript."""

    type: Literal["redaction_map"] = "redaction_map"
    placeholders: dict[str, str]
    """Name to where it lies inside another, such as ``env`` to ``«home»/envs/a``; else empty."""


class RunEnded(Event):
    """The end: outcome, exit code and the report, written by code from the events."""

    type: Literal["run_ended"] = "run_ended"
    outcome: Outcome
    exit_code: int
    summary: str
    report: dict[str, Json] = Field(default_factory=dict)


AnyEvent = Annotated[
    RunStarted
    | RequestMade
    | RequestFailed
    | ReplyReceived
    | HintGiven
    | DeciderChanged
    | HypothesisRanked
    | DiagnosisRecorded
    | CallQueued
    | CallStarted
    | CallSampled
    | CallEnded
    | ApprovalAsked
    | ApprovalAnswered
    | FixOpened
    | FixClosed
    | CheckRan
    | Claimed
    | NoteAdded
    | LimitReached
    | ErrorMet
    | RedactionMap
    | RunEnded,
    Field(discriminator="type"),
]

EVENT: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)
"""Reads one line: ``EVENT.validate_json(line)``."""
