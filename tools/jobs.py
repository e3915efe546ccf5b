"""Long or changing commands as detached jobs on the target.

A job is a folder, ``<host_dir>/jobs/<host>/<run>-<call>``: making it is the claim, so a repeated
request never starts a second one. It holds the logs ``out`` and ``err``, the identity (``pid``:
number and start time), what tells host, boot and container from others (``claim``) and, in the end,
the exit code (``rc``). Nothing of a job hangs on our connection or on our own process. All that it
starts carries its name in ``BRINGUP_JOB``. The target needs a POSIX shell and coreutils.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tools.base import Args, CallContext, Observation, Risk, Subject, Tool
from tools.command import Command, Result
from tools.logs import plain
from tools.script import number, read_answers, script

COMMON = ("job_common", "job_host")
LOG_PARTS = (*COMMON, "job_text")
STATUS_PARTS = (*LOG_PARTS, "job_report")
TAIL_BYTES = 4096
"""How much of the end of each log a status shows."""

ANEW = (
    "the host was rebooted since it was started",
    "the container was started anew since it was started",
    "the system was started anew since it was started",
)
"""What ended all processes of a place, as ``note`` of a lost job tells it."""

JobName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$", max_length=128)
]
"""A job's name, ``<run>-<call>``: one folder, never a path."""


class JobStatusArgs(Args):
    """Which job."""

    job: JobName


class JobState(Observation):
    """How a job stands."""

    state: Literal["running", "exited", "lost", "unknown"]
    """lost: its process is gone and left no exit code, see ``note`` · unknown: see ``note``."""
    code: int | None = None
    """Exit code; above 128 it is 128 and the number of the signal that ended it."""
    pid: int | None = None
    processes: int = 0
    """Processes of its group; of a job that has exited, those that outlived it."""
    out_bytes: int = 0
    err_bytes: int = 0
    cpu_s: float = 0.0
    """CPU time of its running processes, in seconds."""
    rss_mib: float = 0.0
    """Resident memory of its running processes."""
    note: str = ""
    tail: str = ""
    """The end of both logs, ``err`` last; rewritten lines in their last state."""

    def headline(self) -> str:
        """State, code and size of the logs."""
        end = "" if self.code is None else f", code {self.code}"
        note = f", {self.note}" if self.note else ""
        return f"{self.state}{end}{note}, {self.out_bytes + self.err_bytes} bytes of logs"


class JobStatus(Tool[JobStatusArgs, JobState]):
    """Tell whether a job runs or how it ended, and the end of its logs."""

    def command(self, args: JobStatusArgs, call: CallContext) -> Command:
        """Return the status script."""
        return script(call, "job_status", (args.job, str(TAIL_BYTES)), STATUS_PARTS)

    def parse(self, args: JobStatusArgs, call: CallContext, result: Result) -> JobState:
        """Read how it stands."""
        answers = read_answers(call, result)
        tails = (plain(answers.get(key, "")) for key in ("out_tail", "err_tail"))
        return JobState.model_validate(
            {
                "state": answers["state"],
                "code": answers["code"] or None,
                "pid": answers["pid"] or None,
                "processes": number(answers, "processes"),
                "out_bytes": number(answers, "out_bytes"),
                "err_bytes": number(answers, "err_bytes"),
                "cpu_s": number(answers, "ticks") / number(answers, "tick_hz"),
                "rss_mib": number(answers, "rss_kib") / 1024,
                "note": answers["note"],
                "tail": "\n".join(tail for tail in tails if tail),
            }
        )

    def subjects(self, args: JobStatusArgs) -> tuple[Subject, ...]:
        """The job."""
        return (job_subject(args.job),)


class JobLogsArgs(Args):
    """Which piece of which log."""

    job: JobName
    offset: int = Field(0, ge=0)
    """Byte to begin at; ``next_offset`` of the piece before."""
    limit_bytes: int = Field(65536, gt=0, le=65536)
    stream: Literal["out", "err"] = "err"


class JobLog(Observation):
    """A piece of a job's log."""

    text: str
    """As it was written, without NUL and ETX; what is no UTF-8 is replaced.

    It ends between two words where it can, so that neither a character nor a path is cut in two.
    """
    next_offset: int
    """Where the next piece begins."""
    size_bytes: int
    """Size of the whole log."""
    state: str = ""
    """How the job stands, as ``job_status`` has it; empty where that is not known."""
    cpu_s: float = 0.0
    """CPU time of its running processes, in seconds: what grows though it writes nothing."""

    def headline(self) -> str:
        """How much it is, how far the log goes on, and how the job stands."""
        read = f"{len(self.text)} characters, up to byte {self.next_offset} of {self.size_bytes}"
        return f"{read}; the job: {self.state}" if self.state else read


class JobLogs(Tool[JobLogsArgs, JobLog]):
    """Read a piece of a job's log, from any byte on."""

    def command(self, args: JobLogsArgs, call: CallContext) -> Command:
        """Return the script that prints the piece and counts its bytes."""
        words = (args.job, args.stream, str(args.offset), str(args.limit_bytes))
        return script(call, "job_logs", words, STATUS_PARTS)

    def parse(self, args: JobLogsArgs, call: CallContext, result: Result) -> JobLog:
        """Read the piece."""
        answers = {"state": "", "ticks": "0", "tick_hz": "1", **read_answers(call, result)}
        return JobLog(
            text=answers.get("text", ""),
            next_offset=number(answers, "next"),
            size_bytes=number(answers, "size"),
            state=answers["state"],
            cpu_s=number(answers, "ticks") / number(answers, "tick_hz"),
        )

    def subjects(self, args: JobLogsArgs) -> tuple[Subject, ...]:
        """The job."""
        return (job_subject(args.job),)


class StopJobArgs(Args):
    """Which job, and how patiently."""

    job: JobName
    grace_s: int = Field(5, ge=0, le=60)
    """Seconds between SIGTERM and SIGKILL."""


class JobStopped(Observation):
    """What became of the job's processes."""

    job: str
    outcome: Literal["stopped", "was_not_running", "survived"]
    left: tuple[str, ...] | None = None
    """Processes of the job that did not end, or whose memory the GPU's driver still holds."""

    def headline(self) -> str:
        """What became of it, and what an operator has to look at."""
        need = "; needs the operator: " + ", ".join(self.left) if self.left else ""
        return f"{self.job}: {self.outcome.replace('_', ' ')}{need}"


class StopJob(Tool[StopJobArgs, JobStopped]):
    """End a job: SIGTERM to its process group, and SIGKILL to what is left after a while."""

    risk = Risk.CHANGE

    def command(self, args: StopJobArgs, call: CallContext) -> Command:
        """Return the stop script, which acts only on processes whose start time is recorded."""
        words = (args.job, str(args.grace_s))
        return script(call, "job_stop", words, COMMON, timeout_s=args.grace_s + 30.0)

    def parse(self, args: StopJobArgs, call: CallContext, result: Result) -> JobStopped:
        """Read whether it is gone."""
        answers = read_answers(call, result)
        left = tuple(item.strip() for item in answers.get("left", "").split("; ") if item.strip())
        seen = {"job": args.job, "outcome": answers["outcome"], "left": left or None}
        return JobStopped.model_validate(seen)

    def subjects(self, args: StopJobArgs) -> tuple[Subject, ...]:
        """The job."""
        return (job_subject(args.job),)

    def undo_text(self, args: StopJobArgs) -> str:
        """A job is started again."""
        return "started again with start_job"


def job_subject(job: str) -> Subject:
    """Return a job as a subject."""
    return Subject(kind="job", key=job)
