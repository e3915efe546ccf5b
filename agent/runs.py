"""Where runs live: a folder each, found again by name, the start of a name, or as the last one."""

from __future__ import annotations

import hashlib
import re
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import platformdirs
from pydantic import BaseModel, ValidationError

from agent.events import EVENT, AnyEvent, ApprovalAsked, RunEnded, RunStarted
from agent.lock import owner
from agent.problems import Problem
from agent.settings import Settings
from agent.transcript_reader import reason_of

LAST = "last"
"""Names the run that was started last."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_HEADER_BYTES = 2**20
_TAIL_BYTES = 64 * 2**10


class RunError(Problem):
    """A run cannot be made or found; the message says why and what to do."""


class _Private(BaseModel):
    """What ``private.json`` holds."""

    paths: dict[str, str]


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run's folder; nothing in it is needed to read the transcript."""

    folder: Path
    id: str

    @property
    def transcript(self) -> Path:
        """The record of the run."""
        return self.folder / "transcript.jsonl"

    @property
    def private(self) -> Path:
        """The paths behind the transcript's placeholders; stays on this machine."""
        return self.folder / "private.json"

    @property
    def lock(self) -> Path:
        """Names the process that is writing the run."""
        return self.folder / "lock"

    def write_private(self, paths: Mapping[str, str]) -> None:
        """Keep the paths that ``Redactor.private`` returned, readable by their owner only.

        Raises:
            RunError: the file cannot be written.
        """
        fresh = self.private.with_suffix(".new")
        try:
            fresh.touch(mode=0o600)
            fresh.write_text(_Private(paths=dict(paths)).model_dump_json(), encoding="utf-8")
            fresh.replace(self.private)
        except OSError as error:
            raise RunError(
                f"{self.private}: cannot write: {error.strerror}; make room there"
            ) from error

    def read_private(self) -> dict[str, str]:
        """Return the paths by name; empty where the run kept none.

        Raises:
            RunError: the file is damaged or cannot be read.
        """
        try:
            return _Private.model_validate_json(self.private.read_bytes()).paths
        except FileNotFoundError:
            return {}
        except ValidationError as error:
            raise RunError(f"{self.private}: damaged: {reason_of(error)}") from error
        except OSError as error:
            raise RunError(f"{self.private}: cannot read: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What the first and the last line of a run tell."""

    run: RunFolder
    started: RunStarted | None
    last: AnyEvent | None
    pid: int | None
    """The process that is writing it now."""

    @property
    def state(self) -> str:
        """How it ended, ``running``, ``parked``, ``broken off`` or ``unreadable``."""
        if self.pid is not None:
            return "running"
        if self.started is None or self.last is None:
            return "unreadable"
        if isinstance(self.last, ApprovalAsked):
            return "parked"
        return self.last.outcome.value if isinstance(self.last, RunEnded) else "broken off"

    @property
    def began(self) -> float:
        """When it was started, in seconds since 1970; 0 where that is unknown."""
        try:
            return (
                datetime.fromisoformat(self.started.started_at).timestamp() if self.started else 0
            )
        except ValueError:
            return 0.0


def runs_dir(settings: Settings) -> Path:
    """Return the folder of all runs, absolute; it need not exist yet."""
    if settings.runs_dir is not None:
        return settings.runs_dir.expanduser().absolute()
    return Path(platformdirs.user_state_dir("bringup")) / "runs"


def new_seed() -> str:
    """Return a fresh source for a run's ids and markers."""
    return secrets.token_hex(16)


def new_run(
    directory: Path, name: str = "", *, seed: str = "", now: datetime | None = None
) -> RunFolder:
    """Make the folder (mode 0700) of a new run.

    Args:
        directory: folder of all runs; made where it is missing.
        name: the run's id; where empty, one like ``20261130-142233-ab12`` from time and seed.
        seed: the run's seed; where empty, a fresh one.
        now: the time of the start.

    Raises:
        RunError: the name is not allowed or taken, or the folder cannot be made.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if name:
            folder = directory / _checked(name)
            folder.mkdir(mode=0o700)
            return RunFolder(folder, name)
        return _new_folder(directory, seed or new_seed(), now or datetime.now().astimezone())
    except FileExistsError as error:
        if not directory.is_dir():
            raise _unwritable(directory, "a file is in its place") from error
        raise RunError(f"{error.filename}: exists already; choose another name") from error
    except OSError as error:
        raise _unwritable(directory, str(error.strerror)) from error


def need_writable(directory: Path) -> None:
    """Make the folder of all runs, and see that a file can be written in it.

    Raises:
        RunError: it cannot be made or written.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"?")
    except FileExistsError as error:
        raise _unwritable(directory, "a file is in its place") from error
    except OSError as error:
        raise _unwritable(directory, str(error.strerror)) from error


