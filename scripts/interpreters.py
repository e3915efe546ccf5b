"""Find a Python that can make the environment, and a pip that can fill it.

Starts on Python 3.8 and uses the standard library only.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from progress import Failure, tool_environment

OLDEST = (3, 11)
NAMES = ("python3.13", "python3.12", "python3.11", "python3.14", "python3", "python")
OLDER_NAMES = ("python3.10", "python3.9", "python3.8")  # too old for us; their pip may do
OLDEST_PIP = (22, 0)

QUESTION = """
import glob, json, os, sys
missing, pips = [], glob.glob("/usr/share/python-wheels/pip-*.whl")
for name in ("sqlite3", "ssl", "venv", "zlib"):
    try:
        __import__(name)
    except ImportError:
        missing.append(name)
try:
    import ensurepip
    pips += glob.glob(os.path.join(os.path.dirname(ensurepip.__file__), "_bundled", "pip-*.whl"))
except ImportError:
    pass
try:
    import pip
    pips.append(os.path.dirname(pip.__file__) + "==" + pip.__version__)
except ImportError:
    pass
base = getattr(sys, "_base_executable", None) or sys.executable
version = list(sys.version_info[:3])
print(json.dumps({"base": base, "version": version, "missing": missing, "pips": pips}))
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python, as it answered."""

    program: str
    base: str
    version: tuple[int, ...]
    missing: tuple[str, ...]
    pips: tuple[str, ...]

    @property
    def dotted(self) -> str:
        """The version, such as 3.11.7."""
        return ".".join(map(str, self.version))

    @property
    def fault(self) -> str:
        """Why it can't make the environment; empty when it can."""
        if self.version < OLDEST:
            return f"{self.program} is {self.dotted}"
        if self.missing:
            return f"{self.program} ({self.dotted}) lacks {', '.join(self.missing)}"
        return ""


def ask(program: str) -> Interpreter | None:
    """Ask a Python what it is; None when it does not answer."""
    try:
        done = subprocess.run(
            [program, "-I", "-c", QUESTION],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            env=tool_environment(),
        )
        answer = json.loads(done.stdout.strip().splitlines()[-1])
        return Interpreter(
            program,
            answer["base"],
            tuple(answer["version"]),
            tuple(answer["missing"]),
            tuple(answer["pips"]),
        )
    except (OSError, subprocess.TimeoutExpired, ValueError, LookupError, TypeError):
        return None


def find(this_only: bool) -> Interpreter:
    """Return a Python that can make the environment: the running one, else one on PATH.

    Args:
        this_only: Take the Python that runs this, or none.

    Raises:
        Failure: None can; the text says which were found and how to get one.
    """
    programs = [sys.executable] if this_only else [sys.executable, *on_path(NAMES), *known_to_uv()]
    faults = []
    for program in dict.fromkeys(programs):
        found = ask(program)
        if found and not found.fault:
            return found
        if found:
            faults.append(found.fault)
    raise Failure(
        f"bringup needs Python {OLDEST[0]}.{OLDEST[1]} or newer with its standard library"
        f" ({'; '.join(faults) or 'no Python answered'}). Install one"
        " (Debian 12, Ubuntu 24.04: sudo apt-get install python3 python3-venv;"
        " Fedora: sudo dnf install python3.12; macOS: brew install python@3.12;"
        " with uv: uv python install 3.12), then run this again,"
        " or name one: make PYTHON=/path/to/python3.12 setup"
    )


def on_path(names: tuple[str, ...]) -> list[str]:
    """Return where these programs are, in this order; those not on PATH are left out."""
    return [path for path in map(shutil.which, names) if path]


def known_to_uv() -> list[str]:
    """Return the Python that uv has found or fetched earlier, if uv is there."""
    uv = shutil.which("uv")
    if not uv:
        return []
    argv = [uv, "python", "find", "--no-project", f">={OLDEST[0]}.{OLDEST[1]}"]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.split("\n")[:1] if done.returncode == 0 else []


def pip_commands(env_python: str) -> list[list[str]]:
    """Return commands that might run a pip for this environment without being in it, newest first.

    Every Python on PATH is asked for the pip it has and the pip wheel it carries. A wheel runs
    as it is; an installed pip runs through its own runner (pip 22.3 and newer), which hides the
    packages beside it.
    """
    found: dict[str, tuple[int, ...]] = {}
    for program in on_path((*NAMES, *OLDER_NAMES)):
        interpreter = ask(program)
        for pip in interpreter.pips if interpreter else ():
            wheel = re.search(r"pip-([\d.]+)-[^/]*\.whl$", pip)
            folder, _, version = (pip + "/pip", "", wheel[1]) if wheel else pip.rpartition("==")
            runner = folder if wheel else str(Path(folder, "__pip-runner__.py"))
            if wheel or Path(runner).exists():
                found[runner] = tuple(int(part) for part in re.findall(r"\d+", version))
    newest_first = sorted(found, key=lambda runner: found[runner], reverse=True)
    return [[env_python, runner] for runner in newest_first if found[runner] >= OLDEST_PIP]
