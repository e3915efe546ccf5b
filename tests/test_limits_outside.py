"""Limits and what is around a run: no input (row 46), and a framework with a limit (row 50)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agent.prompts_face import TerminalAsker
from agent.values import Outcome
from tests.lab.checkout import ROOT
from tests.lab.command import Desk, desk
from tests.lab.world_runs import LOOKS, Says, events, goal, outcome, play
from tests.lab.worlds import World


@pytest.fixture
def here(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path, tmp_path_factory.getbasetemp() / "kept-desk") as made:
        yield made


def test_46_an_input_that_has_ended_is_a_stop_and_no_loop(tmp_path: Path) -> None:
    with Path(os.devnull).open() as nothing, Path(os.devnull).open("w") as nowhere:
        asker = TerminalAsker(Console(file=nowhere), nothing)
        more: dict[str, Any] = {"mode": "supervised", "interactive": True, "answer": asker.ask}
        run = play(tmp_path, World(), **more)
    assert outcome(run) is Outcome.INTERRUPTED
    (answer,) = events(run, "approval_answered")
    assert (answer.answer, answer.note) == ("stop", "the input ended")


@pytest.mark.parametrize(
    ("steps", "code", "says"), [(1, 4, "1 turns were used"), (20, 3, "bringup approve")]
)
def test_46_a_command_without_input_ends(here: Desk, steps: int, code: int, says: str) -> None:
    here.goal(limits={"steps": steps, "minutes": 2})
    done = here.shell("bringup deploy goal.yaml")
    assert (done.code, says in done.err) == (code, True), done.err
    assert "Traceback" not in done.err
    assert "EOF" not in done.err


# --- row 50: our own count of turns, whatever the framework thinks


def test_50_the_framework_has_no_say_in_how_long_a_run_is(tmp_path: Path) -> None:
    text = (
        "import sys; from pathlib import Path; from tests.test_limits_outside import *\n"
        "run = play(Path(sys.argv[1]), World(), goal(limits={'steps': 30}), brain=Says(*LOOKS))\n"
        "print(events(run, 'limit')[0].name, run.run.view.turn)\n"
    )
    env = os.environ | {"LANGGRAPH_DEFAULT_RECURSION_LIMIT": "3", "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", text, str(tmp_path)]
    ran = subprocess.run(words, env=env, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ran.stdout.split() == ["steps", "30"], ran.stderr
    by_hand = play(tmp_path / "2", World(), goal(limits={"steps": 30}), brain=Says(*LOOKS))
    assert (events(by_hand, "limit")[0].name, by_hand.run.view.turn) == ("steps", 30)
