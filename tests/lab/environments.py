"""Real environments for tests: made once with pip, kept by what is in them, and cloned by hard
links.

They live in ``BRINGUP_LAB_DIR``, else in the user's cache folder, so that a second run finds them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.lab.need import need

TORCH = "torch==2.13.0"
OLD = (TORCH, "transformers[serving]==4.57.6")
"""The last 4.x release, which does not know the model."""
NEW = (TORCH, "transformers[serving]==5.24.0")
WITHOUT_TORCH = ("fastapi", "uvicorn", "openai")
"""Some of what a server needs; ``[serving]`` would bring whatever torch the index has."""
OLD_ALONE = ("transformers==4.57.6", *WITHOUT_TORCH)
NEW_ALONE = ("transformers==5.24.0", *WITHOUT_TORCH)
_LAB = Path(os.environ.get("BRINGUP_LAB_DIR") or Path.home() / ".cache" / "bringup-lab")
_PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
"""Read at import: the fixtures of the tests move HOME away afterwards."""


def environment(*requirements: str, python: str = sys.executable) -> Path:
    """Return a kept environment that holds exactly what pip makes of the requirements."""
    key = hashlib.sha256("\n".join([python, *requirements]).encode()).hexdigest()[:12]
    folder = _LAB / f"env-{key}"
    if (folder / "complete").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "virtualenv", "--quiet", "--python", python, str(folder))
    pip(folder, "install", "--quiet", *requirements)
    (folder / "complete").touch()
    return folder


def clone(source: Path, target: Path) -> Path:
    """Copy an environment by hard links; its programs and its name are its own.

    pip replaces files by new ones and never writes into one, so the source stays as it is.
    """
    run("cp", "-a", "--link", str(source), str(target))
    old, new = str(source), str(target)
    for path in [target / "pyvenv.cfg", *(target / "bin").iterdir()]:
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        if old.encode() in data:
            mode = path.stat().st_mode
            path.unlink()
            path.write_bytes(data.replace(old.encode(), new.encode()))
            path.chmod(mode)
    return target


def pip(folder: Path, *words: str) -> None:
    """Run pip in an environment."""
    run(str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", *words)


def run(*argv: str) -> None:
    """Run a command of the lab; what it printed is the failure's text."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise RuntimeError(f"{argv}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"[-4000:])


def older_python(version: str) -> str:
    """Return an interpreter of that version, or skip."""
    name = f"python{version}"
    found = [shutil.which(name), *map(str, sorted(_PYENV.glob(f"versions/{version}*/bin/{name}")))]
    working = [python for python in found if python and _works(python)]
    need(bool(working), f"{name} is missing (any build of it on PATH, or pyenv's, will do)")
    return working[0]


def _works(python: str) -> bool:
    probe = [python, "-c", "import ssl"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0
