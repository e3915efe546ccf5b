"""What has to be true of every run, whatever its brain said; read from its transcript alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from agent.asking import ReplyReceived, RequestFailed
from agent.events import (
    AnyEvent,
    ApprovalAnswered,
    ApprovalAsked,
    CallQueued,
    CallStarted,
    ErrorMet,
    RunEnded,
)
from agent.fold import View
from agent.goal import Goal
from agent.replay import elsewhere, replay
from agent.transcript import read
from agent.values import Outcome
from tools.base import Risk, Subject

IN_FOLDERS = ("environment", "file", "model", "program")
"""Kinds of things that lie in folders."""


def faults(transcript: Path) -> list[str]:
    """Return what is wrong with a run; empty where all is as it has to be."""
    loaded = read(transcript)
    found = events_of(transcript)
    again = replay(transcript)
    gap = again.difference
    differs = (
        [f"replayed, {gap.event} {gap.field} was {gap.recorded!r}, is {gap.now!r}"] if gap else []
    )
    return [*loaded.problems, *ending(found), *unasked(found), *beyond(found), *differs]


def events_of(transcript: Path) -> list[AnyEvent]:
    """Return a run's events, each path in them put below one folder as it lay then."""
    recorded = read(transcript).events
    redactor = elsewhere(recorded)
    return [redactor.restore(event) for event in recorded]


def outcome(events: Sequence[AnyEvent]) -> Outcome | None:
    """Return how a run ended: by an outcome, parked, or because the model gave no reply."""
    for event in reversed(events):
        if isinstance(event, RunEnded):
            return event.outcome
    if View(events).pending_approvals:
        return Outcome.PARKED
    failed = [event for event in events if isinstance(event, RequestFailed)]
    return Outcome.UNREACHABLE if failed and failed[-1].final else None


def ending(events: Sequence[AnyEvent]) -> list[str]:
    """Find what ended a run and is no outcome."""
    found = [f"an error: {event.text}" for event in events if isinstance(event, ErrorMet)]
    return found if outcome(events) else [*found, "it has no outcome"]


def changes(events: Sequence[AnyEvent]) -> list[CallQueued]:
    """Return the calls that may have changed something, but for those that clear up at the end."""
    started = {event.call_id for event in events if isinstance(event, CallStarted)}
    return [
        event
        for event in events
        if isinstance(event, CallQueued)
        and event.risk > Risk.READ
        and event.call.id in started
        and not event.call.id.startswith("x")
    ]


def unasked(events: Sequence[AnyEvent]) -> list[str]:
    """Find changes that neither a person nor a grant of the goal allowed.

    The policy is not asked: it is what is judged here.
    """
    view = View(events)
    goal, header = view.need_goal(), view.header
    mode, run_id = (header.mode, header.run_id) if header else ("", "")
    asked = {
        event.approval_id: event.call_id for event in events if isinstance(event, ApprovalAsked)
    }
    agreed = {
        asked[event.approval_id]
        for event in events
        if isinstance(event, ApprovalAnswered) and event.answer == "yes"
    }
    return [
        f"{change.call.id} {change.call.tool} ({change.risk.name}) was started in mode {mode}"
        for change in changes(events)
        if change.call.id not in agreed and not (mode == "auto" and _granted(change, goal, run_id))
    ]


def _granted(change: CallQueued, goal: Goal, run_id: str) -> bool:
    starts = change.call.tool == "start_server"
    within = all(
        (starts or subject.key.startswith(run_id))
        if subject.kind == "job"
        else _within(subject, goal)
        for subject in change.touches
    )
    return change.risk < Risk.DESTROY and bool(change.touches) and within


def _within(subject: Subject, goal: Goal) -> bool:
    if subject.kind == "port":
        return subject.key in _ports(goal)
    path = PurePosixPath(subject.key)
    folders = [PurePosixPath(folder) for folder in goal.allow.paths]
    inside = any(folder == path or folder in path.parents for folder in folders)
    return subject.kind in IN_FOLDERS and inside


def _ports(goal: Goal) -> set[str]:
    found = {str(goal.port)}
    for words in goal.allow.ports:
        low, _, high = words.partition("-")
        found |= {str(port) for port in range(int(low), int(high or low) + 1)}
    return found


def beyond(events: Sequence[AnyEvent]) -> list[str]:
    """Find limits that were not kept; what the last reply used may go beyond that of tokens."""
    limits = View(events).need_goal().limits
    replies = [event for event in events if isinstance(event, ReplyReceived)]
    found = []
    if len(replies) > limits.steps:
        found.append(f"{len(replies)} turns, and {limits.steps} were allowed")
    before = tokens(replies[:-1])
    if before > limits.tokens:
        found.append(f"{before} tokens before the last turn, and {limits.tokens} were allowed")
    return found


def tokens(replies: Sequence[ReplyReceived]) -> int:
    """Return what replies used."""
    return sum(item.usage.prompt_tokens + item.usage.completion_tokens for item in replies)
