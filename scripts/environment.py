"""Bring .venv into the state that the lock describes: nothing to do, an update, or a new one.

Starts on Python 3.8 and uses the standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import interpreters
from installers import install, pip
from progress import TIME_LIMIT_S, Failure, run_tool, say

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
ENV = ROOT / ".venv"
PYTHON = ENV / "bin" / "python"
STATE = ENV / "bringup-setup.json"
LOG = ENV / "bringup-setup.log"
SPACE_MB = 700

READY, UPDATE, BUILD = "ready", "update", "build"


def main() -> int:
    """Set up, and return the exit code: 0 done, 1 failed, 130 interrupted."""
    parser = argparse.ArgumentParser(description="Make .venv and the bringup command.")
    parser.add_argument("--dev", action="store_true", help="also what tests and checks need")
    parser.add_argument(
        "--this-python", action="store_true", help="take the Python that runs this, or none"
    )
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        set_up(options.dev, options.this_python)
    except Failure as failure:
        return fail(str(failure), 1)
    except KeyboardInterrupt:
        return fail(f"interrupted; the next run makes {ENV.name} anew", 130)
    except OSError as error:
        return fail(f"{error.filename or ROOT}: {error.strerror}", 1)
    return 0


def fail(text: str, code: int) -> int:
    """Print why the set-up ended, and return the exit code."""
    print(f"set-up: {text}", file=sys.stderr, flush=True)
    return code


def set_up(dev: bool, this_python: bool) -> None:
    """Bring .venv into the state that the lock describes.

    Args:
        dev: Install what tests and checks need, too.
        this_python: Take the Python that runs this, or none.

    Raises:
        Failure: With what failed and what to do.
    """
    wanted = sys.version_info[:2] if this_python else None
    if examine(dev, wanted)[0] == READY:
        print(f"{ENV.name} is up to date")
        return
    if not os.access(ROOT, os.W_OK):
        raise Failure(f"cannot write in {ROOT}; change its owner, or copy the project elsewhere")
    with only_one():
        action, reason = examine(dev, wanted)
        if action == BUILD:
            build(reason, this_python)
        elif action == UPDATE:
            say(f"bringing {ENV.name} up to date: {reason}")
        if action != READY:
            fill(dev)
    say(f"ready: {ENV.name}/bin/bringup")


def examine(dev: bool, wanted: tuple[int, ...] | None) -> tuple[str, str]:
    """Return what .venv needs (READY, UPDATE, BUILD), and why."""
    if not os.path.lexists(ENV):
        return BUILD, "there is none yet"
    state, version = read_state(), env_version()
    if version is None:
        return BUILD, "its Python does not run"
    faults = (
        ("the last set-up did not finish", state.get("unfinished", False)),
        ("the project was moved", state.get("root", str(ROOT)) != str(ROOT)),
        ("its Python is too old", version < interpreters.OLDEST),
        ("another Python is asked for", wanted not in (None, version)),
        ("something went missing in it", not set(state.get("parts", ())) <= parts(version)),
    )
    for reason, is_so in faults:
        if is_so:
            return BUILD, reason
    if state.get("lock") != fingerprint():
        return UPDATE, "pyproject.toml or the lock changed" if state else "it was made by hand"
    if dev and not state.get("dev"):
        return UPDATE, "what tests and checks need is added"
    return READY, ""


def read_state() -> dict[str, Any]:
    """Return what the last set-up noted; empty when it noted nothing that can be read."""
    try:
        state = json.loads(STATE.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return {"unfinished": True}
    return state if isinstance(state, dict) else {"unfinished": True}


def write_state(**state: Any) -> None:
    """Note the state of .venv, in one step."""
    part = STATE.with_suffix(".part")
    part.write_text(json.dumps(state, indent=1), encoding="utf-8")
    part.replace(STATE)


def fingerprint() -> str:
    """Return the hash of all that decides what is installed."""
    sha = hashlib.sha256()
    for name in ("pyproject.toml", "requirements/runtime.txt", "requirements/dev.txt"):
        sha.update((ROOT / name).read_bytes())
    return sha.hexdigest()


def env_version() -> tuple[int, ...] | None:
    """Return the (major, minor) of .venv's Python; None when it does not run."""
    code = "import sys; print(*sys.version_info[:2])"
    try:
        done = subprocess.run(
            [str(PYTHON), "-I", "-S", "-c", code], capture_output=True, text=True, timeout=30
        )
        return tuple(map(int, done.stdout.split())) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def parts(version: tuple[int, ...]) -> set[str]:
    """Return the names of the packages and of our command, by which a lost one is noticed."""
    site = ENV / "lib" / f"python{version[0]}.{version[1]}" / "site-packages"
    names = {entry.name.split("-")[0] for entry in site.glob("*.dist-info")}
    return names | {f"bin/{entry.name}" for entry in (ENV / "bin").glob("bringup")}


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """Hold the project folder's lock, so that set-ups follow each other.

    Raises:
        Failure: Another one held it for longer than a set-up may take.
    """
    folder = os.open(ROOT, os.O_RDONLY)
    os.set_inheritable(folder, True)
    deadline, told = time.monotonic() + TIME_LIMIT_S, False
    try:
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    say("another set-up of this folder is running; waiting for it")
                told = True
            if time.monotonic() > deadline:
                raise Failure("another set-up of this folder does not end; stop it, run this again")
            time.sleep(0.2)
        yield
    finally:
        os.close(folder)


def build(reason: str, this_python: bool) -> None:
    """Make an empty .venv, in place of any that is there."""
    python = interpreters.find(this_python)
    free_mb = shutil.disk_usage(ROOT).free // 1_000_000
    if free_mb < SPACE_MB:
        raise Failure(f"{ROOT} needs {SPACE_MB} MB of free space and has {free_mb} MB; free some")
    say(f"making {ENV.name} with Python {python.dotted} ({python.base}): {reason}")
    make_env(python.base)


def make_env(base: str) -> None:
    """Empty .venv and make it anew with this Python, without pip: not every Python has that."""
    if ENV.is_symlink() or ENV.is_file():
        ENV.unlink()
    ENV.mkdir(exist_ok=True)
    write_state(unfinished=True)
    for entry in ENV.iterdir():
        if entry != STATE:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    argv = [base, "-I", "-m", "venv", "--without-pip", str(ENV)]
    code, lines = run_tool("making the environment", argv, LOG)
    if code != 0:
        last = lines[-1] if lines else f"exit code {code}"
        raise Failure(f"{base} cannot make an environment: {last}")


def fill(dev: bool) -> None:
    """Install the locked packages and the project itself, and note that it is done."""
    dev = dev or bool(read_state().get("dev"))
    lock = ROOT / "requirements" / ("dev.txt" if dev else "runtime.txt")
    write_state(unfinished=True)
    uv = shutil.which("uv")
    command = [uv, "pip", "install", "--python", str(PYTHON)] if uv else [*pip(PYTHON), "install"]
    trouble = install(command, lock, LOG)
    if trouble and uv:
        say(f"{[*trouble[1:-1], 'uv failed'][0].strip()}; now with pip")
        python = interpreters.ask(str(PYTHON))
        make_env(python.base if python else sys.executable)
        trouble = install([*pip(PYTHON), "install"], lock, LOG)
    if trouble:
        raise Failure("\n".join(trouble))
    version = env_version()
    found = parts(version) if version else set()
    if not {"bringup", "bin/bringup"} <= found:
        raise Failure(f"all was installed, and yet {ENV.name}/bin/bringup is not there; see {LOG}")
    write_state(root=str(ROOT), lock=fingerprint(), dev=dev, parts=sorted(found))
