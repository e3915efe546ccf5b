"""Prepares the demo's folder: a small true checkpoint, and an environment that cannot read it.

The environment is what many people have: a real torch and a real ``transformers`` of the last 4.x
release. It is made with the same connector that a run uses, so nothing here starts a process of
its own.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from agent.demo.checkpoint import write_checkpoint
from agent.goal import Goal, parse_goal
from agent.kinds.unknown import decisive_line
from agent.lock import Lock, LockHeld
from agent.problems import Problem
from agent.runs import RunFolder
from agent.visible import visible
from tools.command import Command, Result
from tools.connectors.local import Local

TORCH = "torch==2.13.0"
BROKEN = "transformers[serving]==4.57.6"
"""The last release before 5.0: real, wide-spread, and without the model."""
MARK = "made-by-bringup-demo"
"""Stands in a folder that the demo may fill and empty."""
LOADED = re.compile(r"Progress (\d+) of (\d+)$")
"""What pip says of a download, in bytes."""
ASK_ABOVE_MB = 500.0
INSTALL_S = 3600.0
MOST_PORT = 65535


class Progress(Protocol):
    """Shows what the preparation does."""

    def step(self, title: str) -> AbstractContextManager[object]:
        """Show a step while it lasts, with the time it takes."""
        ...

    def detail(self, text: str) -> None:
        """Show what the step does now."""
        ...


Agree = Callable[[str], bool]
"""Asks whether something large may be downloaded."""


class DemoError(Problem):
    """The demo cannot be set up here; the message says what, where and what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """The demo's folder; the shipped policy allows changes in it and nowhere else."""

    folder: Path

    @property
    def model(self) -> Path:
        """The checkpoint."""
        return self.folder / "model"

    @property
    def venv(self) -> Path:
        """The target environment."""
        return self.folder / "env"

    @property
    def python(self) -> str:
        """The target environment's interpreter."""
        return str(self.venv / "bin" / "python")

    @property
    def last_run(self) -> RunFolder | None:
        """The run whose server may still be up."""
        try:
            folder = Path(self._last_run.read_text(encoding="utf-8").strip())
        except (OSError, UnicodeDecodeError):
            return None
        return RunFolder(folder, folder.name)

    def remember(self, run: RunFolder) -> None:
        """Keep which run it was.

        Raises:
            DemoError: the folder cannot be written.
        """
        try:
            self._last_run.write_text(f"{run.folder}\n", encoding="utf-8")
        except OSError as error:
            raise self.unwritable(error) from error

    @property
    def _last_run(self) -> Path:
        return self.folder / "last-run"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder, and keep other demos out of it.

        Raises:
            DemoError: it cannot be made or written, or another demo is at work there.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._claim()
            lock = Lock(self.folder / "lock")
        except LockHeld as held:
            raise DemoError(
                f"{self.folder}: another `bringup demo` (process {held.pid}) is at work there; "
                "wait for its end, or name another folder with --folder"
            ) from held
        except OSError as error:
            raise self.unwritable(error) from error
        try:
            yield
        finally:
            lock.release()

    def _claim(self) -> None:
        """Mark the folder as the demo's own; one that holds anything else is left alone.

        Raises:
            DemoError: it is not empty, and no demo made it.
        """
        mark = self.folder / MARK
        if not mark.exists() and any(self.folder.iterdir()):
            raise DemoError(
                f"{self.folder}: not empty and not made by a demo, so it is left as it is; "
                "name an empty folder, or one that does not exist, with --folder"
            )
        mark.touch()

    def unwritable(self, error: OSError) -> DemoError:
        """Say that the folder cannot be written, and why."""
        reason = error.strerror
        if isinstance(error, FileExistsError | NotADirectoryError):
            reason = "a file is in its place"
        return DemoError(
            f"{self.folder}: cannot write the demo's folder: {reason}; "
            "make it writable, or name another with --folder"
        )


def goal_of(place: Place, port: int) -> Goal:
    """Return the demo's goal: a running server on this machine, the model on the CPU."""
    return parse_goal(
        {
            "kind": "serve",
            "model": str(place.model),
            "hosts": [{"name": "local", "address": "local", "python": sys.executable}],
            "candidates": [
                {"venv": str(place.venv), "engine": "transformers", "requirements": [TORCH]}
            ],
            "port": port,
            "options": {"device": "cpu"},
            "allow": {
                "paths": [str(place.folder)],
                "ports": [f"{port + 1}-{min(port + 9, MOST_PORT)}"] if port < MOST_PORT else [],
            },
            "limits": {"steps": 40, "minutes": 30},
            "on_interrupt": "stop",
        },
        base=place.folder,
        where="demo",
    )


