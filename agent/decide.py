"""Asks the brain for its next calls; the reply is on record before any of them is taken up."""

from __future__ import annotations

import hashlib
import json

from agent.asking import ReplyReceived, RequestFailed, RequestMade
from agent.brains.base import Attempt, OutOfContext, Request
from agent.events import AnyEvent, HypothesisRanked, LimitReached
from agent.frontier import Frontier, frontier
from agent.job_ends import tell_of_ends
from agent.limits import hints, reached
from agent.run import Run


def decide(run: Run) -> None:
    """Record one reply, or the limit that leaves no room for another.

    Raises:
        BrainFailed: the brain could not be asked, which is on record; nothing else has changed.
        ConnectionFailed: the host of a job that may have ended cannot be reached.
    """
    limit = reached(run.view, run.view.t)
    if limit is not None:
        run.record(limit)
        return
    tell_of_ends(run)
    turn = run.view.turn + 1
    now = frontier(run.view)
    ranked = tuple(item.as_data() for item in now.hypotheses)
    first: list[AnyEvent] = [*hints(run.view, run.view.t)]
    if ranked != run.view.hypotheses:
        first.append(HypothesisRanked(hypotheses=ranked))
    run.record(*first, RequestMade(turn=turn, digest=digest(now)))
    try:
        reply = run.brain.reply(_request(run, now, turn))
    except OutOfContext as error:
        run.record(LimitReached(name="context", value=turn, text=str(error)))
        return
    calls = tuple(
        call.model_copy(update={"id": f"t{turn}.{n}"}) for n, call in enumerate(reply.calls, 1)
    )
    run.record(
        ReplyReceived(
            turn=turn,
            text=reply.text,
            calls=calls,
            usage=reply.usage,
            reasoning=reply.reasoning,
            cut_off=reply.cut_off,
            notes=reply.notes,
        )
    )


def _request(run: Run, now: Frontier, turn: int) -> Request:
    """Give the brain its two ways of telling: to the faces, and on record."""

    def tell(text: str) -> None:
        run.tell(f"turn {turn}", "reply", text)

    def failed(attempt: Attempt) -> None:
        run.record(
            RequestFailed(
                turn=turn,
                kind=attempt.kind,
                status=attempt.status,
                text=attempt.text,
                usage=attempt.usage,
                wait_s=round(attempt.wait_s, 3),
                final=attempt.final,
            )
        )

    return Request(run.view, now, tell, failed)


def digest(now: Frontier) -> str:
    """Return a hash of what the brain was shown of where the run stands.

    Words are left out of it: they may name paths, which are others in a replay.
    """
    shown = {
        "kind": now.kind,
        "check": now.check,
        "tool": now.tool or (now.call.tool if now.call else ""),
        "hypotheses": [
            (item.kind, item.check, item.score, item.probe is None, item.fix is None)
            for item in now.hypotheses
        ],
    }
    text = json.dumps(shown, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
