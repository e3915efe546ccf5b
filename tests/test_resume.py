"""A run that is killed goes on: whatever event was the last, it comes to the same end, once.

The host is simulated, so it can be kept as it was at every event: killed right behind event k, the
command that follows may have been sent or not, and both are tried.
"""

from __future__ import annotations

import copy
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.engine import Answer, drive, loop
from agent.events import ApprovalAsked
from agent.run import Run
from agent.runs import RunFolder
from agent.session import Session
from agent.transcript import TranscriptError, read
from agent.values import CallStatus, Outcome
from tests.lab.world_packages import VENV, Need, old_transformers
from tests.lab.world_runs import (
    Says,
    begin,
    call,
    events,
    goal,
    nobody,
    outcome,
    play,
    say,
    take_up,
)
from tests.lab.worlds import World

Driver = Callable[[Run, Answer], Outcome]


@dataclass
class Recorded:
    """A whole run, and the host as it was when each event was written."""

    run: Session
    worlds: list[World]

    def cuts(self, every: int = 1) -> Iterator[tuple[int, World]]:
        """Events that may be the last, with the host before and after what follows them."""
        for k in range(len(self.worlds) - 1):
            changes = self.worlds[k + 1].done != self.worlds[k].done
            asks = self.run.transcript.events[k].type == "approval_asked"
            if changes or asks or k % every == 0:
                yield k, self.worlds[k]
            if changes:
                yield k, self.worlds[k + 1]


def record(folder: Path, world: World, answer: Answer = nobody, **more: Any) -> Recorded:
    """Drive a run to its end and keep the host at every event."""
    first = copy.deepcopy(world)
    kept: dict[int, World] = {}
    begun = begin(folder, world, **more)
    begun.transcript.subscribe(lambda event: kept.update({event.seq: copy.deepcopy(world)}))
    drive(begun.run, answer, begun.checkpoint)
    begun.close()
    return Recorded(begun, [kept.get(event.seq, first) for event in begun.transcript.events])


