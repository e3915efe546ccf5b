"""What a step costs when a model decides that answers at once, beside mini-swe-agent.

Both ask the same endpoint, get turns of the same length back and see the same pieces of a log.
"""

from __future__ import annotations

import itertools
import shutil
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.bench.episode import WINDOW
from tests.bench.fake_endpoint import LEAD, Asked, endpoint
from tests.bench.processes import figures
from tests.bench.rounds import Case, Figures, Rounds, interleave, say
from tests.bench.table import Row, short
from tests.lab.environments import environment

MINI = "mini-swe-agent==2.4.6"
THEIRS = "mini-swe-agent 2.4.6"
MOST_MS, MOST_RATIO, MOST_GROWTH = 5.0, 0.15, 2.0
"""Targets at 400 steps: a step; a step beside the peer's; the last steps beside the first."""
FEW, MANY = 50, 400
WIDE, NARROW = 1_000_000, 32_000
"""Tokens of context: all that is said fits, or old results have to be shortened."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One episode."""

    agent: str
    steps: int
    form: str = "stream"
    context: int = WIDE


OURS = {steps: f"ours {steps}" for steps in (FEW, MANY)}
PEER = {steps: f"mini {steps}" for steps in (FEW, MANY)}
WHOLE, SHORTENED = "whole", "shortened"
RUNS = {
    OURS[FEW]: _Run("ours", FEW),
    OURS[MANY]: _Run("ours", MANY),
    WHOLE: _Run("ours", MANY, form="json"),
    SHORTENED: _Run("ours", MANY, context=NARROW),
}
PEERS = {PEER[steps]: _Run("mini", steps, form="json") for steps in (FEW, MANY)}
"""It asks for whole replies; ours come as streams, an event a token, unless it says otherwise."""


def rows(rounds: int) -> list[Row]:
    """Measure; 0 rounds are no rows. Without the peer's environment its cells stay empty."""
    if not rounds:
        return []
    python, missing = _peer()
    cases = {name: _case(run, python) for name, run in (RUNS | (PEERS if python else {})).items()}
    taken = interleave(cases, rounds, warmups=0)
    table = [_step(taken, steps, OURS[steps]) for steps in (FEW, MANY)]
    table += [*(_beside(taken) if python else ()), _growth(taken), _answering(taken)]
    table += [_step(taken, MANY, WHOLE, ", replies whole"), *_shortened(taken), _sent(taken)]
    return [*table, Row(THEIRS, f"left out: {missing}")] if missing else table


def _peer() -> tuple[Path | None, str]:
    """Return the peer's Python, made where it is not there yet; else why there is none."""
    say(f"an environment with {MINI}")
    try:
        return environment(MINI) / "bin" / "python", ""
    except RuntimeError as error:
        return None, f"pip could not install {MINI}: {str(error).strip().splitlines()[-1][:100]}"


def _case(run: _Run, python: Path | None) -> Case:
    def measure() -> Figures:
        folder = Path(tempfile.mkdtemp(prefix="bringup-bench-"))
        try:
            with endpoint(run.agent, run.form, run.steps) as (port, asked):
                words = [str(run.steps), str(folder), str(port)]
                if run.agent == "mini":
                    taken = figures("mini_case", *words, python=python)
                else:
                    taken = figures("chat_case", *words, run.form, str(run.context))
            return {**taken, **_seen(asked)}
        finally:
            shutil.rmtree(folder)

    return measure


def _seen(asked: Asked) -> Figures:
    """Return what the endpoint saw: milliseconds from one request's arrival to the next."""
    at = [arrived * 1e3 for arrived, _, _ in asked[LEAD:]]
    spent = [after - before for before, after in itertools.pairwise(at)]
    answering = [(answered - arrived) * 1e3 for arrived, answered, _ in asked[LEAD:]]
    first, last = statistics.median(spent[:WINDOW]), statistics.median(spent[-WINDOW:])
    return {
        "ms": statistics.fmean(spent),
        "growth": last / first,
        "answering_ms": statistics.fmean(answering),
        "sent_bytes": sum(size for _, _, size in asked),
    }


def _step(taken: Rounds, steps: int, ours: str, what: str = "") -> Row:
    theirs = PEER[steps]
    value = taken.median(ours, "ms")
    there = theirs in taken.figures
    return Row(
        f"a step of {steps} with a model{what}",
        short(value, "ms"),
        THEIRS if there else "",
        short(taken.median(theirs, "ms"), "ms") if there else "",
        taken.ratio(ours, theirs, "ms") if there else None,
        judged=value,
        at_most=MOST_MS if ours == OURS[MANY] else None,
        unit="ms",
    )


def _beside(taken: Rounds) -> list[Row]:
    """Judge the ratio of a long run's steps, and compare processor time."""
    ours, theirs = OURS[MANY], PEER[MANY]
    ratio, used = taken.ratio(ours, theirs, "ms"), taken.ratio(ours, theirs, "cpu_ms")
    return [
        Row(
            f"a step of {MANY} with a model ÷ the peer's",
            short(ratio, "times"),
            judged=ratio,
            at_most=MOST_RATIO,
            unit="times",
        ),
        Row(
            f"a step of {MANY} with a model: processor time",
            short(taken.median(ours, "cpu_ms"), "ms"),
            THEIRS,
            short(taken.median(theirs, "cpu_ms"), "ms"),
            used,
        ),
    ]


def _answering(taken: Rounds) -> Row:
    """Say how much of a step is the endpoint's: to take the request in, and to answer it."""
    name = f"a step of {MANY} with a model: the endpoint's own"
    return Row(name, short(taken.median(OURS[MANY], "answering_ms"), "ms"))


def _growth(taken: Rounds) -> Row:
    theirs = PEER[MANY]
    there = theirs in taken.figures
    value = taken.median(OURS[MANY], "growth")
    return Row(
        f"a step of {MANY} with a model: the last {WINDOW} ÷ the first {WINDOW}",
        short(value, "times"),
        THEIRS if there else "",
        short(taken.median(theirs, "growth"), "times") if there else "",
        judged=value,
        at_most=MOST_GROWTH,
        unit="times",
    )


def _shortened(taken: Rounds) -> list[Row]:
    """Say what a context makes that is too short for all that was said."""
    name = f"a step of {MANY} with a model, context {NARROW:,} tokens"
    growth = taken.median(SHORTENED, "growth")
    return [
        Row(
            name,
            short(taken.median(SHORTENED, "ms"), "ms"),
            f"context {WIDE:,}",
            short(taken.median(OURS[MANY], "ms"), "ms"),
            taken.ratio(SHORTENED, OURS[MANY], "ms"),
        ),
        Row(
            f"{name}: last ÷ first",
            short(growth, "times"),
            judged=growth,
            at_most=MOST_GROWTH,
            unit="times",
        ),
    ]


def _sent(taken: Rounds) -> Row:
    ours, theirs = OURS[MANY], PEER[MANY]
    there = theirs in taken.figures
    return Row(
        f"{MANY} steps with a model: sent in all",
        short(taken.median(ours, "sent_bytes") / 1e6, "MB"),
        THEIRS if there else "",
        short(taken.median(theirs, "sent_bytes") / 1e6, "MB") if there else "",
        taken.ratio(ours, theirs, "sent_bytes") if there else None,
    )
