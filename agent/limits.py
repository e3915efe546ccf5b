"""What a run may use, and which limit ended it; a brain that repeats itself is one of them."""

from __future__ import annotations

from agent.events import LimitReached
from agent.fold import View

SILENT_TURNS = 3
"""So many replies without a call end the run."""
SAME_TURNS = 4
"""So often the same calls with the same results may come in a row."""
LONGEST_ROUND = 3
"""Rounds of up to so many turns are seen to repeat."""


def reached(view: View, elapsed_s: float) -> LimitReached | None:
    """Return the limit that leaves no room for another turn, if there is one."""
    limits = view.need_goal().limits
    if view.turn >= limits.steps:
        return LimitReached(
            name="steps", value=limits.steps, text=f"{limits.steps} turns were used"
        )
    if elapsed_s > limits.minutes * 60:
        return LimitReached(
            name="minutes", value=limits.minutes, text=f"{limits.minutes:g} minutes were used"
        )
    return _repeats(view)


def _repeats(view: View) -> LimitReached | None:
    """Look at calls *and* results: the same call with a changing result is waiting, not a loop."""
    first = max(1, view.turn - SAME_TURNS * LONGEST_ROUND + 1)
    last = [_turn(view, turn) for turn in range(first, view.turn + 1)]
    if len(last) >= SILENT_TURNS and not any(last[-SILENT_TURNS:]):
        return LimitReached(
            name="silence", value=SILENT_TURNS, text=f"{SILENT_TURNS} replies asked for nothing"
        )
    for turns in range(1, LONGEST_ROUND + 1):
        rows = last[-SAME_TURNS * turns :]
        if len(rows) == SAME_TURNS * turns and rows[turns:] == rows[:-turns]:
            return LimitReached(
                name="repetition",
                value=SAME_TURNS,
                text=f"the same calls gave the same results {SAME_TURNS} times",
            )
    return None


def _turn(view: View, turn: int) -> list[tuple[object, ...]]:
    """Return what a turn asked and got, to be compared."""
    rows = [view.calls[name] for name in view.turns.get(turn, ())]
    return [(row.call.tool, row.call.args, row.status, row.observation) for row in rows]
