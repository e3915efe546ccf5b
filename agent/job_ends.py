"""Tells the brain of the end of each job that it started: once, and whether or not it looks.

A job that nobody watches may end at any time. So before a turn code looks at those that run. What
the brain has seen for itself is not said again.
"""

from __future__ import annotations

from agent.asking import HintGiven
from agent.dispatch import look
from agent.records import CallRecord
from agent.run import Run
from agent.values import ToolCall
from tools.jobs import ANEW, JobState, JobStatus


def tell_of_ends(run: Run) -> None:
    """Look at the jobs that may still run, and record a hint for each that has ended.

    Raises:
        ConnectionFailed: their host cannot be reached.
    """
    for job, started in run.view.effects.jobs.items():
        if job not in run.view.effects.job_ends:
            _look(run, job, started)
        end = run.view.effects.job_ends.get(job)
        name = f"job {job}"
        if end is None or end.origin != "job_end" or run.view.asked.has_hint(name):
            continue
        text = _words(job, started, JobState.model_validate(end.observation))
        run.record(HintGiven(name=name, turn=run.view.turn, text=text))


def _look(run: Run, job: str, started: CallRecord) -> None:
    call = ToolCall(
        id=f"j{run.view.turn + 1}.{started.call.id}",
        tool=JobStatus().name,
        args={"job": job},
        target=started.call.target,
    )
    look(run, call, "job_end")


def _words(job: str, started: CallRecord, seen: JobState) -> str:
    """Say how a job ended. This is code's own voice, so no word of the host is in it."""
    how = f"ended with exit code {seen.code}"
    if seen.state == "lost":
        why = seen.note if seen.note in ANEW else "it left no exit code"
        how = f"is gone: {why}"
    return f"The job {job} ({started.call.args['name']}) {how}. job_logs reads what it wrote."
