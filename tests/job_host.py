"""Short ways to use the job tools on this machine, for tests."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.base import Args, CallContext, Observation, Tool
from tools.command import Command
from tools.connectors.local import Local
from tools.errors import ToolFailed
from tools.job_start import JobStarted, StartJob
from tools.jobs import JobLog, JobLogs, JobState, JobStatus, JobStopped, StopJob

LOCAL = Local()
NUMBERS = itertools.count(1)


class Host:
    """A folder for jobs on this machine, and short ways to use the tools there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = ""
        self.change: Callable[[Command], Command] = lambda command: command

    def context(self, call_id: str = "") -> CallContext:
        name = call_id or f"c{next(NUMBERS)}"
        return CallContext("run", name, "MARK-4f1c", str(self.folder), self.key)

    def use(self, tool: Tool[Any, Any], args: dict[str, Any], call_id: str = "") -> Observation:
        call = self.context(call_id)
        values: Args = tool.args_type.model_validate(args)
        result = LOCAL.run(self.change(tool.command(values, call)))
        seen = tool.parse(values, call, result)
        assert isinstance(seen, Observation)
        return seen

    def start(self, *argv: str, call_id: str = "", **more: Any) -> JobStarted:
        seen = self.use(StartJob(), {"argv": argv, **more}, call_id)
        assert isinstance(seen, JobStarted)
        return seen

    def status(self, job: str) -> JobState:
        seen = self.use(JobStatus(), {"job": job})
        assert isinstance(seen, JobState)
        return seen

    def ended(self, job: str, limit_s: float = 5.0) -> JobState:
        deadline = time.monotonic() + limit_s
        while (state := self.status(job)).state == "running" and time.monotonic() < deadline:
            time.sleep(0.05)
        return state

    def logs(self, job: str, **more: Any) -> JobLog:
        seen = self.use(JobLogs(), {"job": job, **more})
        assert isinstance(seen, JobLog)
        return seen

    def stop(self, job: str, grace_s: int = 2) -> str:
        seen = self.use(StopJob(), {"job": job, "grace_s": grace_s})
        assert isinstance(seen, JobStopped)
        return seen.outcome

    def path(self, job: str) -> Path:
        """The job's folder; where it is not there, an older one's."""
        found = list((self.folder / "jobs").glob(f"*/{job}"))
        return found[0] if found else self.folder / "jobs" / job

    def claim(self, job: str, **values: str) -> None:
        """Write other values into a job's claim."""
        path = self.path(job) / "claim"
        rows = dict(row.split("=", 1) for row in path.read_text().splitlines())
        path.write_text("".join(f"{key}={value}\n" for key, value in (rows | values).items()))

    def clear(self) -> None:
        self.change = lambda command: command
        for folder in (self.folder / "jobs").glob("*/*"):
            if folder.is_dir():
                with suppress(ToolFailed):  # one that was made to look like another host's
                    self.stop(folder.name, 0)


def spare(host: Host, *folders: Path) -> None:
    """Put other folders in the place of those of the system that stand in for a home."""
    words = " ".join(map(str, folders))
    host.change = lambda command: replace(
        command,
        stdin=(command.stdin or "").replace("/var/tmp /tmp", words),  # noqa: S108
        env={**command.env, "XDG_RUNTIME_DIR": ""},
    )


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition: Callable[[], object], limit_s: float = 5.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)
