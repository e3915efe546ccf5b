"""What a run may use, what is said before a limit is reached, and which limit ended it.

A brain that repeats itself is a limit too. Calls *and* results are looked at: the same call with a
changing result is waiting, not a loop. A brain is told once before it is stopped.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.asking import HintGiven
from agent.events import LimitReached
from agent.fold import View

SILENT_TURNS = 3
"""So many replies without a call end the run; of replies without any text, one less."""
SAME_TURNS = 4
"""So often the same calls with the same results may come in a row; a hint comes one before."""
LONGEST_ROUND = 3
"""Rounds of up to so many turns are seen to repeat."""
SAME_FAILURES = 4
"""So often the very same call may come to the very same bad end, whatever lies between."""
ALARM = 0.8
"""At this share of a limit the brain is told that it is near."""


@dataclass(frozen=True, slots=True)
class _Used:
    """How much of one limit is used."""

    name: str
    used: float
    limit: float
    text: str
    left: str


def reached(view: View, elapsed_s: float) -> LimitReached | None:
    """Return the limit that leaves no room for another turn, if there is one."""
    for row in _used(view, elapsed_s):
        if row.used >= row.limit:
            return LimitReached(name=row.name, value=row.limit, text=row.text)
    return _silence(view) or _repetition(view) or _failing(view)


def hints(view: View, elapsed_s: float) -> list[HintGiven]:
    """Return what the brain has to be told now, and was not told yet."""
    found = [
        (row.name, f"{row.left}. Come to an end: claim_ready, or give_up with what was found.")
        for row in _used(view, elapsed_s)
        if row.used >= ALARM * row.limit and not view.asked.has_hint(row.name)
    ]
    since = view.turn - LONGEST_ROUND + 1
    if _rounds(view, SAME_TURNS - 1) and not view.asked.has_hint("repetition", since):
        text = (
            f"The same calls gave the same results {SAME_TURNS - 1} times. Once more ends the run: "
            "look elsewhere, change something, wait for what takes time, or give_up."
        )
        found.append(("repetition", text))
    name = _in_vain(view, SAME_FAILURES - 1)
    if name and not view.asked.has_hint("failing", view.turn):
        text = (
            f"{name} came to the very same end {SAME_FAILURES - 1} times. Once more ends the run: "
            "do something else, or give_up."
        )
        found.append(("failing", text))
    return [HintGiven(name=name, turn=view.turn, text=text) for name, text in found]


def _used(view: View, elapsed_s: float) -> list[_Used]:
    limits, usage = view.need_goal().limits, view.asked.usage
    minutes = elapsed_s / 60
    rows = [
        _Used(
            "steps",
            view.turn,
            limits.steps,
            f"{limits.steps} turns were used",
            f"{view.turn} of {limits.steps} turns are used",
        ),
        _Used(
            "minutes",
            minutes,
            limits.minutes,
            f"{limits.minutes:g} minutes were used",
            f"{minutes:.0f} of {limits.minutes:g} minutes are used",
        ),
        _Used(
            "tokens",
            usage.tokens,
            limits.tokens,
            f"{usage.tokens:,} tokens were used; the limit is {limits.tokens:,}",
            f"{usage.tokens:,} of {limits.tokens:,} tokens are used",
        ),
    ]
    if limits.usd:
        rows.append(
            _Used(
                "usd",
                usage.cost_usd,
                limits.usd,
                f"{usage.cost_usd:.2f} USD were used; the limit is {limits.usd:g}",
                f"{usage.cost_usd:.2f} of {limits.usd:g} USD are used",
            )
        )
    return rows


def _silence(view: View) -> LimitReached | None:
    last = range(max(1, view.turn - SILENT_TURNS + 1), view.turn + 1)
    silent = 0
    empty = True
    for turn in reversed(last):
        if view.turns.get(turn):
            break
        silent += 1
        empty = empty and not view.asked.replies[turn].text
    if silent >= SILENT_TURNS or (empty and silent >= SILENT_TURNS - 1):
        text = f"{silent} replies asked for nothing"
        return LimitReached(name="silence", value=silent, text=text)
    return None


def _repetition(view: View) -> LimitReached | None:
    if not _rounds(view, SAME_TURNS):
        return None
    text = f"the same calls gave the same results {SAME_TURNS} times"
    return LimitReached(name="repetition", value=SAME_TURNS, text=text)


def _rounds(view: View, times: int) -> bool:
    """Whether a round of turns came so often in a row, with the same results."""
    first = max(1, view.turn - times * LONGEST_ROUND + 1)
    last = [_turn(view, turn) for turn in range(first, view.turn + 1)]
    for turns in range(1, LONGEST_ROUND + 1):
        rows = last[-times * turns :]
        if len(rows) == times * turns and any(rows) and rows[turns:] == rows[:-turns]:
            return True
    return False


def _turn(view: View, turn: int) -> list[tuple[object, ...]]:
    """Return what a turn asked and got, to be compared."""
    rows = [view.calls[name] for name in view.turns.get(turn, ())]
    return [(row.call.tool, row.call.args, row.status, row.observation) for row in rows]


def _failing(view: View) -> LimitReached | None:
    name = _in_vain(view, SAME_FAILURES)
    if not name:
        return None
    text = f"{name} came to the very same end {SAME_FAILURES} times"
    return LimitReached(name="failing", value=SAME_FAILURES, text=text)


def _in_vain(view: View, times: int) -> str:
    """Return the tool of a call of the last turn that has failed so often; empty for none."""
    for name in view.turns.get(view.turn, ()):
        record = view.calls[name]
        if view.asked.times_in_vain(record) >= times:
            return record.call.tool
    return ""