def prepare(place: Place, torch_index: str, progress: Progress, agree: Agree) -> None:
    """Make or mend the folder, so that the run begins with the same broken environment each time.

    Raises:
        DemoError: it cannot be made.
    """
    try:
        with progress.step("write a small Qwen3.5 checkpoint (random weights)"):
            write_checkpoint(place.model)
        if not _works(place):
            with progress.step("make the target environment"):
                _make_environment(place)
    except OSError as error:
        raise place.unwritable(error) from error
    _install_torch(place, torch_index, progress, agree)
    _pip(place, progress, f"install {BROKEN}", "install", BROKEN)


def _works(place: Place) -> bool:
    probe = Command.of(place.python, "-m", "pip", "--version", timeout_s=60)
    return place.venv.is_dir() and Local().run(probe).ok


def _make_environment(place: Place) -> None:
    if place.venv.exists():
        shutil.rmtree(place.venv)
    command = Command.of(
        sys.executable, "-m", "virtualenv", "--quiet", str(place.venv), timeout_s=300
    )
    result = Local().run(command)
    _need(result, f"{place.venv}: cannot make the target environment", "mend that and run it again")


def _install_torch(place: Place, torch_index: str, progress: Progress, agree: Agree) -> None:
    """Take a CPU build: what is there, else what pip would take, else the index of CPU builds."""
    question = Command.of(
        place.python, "-c", "from importlib.metadata import version; print(version('torch'))"
    )
    seen = Local().run(question)
    if seen.ok and seen.stdout.startswith(TORCH.partition("==")[2]):
        return
    extra: tuple[str, ...] = ()
    with progress.step(f"look for a CPU build of {TORCH}"):
        url, builds = _would_install(place, extra)
        if builds:
            extra = ("--extra-index-url", torch_index)
            progress.detail(f"the default index has accelerator builds only; asking {torch_index}")
            url, builds = _would_install(place, extra)
    if builds:
        raise DemoError(
            f"only a build of {TORCH} for accelerators (gigabytes) can be had here; set "
            "BRINGUP_TORCH_INDEX to an index that has CPU builds"
        )
    size = _size_mb(url)
    shown = f"{size:,.0f} MB" if size else "size not told by the index"
    name = unquote(urlsplit(url).path.rpartition("/")[2])
    if size > ASK_ABOVE_MB and not agree(f"{name} is {shown}. Download it?"):
        raise DemoError(f"without {TORCH} there is no demo; nothing was installed")
    release = " ".join(name.split("-")[:2])
    _pip(place, progress, f"install {release} ({shown})", "install", *extra, TORCH)


def _would_install(place: Place, extra: tuple[str, ...]) -> tuple[str, bool]:
    """Return the address of the torch that pip would take, and whether it brings accelerators."""
    words = ["install", "--dry-run", "--quiet", "--report", "-", *extra, TORCH]
    command = Command.of(
        place.python, "-m", "pip", "--disable-pip-version-check", *words, timeout_s=300
    )
    result = Local().run(command)
    _need(
        result, f"pip cannot find {TORCH}", "see whether it reaches its index (`pip config list`)"
    )
    items = json.loads(result.stdout[result.stdout.index("{") :])["install"]
    found = {item["metadata"]["name"].lower(): item["download_info"]["url"] for item in items}
    accelerators = any(name.startswith(("nvidia-", "cuda-")) for name in found)
    return found.get("torch", ""), accelerators


def _size_mb(url: str) -> float:
    """Return a file's size in MB, 0 where it cannot be told."""
    parts = urlsplit(url)
    try:
        if parts.scheme == "file":
            return Path(unquote(parts.path)).stat().st_size / 1e6
        request = urllib.request.Request(url, method="HEAD")  # noqa: S310  (pip's own answer)
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return int(answer.headers.get("Content-Length") or 0) / 1e6
    except (OSError, ValueError):
        return 0.0


def _pip(place: Place, progress: Progress, what: str, *words: str) -> None:
    def on_output(stream: str, text: str) -> None:
        for line in text.splitlines():
            if loaded := LOADED.match(line):
                done, size = (int(number) / 1e6 for number in loaded.groups())
                progress.detail(f"{done:,.1f} of {size:,.1f} MB")
            elif line.startswith(("Collecting", "Downloading", "Installing", "Using cached")):
                progress.detail(line.strip())

    command = Command.of(
        place.python,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        *words,
        "--progress-bar=raw",  # virtualenv's own pip knows it
        timeout_s=INSTALL_S,
    )
    advice = f"mend that and run it again; without {place.venv} a new environment is made"
    with progress.step(what):
        _need(Local().run(command, on_output), f"{what}: pip did not succeed", advice)


def _need(result: Result, problem: str, advice: str) -> None:
    if not result.ok:
        said = decisive_line(visible(result.tail)) or "it said nothing"
        raise DemoError(f"{problem} ({result.how}): {said}; {advice}")
