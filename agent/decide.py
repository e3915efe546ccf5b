"""Asks the brain for its next calls; the reply is on record before any of them is taken up."""

from __future__ import annotations

import hashlib
import json

from agent.brains.base import Request
from agent.events import HypothesisRanked, ReplyReceived, RequestMade
from agent.frontier import Frontier, frontier
from agent.limits import reached
from agent.run import Run


def decide(run: Run) -> None:
    """Record one reply, or the limit that leaves no room for another."""
    limit = reached(run.view, run.view.t)
    if limit is not None:
        run.record(limit)
        return
    turn = run.view.turn + 1
    now = frontier(run.view)
    ranked = tuple(item.as_data() for item in now.hypotheses)
    asked = RequestMade(turn=turn, digest=digest(now))
    if ranked != run.view.hypotheses:
        run.record(HypothesisRanked(hypotheses=ranked), asked)
    else:
        run.record(asked)
    reply = run.brain.reply(Request(run.view, now))
    calls = tuple(
        call.model_copy(update={"id": f"t{turn}.{n}"}) for n, call in enumerate(reply.calls, 1)
    )
    run.record(ReplyReceived(turn=turn, text=reply.text, calls=calls, usage=reply.usage))


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
