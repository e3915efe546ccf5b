"""Say what the set-up does, and run its tools so that a person sees them move.

Starts on Python 3.8 and uses the standard library only.
"""

from __future__ import annotations

import collections
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

START = time.monotonic()
TIME_LIMIT_S = 1800
QUIET_S = 15


class Failure(Exception):
    """The set-up cannot go on; its text says what failed and what to do."""


def elapsed() -> str:
    """Return the time since the start, as the prefix of a line."""
    return f"[{time.monotonic() - START:5.1f} s]"


def say(text: str) -> None:
    """Print one step, with the time since the start."""
    print(f"{elapsed()} {text}", flush=True)


def tool_environment() -> dict[str, str]:
    """Return the environment for uv and pip: the person's own, less what bends an install."""
    bent = {"PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "__PYVENV_LAUNCHER__"}
    kept = {name: value for name, value in os.environ.items() if name not in bent}
    kept.update(PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0", PIP_NO_INPUT="1")
    kept.update(PIP_DISABLE_PIP_VERSION_CHECK="1", PYTHONNOUSERSITE="1", PYTHONUTF8="1")
    for theirs, ours in (("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), ("PIP_CERT", "SSL_CERT_FILE")):
        if kept.get(theirs):
            kept.setdefault(ours, kept[theirs])
    return kept


def run_tool(label: str, argv: list[str], log: Path) -> tuple[int, list[str]]:
    """Run a tool to its end, showing its newest line beside the label.

    Args:
        label: What is being done, for the person.
        argv: The program and its arguments.
        log: The file that the tool's whole output is added to.

    Returns:
        The exit code and the last lines of the output.

    Raises:
        Failure: When the tool can't start, or ran longer than TIME_LIMIT_S.
    """
    lines: collections.deque[str] = collections.deque(maxlen=40)
    try:
        # close_fds=False: the lock of the project folder stays held while the tool runs, even
        # when we are killed, so that no second set-up works beside it.
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=tool_environment(),
            close_fds=False,
            start_new_session=True,
        )
    except OSError as error:
        raise Failure(f"cannot start {argv[0]}: {error.strerror}") from None
    reader = threading.Thread(target=_read, args=(child, log, lines), daemon=True)
    reader.start()
    try:
        _watch(child, label, lines)
    finally:
        _end(child)
    reader.join(timeout=5)
    return child.returncode, list(lines)


def _read(child: subprocess.Popen[bytes], log: Path, lines: collections.deque[str]) -> None:
    """Copy the tool's output to the log and to the last lines."""
    if child.stdout is None:
        return
    with log.open("ab") as file, child.stdout as output:
        for raw in output:
            file.write(raw)
            text = raw.decode("utf-8", "replace").strip()
            if text:
                lines.append(text)


def _watch(child: subprocess.Popen[bytes], label: str, lines: collections.deque[str]) -> None:
    """Wait for the tool; a terminal shows one live line, anything else a line now and then."""
    live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    began = said = time.monotonic()
    try:
        while child.poll() is None:
            now = time.monotonic()
            if now - began > TIME_LIMIT_S:
                raise Failure(f"{label}: not done after {TIME_LIMIT_S // 60} minutes; run it again")
            newest = next((line for line in reversed(list(lines)) if "WARN" not in line), "")
            if live:
                width = shutil.get_terminal_size().columns - 1
                text = "".join(c for c in f"{elapsed()}   {newest}" if c.isprintable())
                print(f"\r{text[:width]}\033[K", end="", flush=True)
            elif now - said > QUIET_S:
                said = now
                say(f"{label}  {newest[:80]}")
            time.sleep(0.1)
    finally:
        if live:
            print("\r\033[K", end="", flush=True)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the tool and what it started, if it still runs."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if child.poll() is not None:
            return
        os.killpg(child.pid, number)
        try:
            child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            continue
