"""Lets a model drive one real run: ``python -m tests.lab.live NAME --base-url U --model M``.

NAME is a fault of ``faults.py`` or a scenario of ``record.py``. A scripted person answers: yes to
everything but what the fault says. With ``--keep`` the transcript becomes a golden one.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from agent import settings
from agent.brains import choose
from agent.cli.output import say
from agent.goal import Goal
from tests.lab import faults, record
from tests.lab.runs import driven


@contextlib.contextmanager
def place(name: str, folder: Path) -> Iterator[tuple[Goal, faults.Person]]:
    """Make the place of a run while the block runs; say its goal and who is asked."""
    if name in faults.FAULTS:
        yield faults.made(name, folder)
        return
    with record.place(name, folder) as (goal, _):
        yield goal, faults.agrees


def main() -> int:
    """Drive one run and print how it ended."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.live", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--keep", action="store_true", help="as transcripts/model_NAME.jsonl")
    given = parser.parse_args()
    chosen = settings.load(base_url=given.base_url, model=given.model, model_timeout_s=1800)
    choice = choose.chosen_by(chosen)
    brain = choose.brain_of(choice, chosen, None, say)
    folder = record.LAB / given.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with (
        place(given.name, folder) as (goal, person),
        driven(
            goal,
            folder,
            mode="supervised",
            brain=brain,
            endpoint=choice.endpoint,
            answers=lambda asked: person(goal, asked),
        ) as session,
    ):
        ended = session.run.view.ended
        said = f"{ended.outcome.value}: {ended.summary}" if ended else "it has not ended"
        sys.stdout.write(f"{given.name}: {said}\n{session.transcript.path}\n")
        if given.keep:
            shutil.copyfile(session.transcript.path, record.OUT / f"model_{given.name}.jsonl")
    return 0 if ended else 1


if __name__ == "__main__":
    sys.exit(main())
