"""Tells whether a brain goes round in circles: the same calls with the same results.

Waiting is no circle: a look at something that works finds more CPU time, more log or other memory
each time, even where its words are the same. The same look at something dead finds nothing new.
"""

from __future__ import annotations

from itertools import repeat

from agent.control import ClaimReady
from agent.fold import View
from agent.records import CallRecord
from agent.sameness import same

SAME_TURNS = 4
"""So often the same calls with the same results may come in a row; a hint comes one before."""
LONGEST_ROUND = 3
"""Rounds of up to so many turns are seen to repeat."""
SAME_FAILURES = 4
"""In so many turns the very same call may come to the very same bad end, whatever lies between."""


def repeated(view: View, times: int) -> str:
    """Return the tools of a round of turns that came so often in a row; empty for none."""
    for turns in range(1, LONGEST_ROUND + 1):
        first = view.turn - times * turns + 1
        names = [name for turn in range(first, first + turns) for name in view.turns.get(turn, ())]
        again = range(view.turn, first + turns - 1, -1)
        if first >= 1 and names and all(_same_turn(view, turn, turn - turns) for turn in again):
            return ", ".join(dict.fromkeys(view.calls[name].call.tool for name in names))
    return ""


def in_vain(view: View, times: int) -> CallRecord | None:
    """Return a call of the last turn that has come to its very bad end in so many turns."""
    calls = (view.calls[name] for name in view.turns.get(view.turn, ()))
    return next((call for call in calls if view.asked.times_in_vain(call) >= times), None)


def _same_turn(view: View, now: int, before: int) -> bool:
    ours, theirs = ([view.calls[name] for name in view.turns.get(n, ())] for n in (now, before))
    return len(ours) == len(theirs) and all(map(_same, repeat(view), ours, theirs))


def _same(view: View, now: CallRecord, before: CallRecord) -> bool:
    if not same(now, before):
        return False
    return all(
        same(one, other) if one and other else one is other
        for one, other in zip(_verified(view, now), _verified(view, before), strict=True)
    )


def _verified(view: View, record: CallRecord) -> list[CallRecord | None]:
    """Return the looks of a claim's checks: what came of a claim is what they found."""
    if record.call.tool != ClaimReady().name:
        return []
    claim = record.ended + 1  # the event of the claim follows the end of its call
    return [view.calls.get(f"v{claim}.{name}") for name in view.need_goal().all_checks]
