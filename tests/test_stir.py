"""Where a run stands is reckoned anew only when something has moved, and comes to the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from agent.brains.base import Request
from agent.brains.briefing import now
from agent.brains.render import Fence
from agent.events import AnyEvent, CallEnded, CallQueued, CallSampled, CallStarted, ReplyReceived
from agent.fold import View
from agent.frontier import frontier
from agent.phases import Phase, phase
from agent.replay import elsewhere
from agent.stir import Stir
from agent.transcript import read
from agent.values import CallStatus, ToolCall
from tests.lab.checkout import ROOT
from tools.command import Ending, Result
from tools.files import FilePiece, ReadFile, ReadFileArgs

T = TypeVar("T")
TRANSCRIPTS = sorted((ROOT / "transcripts").glob("*.jsonl"))
FENCE = Fence("0123456789")


class Anew(Stir):
    """Keeps nothing."""

    def kept(self, name: str, make: Callable[[], T]) -> T:
        return make()


class Counted(Stir):
    """Counts how often something was made."""

    made = 0

    def kept(self, name: str, make: Callable[[], T]) -> T:
        def counted() -> T:
            self.made += 1
            return make()

        return super().kept(name, counted)


def events_of(path: Path) -> list[AnyEvent]:
    events = read(path).events
    redactor = elsewhere(events)
    return [redactor.restore(event) for event in events]


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_what_is_kept_is_what_would_be_reckoned_anew(path: Path) -> None:
    kept, anew = View(), View()
    anew.stir = Anew()
    compared = 0
    for event in events_of(path):
        kept.apply(event)
        anew.apply(event)
        if phase(anew) in (Phase.DECIDE, Phase.ACT):
            assert frontier(kept) == frontier(anew), event.id
            shown = [now(Request(view, frontier(view)), [], FENCE) for view in (kept, anew)]
            assert shown[0] == shown[1], event.id
            compared += 1
    assert compared > 3


def looks(view: View, tool: str, turn: int) -> list[AnyEvent]:
    """The events of one look at a file, as a brain has it made."""
    args = ReadFileArgs(path=f"/srv/log{turn}").model_dump(mode="json")
    call = ToolCall(id=f"t{turn}.1", tool=tool, args=args)
    result = Result(Ending.EXITED, code=0, stdout="a")
    seen = FilePiece(
        text="a", size_bytes=1, offset_bytes=0, end_bytes=1, left_out_bytes=0, real_path="/srv/log"
    )
    status, data = CallStatus.OK, seen.model_dump(mode="json")
    return [
        ReplyReceived(turn=turn, calls=(call,)),
        CallQueued(call=call),
        CallStarted(call_id=call.id),
        CallSampled(call_id=call.id, n=1, argv=("cat",), result=result),
        CallEnded(call_id=call.id, tool=tool, status=status, observation=data),
    ]


def test_looks_that_nobody_asks_about_move_nothing() -> None:
    events = events_of(ROOT / "transcripts" / "story_a_demo.jsonl")
    view = View()
    view.stir = stir = Counted()
    for event in events:
        if event.type == "request":
            break
        view.apply(event)
    frontier(view)
    for turn in range(1, 20):
        for event in looks(view, ReadFile().name, turn):
            view.apply(event.model_copy(update={"seq": view.cursor + 1}))
        frontier(view)
    assert stir.made == 1
