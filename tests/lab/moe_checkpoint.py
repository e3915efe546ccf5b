"""A tiny true Qwen3.5-MoE checkpoint, written by the real classes in an image that has them."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from pathlib import Path

from tests.lab.engine import LAB, docker_run
from tests.lab.images import content, image

SCRIPT = Path(__file__).parent / "images" / "write_checkpoint.py"
IMAGE = "engine-fixed"
SHARDS = 2
"""There are at least so many files of weights."""


def moe_checkpoint() -> Path:
    """Return a kept folder with the checkpoint; do not write into it.

    It holds config.json (``qwen3_5_moe``), weights in several shards with their index, a byte-level
    tokenizer with a chat template, and preprocessor_config.json. About 0.3 M parameters.

    Raises:
        RuntimeError: Writing it failed; with what was printed.
    """
    key = hashlib.sha256(f"{content(IMAGE)} {SCRIPT.read_text()}".encode()).hexdigest()[:12]
    folder = LAB / f"moe-{key}"
    LAB.mkdir(parents=True, exist_ok=True)
    with (LAB / "moe.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            words = ("--rm", "-i", "--network", "none", "-v", f"{folder}:/out", image(IMAGE))
            docker_run("run", *words, "python3", "-", "/out", stdin=SCRIPT.read_text())
            (folder / ".complete").touch()
    return folder


def copy_checkpoint(target: Path) -> Path:
    """Copy the checkpoint to a new folder and return that."""
    shutil.copytree(moe_checkpoint(), target, ignore=shutil.ignore_patterns(".complete"))
    return target
