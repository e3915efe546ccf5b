"""Starts what is measured as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.bench.rounds import Figures
from tests.lab.checkout import ROOT

LONGEST_S = 300.0
"""A process that takes longer is a defect, not a figure."""


def run(*words: str | Path) -> Callable[[], object]:
    """Return what runs a command to its end and fails where it does."""

    def work() -> str:
        done = subprocess.run(
            [str(word) for word in words],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{words}: exit {done.returncode}\n{done.stderr[-2000:]}")
        return done.stdout

    return work


def figures(module: str, *words: str | Path, python: Path | None = None) -> Figures:
    """Run a module of this package in a new process and return the figures that it prints.

    Args:
        module: its name.
        words: its arguments.
        python: another Python than this one, where the module is for one.
    """
    text = str(run(python or sys.executable, "-m", f"tests.bench.{module}", *words)())
    found: dict[str, float] = json.loads(text.splitlines()[-1])
    return found
