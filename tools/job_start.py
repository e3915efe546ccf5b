"""Start a command as a detached job, once: see ``tools/jobs.py`` for what a job is."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from tools.base import Args, CallContext, Observation, Risk, Subject, Tool
from tools.command import Command, Result
from tools.errors import ToolFailed
from tools.jobs import COMMON, JobName
from tools.script import read_answers, script, script_text

VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class StartJobArgs(Args):
    """What to run, and where."""

    argv: tuple[str, ...] = Field(min_length=1)
    """Program and words; no shell reads them."""
    env: dict[VariableName, str] = Field(default_factory=dict)
    """Variables added to the target's environment."""
    cwd: str | None = None
    name: JobName = "job"
    """What people call it."""


class JobStarted(Observation):
    """A job that runs, or has run, on the target."""

    job: str
    pid: int
    start_time: str
    """When the process began, in the system's own words; with ``pid`` it names one process."""
    already: bool
    """Whether an earlier request had started it."""
    note: str | None = None
    """What whoever started it should know: where its folder is, what may end it."""

    def headline(self) -> str:
        """One line for people."""
        note = f"; {self.note}" if self.note else ""
        before = " (it did before)" if self.already else ""
        return f"{self.job} runs, pid {self.pid}{before}{note}"


class StartJob(Tool[StartJobArgs, JobStarted]):
    """Start a long command as a detached job."""

    risk = Risk.CHANGE

    def command(self, args: StartJobArgs, call: CallContext) -> Command:
        """Return the start script; the words of the job are its positional arguments."""
        return start_command(args, call)

    def parse(self, args: StartJobArgs, call: CallContext, result: Result) -> JobStarted:
        """Read which process it became."""
        return started(call, result)

    def subjects(self, args: StartJobArgs) -> tuple[Subject, ...]:
        """The job, by the name that people gave it."""
        return (Subject(kind="job", key=args.name),)

    def undo_text(self, args: StartJobArgs) -> str:
        """A job is stopped."""
        return "stopped with stop_job"


def start_command(args: StartJobArgs, call: CallContext) -> Command:
    """Return the command that starts a job; its variables travel as the command's own."""
    runner = f"{script_text('job_common')}{script_text('job_run')}"
    writer = f"write_runner() {{\ncat >\"$1\" <<'END_OF_RUNNER'\n{runner}END_OF_RUNNER\n}}\n"
    words = (_folder(call), args.cwd or "", *args.argv)
    command = script(call, "job_start", words, COMMON, timeout_s=30.0)
    return replace(command, stdin=writer + (command.stdin or ""), env=args.env)


def started(call: CallContext, result: Result) -> JobStarted:
    """Read the answer of the start script.

    Raises:
        ToolFailed: nothing was started.
    """
    answers = read_answers(call, result)
    if not answers["pid"]:
        raise ToolFailed(
            f"job {_folder(call)}: its folder is there, but it never came to life; look at its "
            "folder and start it with a new call"
        )
    return JobStarted.model_validate(
        {
            "job": _folder(call),
            "pid": answers["pid"],
            "start_time": answers["start"],
            "already": answers["already"],
            "note": answers.get("note") or None,
        }
    )


def _folder(call: CallContext) -> str:
    return f"{call.run_id}-{call.call_id}"