def cut(run: Session, k: int, folder: Path) -> RunFolder:
    """Copy a run as it was on the disk right behind event k."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    copied = RunFolder(folder, run.folder.id)
    shutil.copy(run.folder.private, copied.private)
    lines = run.folder.transcript.read_bytes().splitlines(keepends=True)
    copied.transcript.write_bytes(b"".join(lines[: k + 1]))
    return copied


def graph(run: Run, answer: Answer) -> Outcome:
    return drive(run, answer)


def effects(world: World) -> Counter[str]:
    """What was done to the host, whatever the turn in which it was done."""
    return Counter(re.sub(r" \S+-t[\d.]+$", "", item) for item in world.done)


def whole(run: Session) -> None:
    """Every call has exactly one result, and nothing was asked twice."""
    asked = {call.id for event in events(run, "reply") for call in event.calls}
    asked |= {event.call.id for event in events(run, "call_queued")}
    results = Counter(event.call_id for event in events(run, "call_ended"))
    assert {name: results[name] for name in asked if results[name] != 1} == {}
    approvals = Counter(event.approval_id for event in events(run, "approval_asked"))
    assert set(approvals.values()) <= {1}
    assert [event.seq for event in run.transcript.events] == list(range(len(run.transcript.events)))
    assert read(run.folder.transcript).problems == ()


def modern(**more: Any) -> World:
    world = World(load_s=0.2, **more)
    world.versions["transformers"] = "5.24.0"
    return world


def old(**more: Any) -> World:
    return World(load_s=0.2, **more)


TWO = (old_transformers(), Need("einops"))
SPARE = goal(allow={"paths": [VENV], "ports": ["8001-8003"]})
STORIES: dict[str, tuple[Callable[[], World], Driver, int, dict[str, Any]]] = {
    "two fixes": (lambda: old(config_needs=TWO), loop, 1, {}),
    "through the graph": (old, graph, 5, {"mode": "supervised", "yes": True}),
    "a restart": (lambda: modern(server_needs=(Need("einops"),)), loop, 5, {}),
    "another port": (lambda: modern(held={8000: "nginx"}), loop, 5, {"wanted": SPARE}),
    "answered by a flag": (old, loop, 7, {"mode": "supervised", "yes": True}),
    "refused by policy": (old, loop, 1, {"mode": "supervised", "on_ask": "deny"}),
    "an honest stop": (lambda: old(index={}), loop, 1, {}),
}
"""Host, driver, every how many events it is killed (and around changes and questions), policy."""


@pytest.mark.parametrize(("make", "driver", "every", "more"), STORIES.values(), ids=STORIES)
def test_killed_behind_any_event_it_comes_to_the_same_end(
    tmp_path: Path, make: Callable[[], World], driver: Driver, every: int, more: dict[str, Any]
) -> None:
    recorded = record(tmp_path / "whole", make(), **more)
    expected = effects(recorded.worlds[-1])
    for k, before in recorded.cuts(every):
        world = copy.deepcopy(before)
        taken = take_up(cut(recorded.run, k, tmp_path / "cut"), world)
        driver(taken.run, nobody)
        taken.close()
        last = recorded.run.transcript.events[k]
        assert outcome(taken) is outcome(recorded.run), f"killed behind {last.id}, {last.type}"
        done = effects(world)
        again = done - expected
        assert not {name: n for name, n in again.items() if not name.startswith("start")}, last.id
        assert not expected - done, last.id
        whole(taken)


def test_a_start_is_never_sent_twice(tmp_path: Path) -> None:
    recorded = record(tmp_path / "whole", modern())
    for k, before in recorded.cuts(7):
        world = copy.deepcopy(before)
        taken = take_up(cut(recorded.run, k, tmp_path / "cut"), world)
        loop(taken.run, nobody)
        taken.close()
        assert world.count("start") == len(world.jobs) == 1


@pytest.mark.parametrize(
    ("kind", "name", "still"),
    [
        ("approval_asked", "a1", ["a1", "a2"]),
        ("approval_answered", "a1", ["a2"]),
        ("approval_asked", "a2", ["a2"]),
        ("approval_answered", "a2", []),
    ],
)
def test_killed_while_a_person_answers(
    tmp_path: Path, kind: str, name: str, still: list[str]
) -> None:
    person: dict[str, Any] = {"mode": "supervised", "interactive": True}
    recorded = record(tmp_path / "whole", old(), say("yes"), **person)
    last = next(event for event in events(recorded.run, kind) if event.approval_id == name)
    taken = take_up(cut(recorded.run, last.seq, tmp_path / "cut"), recorded.worlds[last.seq])
    asked: list[str] = []

    def yes(items: list[ApprovalAsked]) -> dict[str, str]:
        asked.extend(item.approval_id for item in items)
        return {item.approval_id: "yes" for item in items}

    assert drive(taken.run, yes) is Outcome.READY
    taken.close()
    assert asked == still
    whole(taken)


def test_what_was_under_way_is_not_known_and_looked_at_again(tmp_path: Path) -> None:
    recorded = record(tmp_path / "whole", old())
    view = recorded.run.run.view
    install = next(item for item in view.calls.values() if item.call.tool == "pip_install")
    for world in (recorded.worlds[install.started], recorded.worlds[install.started + 1]):
        world = copy.deepcopy(world)
        happened = world.count("install")
        taken = take_up(cut(recorded.run, install.started, tmp_path / "cut"), world)
        assert drive(taken.run, nobody) is Outcome.READY
        taken.close()
        assert taken.run.view.calls[install.call.id].status is CallStatus.UNKNOWN
        verdicts = [fix.verdict for fix in events(taken, "fix_closed")]
        assert verdicts == (["verified"] if happened else ["inconclusive", "verified"])
        assert world.count("install") == 1


def test_killed_while_the_goal_is_checked(tmp_path: Path) -> None:
    claim = [call("claim_ready")]
    recorded = record(tmp_path / "whole", old(), brain=Says(claim))

    def verdicts(run: Session) -> list[tuple[str, bool | None, str]]:
        return [(check.name, check.passed, check.text) for check in events(run, "check")]

    assert [passed for _, passed, _ in verdicts(recorded.run)] == [False, None, None, None]
    (claimed,) = events(recorded.run, "claim")
    for k, world in recorded.cuts():
        if k == claimed.seq - 1:
            continue  # the call's end and the claim are one write
        taken = take_up(cut(recorded.run, k, tmp_path / "cut"), copy.deepcopy(world), Says(claim))
        loop(taken.run, nobody)
        taken.close()
        whole(taken)
        assert verdicts(taken) == verdicts(recorded.run)


def test_a_torn_line_is_cut_off(tmp_path: Path) -> None:
    recorded = record(tmp_path / "whole", old())
    for k in (20, 35, 60):
        folder = cut(recorded.run, k, tmp_path / "cut")
        with folder.transcript.open("ab") as file:
            file.write(b'{"seq": 99, "type": "call_')
        taken = take_up(folder, copy.deepcopy(recorded.worlds[k]))
        assert drive(taken.run, nobody) is Outcome.READY
        assert "incomplete" in taken.transcript.problems[0]
        taken.close()
        whole(taken)


def test_it_goes_on_again_and_again(tmp_path: Path) -> None:
    world = old()

    class Killed(BaseException):
        """Like SIGKILL: nothing is written any more."""

    def kill(name: str, when: str) -> None:
        if when == "after" and len(world.asked) % 3 == 1:
            raise Killed

    begun = begin(tmp_path, world)
    world.trap = kill
    runs, session = 0, begun
    while runs < 60:
        runs += 1
        try:
            drive(session.run, nobody, session.checkpoint)
            break
        except Killed:
            session.close()
            session = take_up(begun.folder, world)
    session.close()
    assert 5 < runs < 60
    assert outcome(session) is Outcome.READY
    assert effects(world) == {"install transformers==5.24.0": 1, "start": 1}
    whole(session)


def test_the_checkpoint_may_lag_or_be_gone(tmp_path: Path) -> None:
    for what in ("gone", "another run's"):
        world = World()
        parked = play(tmp_path / what, world, mode="supervised")
        checkpoint = parked.checkpoint
        assert checkpoint.exists()
        if what == "gone":
            checkpoint.unlink()
        else:
            shutil.copy(play(tmp_path / "other", old()).checkpoint, checkpoint)
        taken = take_up(parked.folder, world)
        assert drive(taken.run, say("yes"), taken.checkpoint) is Outcome.READY
        taken.close()
        assert effects(world) == {"install transformers==5.24.0": 1, "start": 1}


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    begun = begin(tmp_path, World())
    with pytest.raises(TranscriptError, match="is writing this run"):
        take_up(begun.folder, World())
    begun.close()
    take_up(begun.folder, World()).close()


def test_an_ended_run_stays_as_it_is(tmp_path: Path) -> None:
    world = old()
    ended = play(tmp_path, world)
    before = ended.folder.transcript.read_bytes()
    taken = take_up(ended.folder, world)
    assert drive(taken.run, nobody, taken.checkpoint) is Outcome.READY
    assert loop(taken.run, nobody) is Outcome.READY
    taken.close()
    assert ended.folder.transcript.read_bytes() == before
    assert world.count("start") == 1
