"""Watch any job: until it ends, or nothing happens for a set time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from tools.base import Args, CallContext, Observation, Subject, Watch
from tools.command import Command, Result
from tools.errors import ToolFailed
from tools.jobs import STATUS_PARTS, JobName, job_subject
from tools.logs import plain, progress
from tools.script import number, script
from tools.server import cpu_of
from tools.watching import Sample, count_of, spell_of, transfers

SAMPLE_BYTES = 1500
"""How much of the end of each log a sample shows."""
LOOKED_AT = ("log", "CPU time", "reads and writes", "memory", "GPU memory")
"""What counts as a sign of life, whatever the job does."""


class WatchJobArgs(Args):
    """Which job, what it fills, and when to give up."""

    job: JobName
    path: str = Field(default="", max_length=4096)
    """A file or folder on the target that grows while the job works, such as a download's."""
    stuck_after_s: float = Field(default=300.0, gt=0)
    """So many seconds without any sign of life mean that it hangs."""
    limit_s: float = Field(default=3600.0, gt=0, le=86_400)


class JobProgress(Observation):
    """How far a job is, and whether it lives."""

    clock_fields = ("waited_s", "quiet_s")

    state: Literal["running", "exited", "lost", "stuck"]
    """running: the watch's time was over before · lost: see ``note``."""
    code: int | None = None
    """Exit code, where it left one."""
    waited_s: float
    quiet_s: float
    """For so many seconds there was no sign of life."""
    looked_at: tuple[str, ...] = ()
    """What was looked at for signs of life."""
    out_bytes: int = 0
    err_bytes: int = 0
    cpu_s: float = 0.0
    io_bytes: int = 0
    """Bytes that its running processes have read and written."""
    rss_mib: float = 0.0
    gpu_mib: int | None = None
    """Memory of GPUs that its processes hold; ``None`` where no ``nvidia-smi`` tells."""
    path_mib: float | None = None
    """What the named path holds."""
    note: str = ""
    progress: str = ""
    tail: str = ""
    """The end of both logs, ``err`` last."""

    def headline(self) -> str:
        """State, and what explains it best."""
        code = "" if self.code is None else f", code {self.code}"
        words = self.note or self.progress
        if self.state == "stuck":
            words = f"for {self.quiet_s:.0f} s no sign of life in {', '.join(self.looked_at)}"
        return f"{self.state} after {self.waited_s:.0f} s{code}" + (f": {words}" if words else "")


class WatchJob(Watch[WatchJobArgs, JobProgress]):
    """Watch a job until it ends or hangs."""

    interval_s = 0.5

    def command(self, args: WatchJobArgs, call: CallContext) -> Command:
        """Return the script that takes one sample, its own clock included."""
        words = (args.job, args.path, str(SAMPLE_BYTES))
        return script(call, "job_sample", words, STATUS_PARTS, timeout_s=30.0)

    def parse(self, args: WatchJobArgs, call: CallContext, result: Result) -> JobProgress:
        """Read one sample."""
        return self.parse_all(args, call, [result])

    def parse_all(
        self, args: WatchJobArgs, call: CallContext, results: Sequence[Result]
    ) -> JobProgress:
        """Read all samples; times are those that the samples themselves carry.

        Raises:
            ToolFailed: there is no such job, or the last samples cannot be read.
        """
        spell = spell_of(call, results, _activity, cpu_of, transfers)
        last = spell.last
        if last["state"] == "unknown":
            raise ToolFailed(f"job {args.job}: {last['note']}")
        hangs = last["state"] == "running" and spell.quiet_s >= args.stuck_after_s
        tails = (last.get("out_tail", ""), last.get("err_tail", ""))
        return JobProgress.model_validate(
            {
                "state": "stuck" if hangs else last["state"],
                "code": last["code"] or None,
                "waited_s": round(max(0.0, spell.waited_s), 3),
                "quiet_s": round(spell.quiet_s, 3),
                "looked_at": _looked_at(args, last),
                "out_bytes": number(last, "out_bytes"),
                "err_bytes": number(last, "err_bytes"),
                "cpu_s": cpu_of(last),
                "io_bytes": count_of(last, "io"),
                "rss_mib": number(last, "rss_kib") / 1024,
                "gpu_mib": last.get("gpu_mib"),
                "path_mib": number(last, "path_kib") / 1024 if args.path else None,
                "note": last["note"],
                "progress": progress(tails[1]) or progress(tails[0]),
                "tail": "\n".join(filter(None, map(plain, tails))),
            }
        )

    def finished(self, args: WatchJobArgs, observation: JobProgress) -> bool:
        """Whether there is nothing more to wait for."""
        return observation.state != "running"

    def limit_s(self, args: WatchJobArgs) -> float:
        """The caller's limit."""
        return args.limit_s

    def subjects(self, args: WatchJobArgs) -> tuple[Subject, ...]:
        """The job."""
        return (job_subject(args.job),)


def _activity(sample: Sample) -> tuple[str, ...]:
    keys = ("state", "out_bytes", "err_bytes", "gpu_mib", "path_kib")
    return tuple(sample.get(key, "") for key in keys)


def _looked_at(args: WatchJobArgs, sample: Sample) -> tuple[str, ...]:
    here = LOOKED_AT if "gpu_mib" in sample else LOOKED_AT[:-1]
    return (*here, args.path) if args.path else here
