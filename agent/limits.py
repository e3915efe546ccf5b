"""What a run may use, what is said before a limit is reached, and which limit ended it.

A brain that goes round in circles or says nothing meets a limit too. It is told once before each.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.asking import HintGiven
from agent.events import LimitReached
from agent.fold import View
from agent.loops import LONGEST_ROUND, SAME_FAILURES, SAME_TURNS, in_vain, repeated

SILENT_TURNS = 3
"""So many replies without a call end the run; of replies without any text, one less."""
ALARM = 0.8
"""At this share of a limit the brain is told that it is near."""
ENDING = "Come to an end: claim_ready, or give_up with what was found."


@dataclass(frozen=True, slots=True)
class _Used:
    """How much of one limit is used."""

    name: str
    unit: str
    used: float
    limit: float
    about: bool = False

    @property
    def is_near(self) -> bool:
        """Whether it is time to say so: of turns, when one is left at the latest."""
        last = self.name == "steps" and self.used >= self.limit - 1
        return last or self.used >= ALARM * self.limit

    def says(self, form: str) -> str:
        """Fill a form in: how much is used, of what, and the limit."""
        digits = 2 if self.name == "usd" else 0
        used = f"{'about ' if self.about else ''}{self.used:,.{digits}f}"
        limit = f"{self.limit:g}" if self.limit < 1000 else f"{self.limit:,.0f}"
        return form.format(used=used, limit=limit, unit=self.unit)


def reached(view: View, elapsed_s: float) -> LimitReached | None:
    """Return the limit that leaves no room for another turn, if there is one.

    Args:
        view: where the run stands.
        elapsed_s: seconds since it began, the time that it was parked left out.
    """
    for row in _used(view, elapsed_s):
        if row.used >= row.limit:
            text = row.says("{used} {unit} were used; the limit is {limit}")
            return LimitReached(name=row.name, value=row.limit, text=text)
    return _silence(view) or _circle(view)


def hints(view: View, elapsed_s: float) -> list[HintGiven]:
    """Return what the brain has to be told now, and was not told yet."""
    found = {
        row.name: row.says(f"{{used}} of {{limit}} {{unit}} are used. {ENDING}")
        for row in _used(view, elapsed_s)
        if row.is_near and not view.asked.has_hint(row.name)
    }
    name, text = _warning(view)
    since = view.turn - LONGEST_ROUND + 1 if name == "repetition" else view.turn
    if name and not view.asked.has_hint(name, since):
        found[name] = text
    return [HintGiven(name=name, turn=view.turn, text=text) for name, text in found.items()]


def time_left_s(view: View) -> float:
    """Return the seconds that are left of the run's minutes; negative where it has overrun."""
    return 60 * (view.need_goal().limits.minutes - _minutes(view, view.t))


def _minutes(view: View, elapsed_s: float) -> float:
    """Return the minutes that count: while a question waits for a person the run does nothing."""
    waited = until = 0.0
    for key, answer in view.answers.items():
        if answer.by == "person":
            waited += max(0.0, answer.t - max(view.approvals[key].t, until))
            until = max(until, answer.t)
    return (elapsed_s - waited) / 60


def _used(view: View, elapsed_s: float) -> list[_Used]:
    limits, usage = view.need_goal().limits, view.asked.usage
    rows = [
        _Used("minutes", "minutes", _minutes(view, elapsed_s), limits.minutes),
        _Used("steps", "turns", view.turn, limits.steps),
        _Used("tokens", "tokens", usage.tokens, limits.tokens, usage.estimated),
        _Used("usd", "USD", usage.cost_usd, limits.usd, usage.estimated),
    ]
    return [row for row in rows if row.limit]


def _silence(view: View) -> LimitReached | None:
    silent, empty = _silent(view)
    if silent >= SILENT_TURNS or (empty and silent >= SILENT_TURNS - 1):
        text = f"{silent} replies asked for nothing"
        return LimitReached(name="silence", value=silent, text=text)
    return None


def _silent(view: View) -> tuple[int, bool]:
    """Return how many replies without a call came last, and whether none of them has text."""
    silent, empty = 0, True
    while silent < min(SILENT_TURNS, view.turn) and not view.turns.get(view.turn - silent):
        empty = empty and not view.asked.replies[view.turn - silent].text
        silent += 1
    return silent, empty


def _circle(view: View) -> LimitReached | None:
    tools = repeated(view, SAME_TURNS)
    if tools:
        text = f"the same calls gave the same results {SAME_TURNS} times: {tools}"
        return LimitReached(name="repetition", value=SAME_TURNS, text=text)
    record = in_vain(view, SAME_FAILURES)
    if record is not None:
        text = f"{record.call.tool} came to the very same end {SAME_FAILURES} times"
        text += f", the last time in e{record.ended}"
        return LimitReached(name="failing", value=SAME_FAILURES, text=text)
    return None


def _warning(view: View) -> tuple[str, str]:
    """Return the name and the text of a hint: what ends the run if it goes on like this."""
    tools = repeated(view, SAME_TURNS - 1)
    if tools:
        return "repetition", (
            f"The same calls gave the same results {SAME_TURNS - 1} times, without a sign of life: "
            f"{tools}. Once more ends the run. Look elsewhere, change something, or give_up. For "
            "what takes time there are watch_server and watch_service; job_status and "
            "container_use tell whether something works."
        )
    record = in_vain(view, SAME_FAILURES - 1)
    if record is not None:
        return "failing", (
            f"{record.call.tool} came to the very same end {SAME_FAILURES - 1} times, the last "
            f"time in e{record.ended}. Once more ends the run: do something else, or give_up."
        )
    if _silent(view)[0]:
        return "silence", (
            "A reply without a call does nothing. Call a tool; claim_ready when the goal is "
            "reached, give_up when it cannot be."
        )
    return "", ""
