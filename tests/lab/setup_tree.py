"""A fresh copy of the checkout to set up, and Pythons that are too old or too bare."""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.lab.checkout import ROOT, project_files

BASE = str(getattr(sys, "_base_executable", sys.executable))
"""The Python that this environment was made with."""

SHORT = {
    "editables",
    "hatchling",
    "packaging",
    "pathspec",
    "pluggy",
    "tomlkit",
    "trove-classifiers",
}
"""What an editable install needs: enough for a set-up, and there in seconds."""

OLD_PYTHON = """\
#!{base}
import os, runpy, sys
sys.version_info = (3, 9, 18, "final", 0)
sys.executable = sys._base_executable = os.path.abspath(__file__)
words = [word for word in sys.argv[1:] if word != "-I"]
if words[0] == "-c":
    exec(words[1])
else:
    sys.argv = words
    sys.path.insert(0, os.path.dirname(words[0]))
    runpy.run_path(words[0], run_name="__main__")
"""


@functools.cache
def index_answers() -> bool:
    """Tell whether pip reaches a package index."""
    words = ["install", "--dry-run", "--no-deps", "--ignore-installed", "--retries", "0"]
    argv = [sys.executable, "-m", "pip", *words, "--timeout", "10", "editables"]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def copy_project(folder: Path, *, whole_lock: bool) -> Path:
    """Copy the checkout's files, with the whole lock or the short one."""
    for name in project_files():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    if not whole_lock:
        for lock in (folder / "requirements").glob("*.txt"):
            entries = re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8"))
            kept = [entry for entry in entries if entry.partition("==")[0] in SHORT]
            lock.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return folder


def old_python(folder: Path) -> Path:
    """Write a program that runs code as Python 3.9 would."""
    return program(folder / "python3", OLD_PYTHON.format(base=BASE))


def program(path: Path, text: str) -> Path:
    """Write an executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def python_without_ensurepip(folder: Path) -> Path:
    """Build a Python such as Debian's without python3-venv: no ensurepip, no pip."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    library = folder / "lib" / version
    (library / "site-packages").mkdir(parents=True)
    for entry in Path(sysconfig.get_path("stdlib")).iterdir():
        if entry.name not in {"ensurepip", "site-packages", "dist-packages"}:
            (library / entry.name).symlink_to(entry)
    (folder / "bin").mkdir()
    shutil.copy2(Path(BASE).resolve(), folder / "bin" / version)
    return folder / "bin" / version


def environment(path: Path | None = None, **more: str) -> dict[str, str]:
    """Return this test's environment with another PATH: nothing, or one folder."""
    kept = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    return {**kept, "PATH": str(path or Path("/nonexistent")), **more}


def set_up(
    project: Path, *options: str, python: str | Path = BASE, path: Path | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the set-up to its end."""
    return subprocess.run(
        [str(python), "scripts/setup_env.py", *options],
        cwd=project,
        env=environment(path, **more),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def set_up_until(project: Path, sign: str, number: signal.Signals) -> tuple[int, str]:
    """Start the set-up and end it by a signal once it has printed a sign of where it is."""
    with subprocess.Popen(
        [BASE, "scripts/setup_env.py"],
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        output = ""
        for line in running.stdout or ():
            output += line
            if sign in line:
                running.send_signal(number)
        return running.wait(timeout=60), output
