"""Records the golden transcripts by real runs: ``python -m tests.lab.record [NAME …]``.

Each scenario is a real goal on real packages in a folder of the person's home; what comes out is
copied to ``transcripts/`` as it was written. Nothing is edited afterwards.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent.demo.checkpoint import write_checkpoint
from agent.demo.place import Place, goal_of, prepare
from agent.goal import Goal
from tests.lab.checkout import ROOT
from tests.lab.environments import (
    NEW,
    NEW_ALONE,
    OLD,
    OLD_ALONE,
    clone,
    environment,
    older_python,
    pip,
)
from tests.lab.runs import driven, serve_goal
from tests.lab.story import Yes, forget_derived, story
from tests.lab.wheels import wheel

LAB = Path.home() / "bringup-golden"
OUT = ROOT / "transcripts"
YES = "yes"


class _Quiet:
    """A preparation that nobody watches."""

    def step(self, title: str) -> Any:
        return contextlib.nullcontext()

    def detail(self, text: str) -> None:
        return


def story_a(folder: Path) -> Goal:
    """The demo: transformers 4.57.6, to a running server."""
    place = Place(folder / "demo")
    prepare(place, "", _Quiet(), lambda question: True)
    return goal_of(place, 8177)


def already_fine(folder: Path) -> Goal:
    """Nothing to fix."""
    return serve_goal(folder, clone(environment(*NEW), folder / "env"))


def satisfies_5_and_fails(folder: Path) -> Goal:
    """transformers 5.0.0, which knows less than its number says."""
    venv = clone(environment(*OLD), folder / "env")
    pip(venv, "install", "--quiet", "transformers==5.0.0")
    return serve_goal(folder, venv)


def own_config_class(folder: Path) -> Goal:
    """An engine that registers its own config class: nothing may be changed."""
    venv = clone(environment(*OLD), folder / "env")
    pip(venv, "install", "--quiet", "--no-deps", str(wheel("enginelike", folder)))
    words = ["{python}", "-m", "enginelike", "--model", "{model}", "--port", "{port}"]
    engine = {"engine": "custom", "serve": words, "registry": ["enginelike.configs"]}
    return serve_goal(folder, venv, candidate=engine, options={})


def no_torch_no_pip(folder: Path) -> Goal:
    """Two modules missing, one of them pip."""
    venv = clone(environment(*NEW_ALONE), folder / "env")
    pip(venv, "uninstall", "--yes", "--quiet", "pip")
    return serve_goal(folder, venv)


def python_too_old(folder: Path) -> Goal:
    """No release that knows the model runs on this Python: an honest stop."""
    venv = clone(environment(*OLD_ALONE, python=older_python("3.9")), folder / "env")
    return serve_goal(folder, venv)


def broken_config(folder: Path) -> Goal:
    """config.json was cut off: an honest stop."""
    goal = serve_goal(folder, clone(environment(*NEW), folder / "env"))
    text = (folder / "model" / "config.json").read_text(encoding="utf-8")
    (folder / "model" / "config.json").write_text(text[:200], encoding="utf-8")
    return goal


def refused(folder: Path) -> Goal:
    """The person refuses the fix: an honest stop."""
    return serve_goal(folder, clone(environment(*OLD), folder / "env"))


Scenario = tuple[Callable[[Path], Goal], Mapping[str, Any]]
SCENARIOS: dict[str, Scenario] = {
    "story_a_demo": (story_a, {}),
    "already_fine": (already_fine, {}),
    "satisfies_5_and_fails": (satisfies_5_and_fails, {}),
    "own_config_class": (own_config_class, {}),
    "no_torch_no_pip": (no_torch_no_pip, {}),
    "python_too_old": (python_too_old, {}),
    "broken_config": (broken_config, {}),
    "refused": (
        refused,
        {"mode": "supervised", "answers": {"a1": {"answer": "no", "note": "not now"}}},
    ),
}
"""Name to how its place is made, and how it is driven."""


STORY = "story_a_spark"
"""Story A on a real ssh host with a real engine; see ``story.py``."""
SHARED = Path("/srv/bringup-golden")
"""Where its host's folders lie: its user is another one, who may not look into a home."""


@contextlib.contextmanager
def place(name: str, folder: Path) -> Iterator[tuple[Goal, Mapping[str, Any]]]:
    """Make a scenario's place while the block runs; say its goal and how it is driven."""
    if name == STORY:
        forget_derived()
        shutil.rmtree(SHARED, ignore_errors=True)
        SHARED.mkdir(parents=True)
        with story(SHARED, known=False, port=8000) as made:
            os.environ.update(made.variables)
            yield made.goal, {"mode": "supervised", "answers": Yes()}
        forget_derived()
        shutil.rmtree(SHARED)
        return
    make, how = SCENARIOS[name]
    write_checkpoint(folder / "model")
    yield make(folder), how


def record(name: str) -> Path:
    """Run one scenario for real and keep its transcript."""
    folder = LAB / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with place(name, folder) as (goal, how), driven(goal, folder, **how) as session:
        recorded = session.transcript.path
        kept = OUT / f"{name}.jsonl"
        shutil.copyfile(recorded, kept)
    return kept


def main(names: list[str]) -> int:
    """Record the named scenarios, or all."""
    for name in names or [*SCENARIOS, STORY]:
        path = record(name)
        last = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
        words = f"{name}: {last.get('outcome', last['type'])}, {path.stat().st_size // 1024} KiB"
        sys.stdout.write(words + "\n")
    shutil.rmtree(LAB, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