def drop_empty(run: RunFolder) -> None:
    """Remove the folder of a run that could not begin: not one event is in it."""
    with suppress(OSError):
        if not run.transcript.exists() or not run.transcript.stat().st_size:
            shutil.rmtree(run.folder)


def _unwritable(directory: Path, reason: str) -> RunError:
    return RunError(
        f"{directory}: cannot make the run's folder: {reason};"
        " make it writable, or set BRINGUP_RUNS_DIR to a folder that is"
    )


def _new_folder(directory: Path, seed: str, now: datetime) -> RunFolder:
    letters = hashlib.sha256(seed.encode()).hexdigest()
    for length in range(4, len(letters)):
        folder = directory / f"{now:%Y%m%d-%H%M%S}-{letters[:length]}"
        if not folder.exists():
            folder.mkdir(mode=0o700)
            return RunFolder(folder, folder.name)
    raise FileExistsError(17, "File exists", str(directory / letters))


def find_run(directory: Path, name: str) -> RunFolder:
    """Return the run of that name, the one whose name begins so, or the ``last`` one.

    Raises:
        RunError: the name is not allowed, or fits no run, or several.
    """
    if name == LAST:
        runs = list_runs(directory)
        if not runs:
            raise RunError(f"{directory}: no runs here yet; `bringup deploy GOAL` starts one")
        return runs[0].run
    names = _names(directory)
    _checked(name)
    found = [name] if name in names else [item for item in names if item.startswith(name)]
    if not found:
        raise RunError(f"{directory}: no run is called {name}; `bringup runs` lists them")
    if len(found) > 1:
        raise RunError(f"{name} fits {len(found)} runs: {', '.join(found)}; type more of it")
    run = RunFolder(directory / found[0], found[0])
    if run.folder.is_symlink() or run.transcript.is_symlink():
        raise RunError(f"{run.folder}: a link, and a run is a real folder; use the real path")
    return run


def list_runs(directory: Path) -> list[RunSummary]:
    """Return all runs, the last started first, from the first and last line of each."""
    runs = [RunFolder(directory / name, name) for name in _names(directory)]
    found = [_summary(run) for run in runs if not run.folder.is_symlink()]
    return sorted(found, key=lambda item: (item.began, item.run.id), reverse=True)


def _names(directory: Path) -> list[str]:
    try:
        return sorted(
            item.name
            for item in directory.iterdir()
            if _NAME.fullmatch(item.name) and item.is_dir()
        )
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"{directory}: cannot list the runs: {error.strerror}") from error


def _checked(name: str) -> str:
    if name == LAST or not _NAME.fullmatch(name):
        raise RunError(
            f"{name!r} cannot name a run: use letters, digits, '.', '_' and '-' (not `last`)"
        )
    return name


def _summary(run: RunFolder) -> RunSummary:
    first = last = None
    try:
        if not run.transcript.is_symlink():
            with run.transcript.open("rb") as file:
                first, last = _event(file.readline(_HEADER_BYTES)), _last_event(file)
    except OSError:
        first = last = None
    started = first if isinstance(first, RunStarted) else None
    return RunSummary(run, started, last, owner(run.lock))


def _last_event(file: BinaryIO) -> AnyEvent | None:
    """Return the run's end, else the last whole event, read from the end in growing pieces.

    What is written after the end, such as that its server was stopped, does not change it.
    """
    size = file.seek(0, 2)
    length = _TAIL_BYTES
    while True:
        start = max(0, size - length)
        file.seek(start)
        lines = file.read(size - start).split(b"\n")
        found = [event for line in reversed(lines) if (event := _event(line))]
        if found:
            return next((event for event in found if isinstance(event, RunEnded)), found[0])
        if not start:
            return None
        length *= 4


def _event(line: bytes) -> AnyEvent | None:
    try:
        return EVENT.validate_json(line)
    except ValidationError:
        return None
