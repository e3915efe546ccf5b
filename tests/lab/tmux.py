"""A terminal of 80 x 24 with a person at it: tmux shows the screen and types the keys."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.lab.need import need

POLL_S = 0.03


@dataclass(frozen=True, slots=True)
class Screen:
    """One terminal, in a tmux server of its own."""

    socket: str

    def tmux(self, *words: str) -> str:
        """Run one command of tmux."""
        argv = ["tmux", "-S", self.socket, *words]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
        return done.stdout

    def shown(self, *, history: bool = False) -> str:
        """Return what is on the screen, and with history also what has scrolled out of it."""
        return self.tmux("capture-pane", "-p", *(["-S", "-500"] if history else []))

    def wait_for(self, pattern: str, within_s: float) -> str:
        """Wait until the screen has a pattern, and return the screen."""
        end = time.monotonic() + within_s
        while not re.search(pattern, text := self.shown()):
            if time.monotonic() > end:
                raise TimeoutError(f"{pattern!r} did not come; the screen shows:\n{text}")
            time.sleep(POLL_S)
        return text

    def press(self, key: str) -> None:
        """Press a key, such as ``C-c``."""
        self.tmux("send-keys", key)


@contextlib.contextmanager
def screen(folder: Path, line: str, env: Mapping[str, str]) -> Iterator[Screen]:
    """Run a line of shell on a new screen, which then shows ``EXIT`` and the exit code.

    Args:
        folder: working folder; the server's socket is made in it.
        line: what to run.
        env: all variables.
    """
    need(shutil.which("tmux") is not None, "tmux is missing (apt-get install tmux)")
    terminal = Screen(str(folder / "tmux"))
    shell = f"{line}; echo EXIT $?; sleep 600"
    start = ["new-session", "-d", "-x", "80", "-y", "24", shell]
    subprocess.run(
        ["tmux", "-S", terminal.socket, "-f", "/dev/null", *start],
        cwd=folder,
        env={**env, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
        check=True,
        timeout=20,
    )
    try:
        yield terminal
    finally:
        terminal.tmux("kill-server")
