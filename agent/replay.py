"""Strict replay: raw results and replies as recorded, all else computed again and compared.

Today's parsers, facts, hypotheses, gate, policy and verdicts run on what the connector returned
then. Nothing is sent anywhere: a command that was not recorded, or not as the next one, is a
difference and ends the replay. Time is the recording's own. Paths are put where no machine has
them (``/replay/env`` for ``«env»``), so the whole way, redaction included, is the one that a live
run takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.approval import recorded_policy
from agent.brains.recorded import NothingRecorded
from agent.engine import STOPS, Answer, loop
from agent.events import (
    AnyEvent,
    ApprovalAnswered,
    ApprovalAsked,
    CallQueued,
    DeciderChanged,
    RedactionMap,
    RunEnded,
    RunStarted,
)
from agent.fold import View
from agent.recording import BrokeOff, Departed, Place, RecordedBrain, RecordedConnector
from agent.redact import Redactor
from agent.run import Run
from agent.transcript import MemoryTranscript, TranscriptError, read
from agent.values import Outcome

VOLATILE = {"t": True, "prev": True, "duration_s": True}
"""Fields that are not compared: they are read from the recording or from a clock."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where the replay does not do what was recorded."""

    event: str
    field: str
    recorded: str
    now: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay."""

    path: str
    compared: int
    """Events that are the same."""
    total: int
    difference: Difference | None = None

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return self.difference is None


def replay(path: Path, driver: Callable[[Run, Answer], Outcome] = loop) -> Replayed:
    """Play a transcript again and compare event by event.

    Args:
        path: the transcript.
        driver: the plain loop, or the graph.

    Raises:
        TranscriptError: it cannot be read, or does not begin with its header.
    """
    recorded = read(path).events
    redactor = elsewhere(recorded)
    events = [redactor.restore(event) for event in recorded]
    if not events or not isinstance(events[0], RunStarted):
        raise TranscriptError(f"{path}: a transcript begins with run_started; this one does not")
    run, written = _prepare(events, events[0], redactor)
    run.record(events[0], *(event for event in recorded if isinstance(event, RedactionMap)))
    departed: Departed | None = None
    try:
        _play(written, lambda: driver(run, _answers(events)))
    except Departed as met:
        departed = met
    except NothingRecorded as met:
        departed = Departed(str(met), "(the recording ends)")
    return _compare(str(path), recorded, written.events, departed)


def _play(written: MemoryTranscript, drive: Callable[[], Outcome]) -> None:
    """Drive a run, and once more from wherever the recorded one broke off and went on."""
    before = -1
    while len(written.events) > before:
        before = len(written.events)
        with suppress(BrokeOff):
            drive()
            return


def elsewhere(events: Sequence[AnyEvent]) -> Redactor:
    """Return a redactor that has every named path below ``/replay``, nested as then."""
    paths: dict[str, str] = {}
    for event in events:
        if isinstance(event, RedactionMap):
            inner = dict(event.placeholders)
            paths |= {name: f"/replay/{name}" for name, within in inner.items() if not within}
            for name, within in sorted(inner.items(), key=lambda item: len(item[1])):
                if within:
                    paths[name] = Redactor({}, paths).restore(within)
    return Redactor({}, paths)


def _prepare(
    events: Sequence[AnyEvent], header: RunStarted, redactor: Redactor
) -> tuple[Run, MemoryTranscript]:
    times = [event.t for event in events]
    written = MemoryTranscript(redactor, lambda: times[min(len(written.events), len(times) - 1)])
    place = Place(events, written)
    connector = RecordedConnector("recorded", place)
    hosts = [str(host["name"]) for host in header.goal.get("hosts", [])]
    run = Run(
        transcript=written,
        view=View(),
        brain=RecordedBrain(header.brain, place),
        connectors={name: connector for name in hosts},
        policy=recorded_policy(header.policy, header.version),
        host_dir=header.host_dir,
        sleep=lambda _: None,
    )
    return run, written


def _answers(events: Sequence[AnyEvent]) -> Answer:
    given = {event.approval_id: event for event in events if isinstance(event, ApprovalAnswered)}

    def answer(asked: list[ApprovalAsked]) -> Mapping[str, Any] | None:
        known = [given[item.approval_id] for item in asked if item.approval_id in given]
        if not known:
            return None
        return {
            event.approval_id: {"answer": event.answer, "by": event.by, "note": event.note}
            for event in known
        }

    return answer


def _compare(
    path: str, recorded: Sequence[AnyEvent], now: Sequence[AnyEvent], departed: Departed | None
) -> Replayed:
    total = _comparable_length(recorded)
    for index in range(min(total, len(now))):
        found = _difference(recorded[index], now[index])
        if found is not None:
            return Replayed(path, index, total, found)
    if len(now) >= total:
        return Replayed(path, total, total)
    missing = recorded[len(now)]
    if departed is not None:
        wanted = Difference(missing.id, "command", departed.recorded, departed.wanted)
        return Replayed(path, len(now), total, wanted)
    return Replayed(
        path, len(now), total, Difference(missing.id, "type", missing.type, "(the replay ended)")
    )


def _comparable_length(events: Sequence[AnyEvent]) -> int:
    """Leave out what came from outside, and what was done after the end."""
    for index, event in enumerate(events):
        if _from_outside(event):
            return index
        if isinstance(event, RunEnded):
            return index + 1
    return len(events)


INTERRUPTS = ("interrupted", "interrupted while it was under way")
"""How ``engine.interrupted`` names what it closes."""


def _from_outside(event: AnyEvent) -> bool:
    """Whether Ctrl-C, ``bringup stop`` or another brain begins here: no rule leads to that."""
    match event:
        case DeciderChanged():
            return True
        case RunEnded(outcome=outcome):
            return outcome is Outcome.INTERRUPTED
        case CallQueued(call=call):
            return bool(call.why == STOPS)
    return getattr(event, "message", "") in INTERRUPTS


def _difference(recorded: AnyEvent, now: AnyEvent) -> Difference | None:
    if recorded.type != now.type:
        return Difference(recorded.id, "type", recorded.type, now.type)
    then = recorded.model_dump(mode="json", exclude=VOLATILE)
    today = now.model_dump(mode="json", exclude=VOLATILE)
    if then.get("status") == today.get("status") == "ok":
        then.pop("message"), today.pop("message")  # words for people, made of the observation
    return _first(recorded.id, "", then, today)


def _first(event: str, where: str, then: Any, today: Any) -> Difference | None:
    if isinstance(then, dict) and isinstance(today, dict):
        for key in [*then, *(key for key in today if key not in then)]:
            found = _first(event, f"{where}.{key}", then.get(key), today.get(key))
            if found is not None:
                return found
        return None
    if then == today:
        return None
    return Difference(event, where.lstrip("."), str(then)[:400], str(today)[:400])
