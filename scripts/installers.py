"""Install the locked packages and the project with uv or pip, and explain a failure.

Starts on Python 3.8 and uses the standard library only.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import interpreters
from progress import Failure, run_tool, say, tool_environment

ADVICE = (
    ("No space left|Disk quota", "free some space"),
    ("CERTIFICATE_VERIFY_FAILED|invalid peer certificate", "set PIP_CERT to your CA bundle"),
    ("DO NOT MATCH THE HASHES|Hash mismatch", "the package index serves other files than the lock"),
    (
        "No matching distribution|Could not find a version|not find a version|no usable wheels",
        "the package index lacks this version, or cannot be reached (PIP_INDEX_URL, HTTPS_PROXY)",
    ),
)

EMPTY_TALK = (  # lines that say nothing about the cause
    *("note: ", "hint: ", "[notice]", "[end of output]", "error: metadata-gen"),
    *("\u00d7 ", "\u2570", "WARNING: Location"),
)


def install(command: list[str], lock: Path, log: Path) -> list[str]:
    """Run both installs; return what to tell when one fails, nothing when both succeed.

    Args:
        command: uv's or pip's words up to `install`; both know the options used here.
        lock: The file with the locked packages; the project is the folder above its own.
        log: The file that takes the tool's whole output.
    """
    locked = ["--require-hashes", "--only-binary", ":all:", "-r", str(lock)]
    project = ["--no-deps", "--no-build-isolation", "-e", str(lock.parent.parent)]
    tool = "uv" if command[1] == "pip" else "pip"
    steps = ((f"the locked packages with {tool}", locked), ("the bringup command", project))
    for label, options in steps:
        say(f"installing {label}")
        code, lines = run_tool(f"installing {label}", [*command, *options], log)
        if code != 0:
            telling = [line for line in lines if not line.startswith(EMPTY_TALK)]
            told = [line for line in telling if "error" in line.lower()] or telling
            what = f"{label}: {tool} failed (exit code {code})"
            return [what, *(f"    {line}" for line in told[-4:]), f"  {advice(told, log)}"]
    return []


def advice(lines: list[str], log: Path) -> str:
    """Return what to do about a tool's last lines."""
    for pattern, remedy in ADVICE:
        if re.search(pattern, "\n".join(lines), re.IGNORECASE):
            return f"What to do: {remedy}; then run this again. All output: {log}"
    return f"Run this again; if it fails again, all output is in {log}"


def pip(python: Path) -> list[str]:
    """Return a command that runs pip for the environment of this Python.

    Raises:
        Failure: No pip is in reach.
    """
    own = [str(python), "-I", "-m", "pip"]
    ensurepip = [str(python), "-I", "-m", "ensurepip", "--default-pip"]
    if works([*own, "--version"]) or (works(ensurepip) and works([*own, "--version"])):
        return own
    for command in interpreters.pip_commands(str(python)):
        if works([*command, "list"]):
            say(f"this Python has no ensurepip; using {command[1]}")
            return command
    raise Failure(
        "neither uv nor pip can be found. Get one (Debian, Ubuntu: sudo apt-get install"
        " python3-venv), then run this again"
    )


def works(argv: list[str]) -> bool:
    """Run a command without showing it; tell whether it succeeded."""
    try:
        done = subprocess.run(argv, capture_output=True, timeout=120, env=tool_environment())
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
