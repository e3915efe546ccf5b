"""Start a server as a job, and watch it until it answers or fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self, TypeVar

from tools.base import CallContext, Observation, Risk, Subject, Tool, Watch
from tools.command import Command, Result
from tools.errors import ToolFailed
from tools.job_start import JobStarted, StartJobArgs, start_command, started
from tools.jobs import STATUS_PARTS, TAIL_BYTES, JobName, job_subject
from tools.logs import earliest_error, plain, progress
from tools.network import Port, port_subject
from tools.script import number, script
from tools.watching import State, WatchArgs, readable, spell_of, transfers, verdict

SAMPLE_BYTES = 600
"""How much of the end of each log one sample of a running server shows: enough for its progress."""
ERROR_BYTES = 32768
"""How much of each log, from its first error on, the sample of an ended server shows."""
LOG_KEYS = ("out_tail", "err_tail", "out_error", "err_error")
"""All texts of a sample, the best evidence of an error last."""


class StartServerArgs(StartJobArgs):
    """What to run, and where it will listen."""

    host: str = "127.0.0.1"
    port: Port = 8000
    name: JobName = "server"


class StartServer(Tool[StartServerArgs, JobStarted]):
    """Start a server as a detached job; watch_server tells when it answers."""

    risk = Risk.CHANGE
    needs = ("config_parses", "imports", "options_known", "port_free")
    establishes = ("process_up",)
    runs_in = "venv"

    def command(self, args: StartServerArgs, call: CallContext) -> Command:
        """Return the command that starts the job."""
        return start_command(args, call)

    def parse(self, args: StartServerArgs, call: CallContext, result: Result) -> JobStarted:
        """Read which process it became."""
        return started(call, result)

    def subjects(self, args: StartServerArgs) -> tuple[Subject, ...]:
        """The job, by the name that people gave it, the port, and the program that is run."""
        program = Subject(kind="program", key=args.argv[0])
        return (job_subject(args.name), port_subject(args.port), program)

    def undo_text(self, args: StartServerArgs) -> str:
        """A server is stopped as a job."""
        return "stopped with stop_job"


class WatchServerArgs(WatchArgs):
    """Which server, and when to give up."""

    job: JobName


class ServerState(Observation):
    """How far a starting server is."""

    clock_fields = ("waited_s",)

    state: State
    """exited: its process has ended, however · undecided: the time was over before."""
    code: int | None = None
    """Exit code, where it left one."""
    waited_s: float
    log_tail: str = ""
    earliest_error: str = ""
    """The first traceback's last line, or the first line that tells of an error."""
    log_bytes: int = 0
    cpu_s: float = 0.0
    """CPU time of its processes, in seconds."""
    http_status: int | None = None
    port_owner: Literal["job", "other", ""] = ""
    """Who answered with 200; ``other``: a process that is not the job's, so not this server."""
    progress: str = ""
    note: str | None = None
    """Why its process is gone, where the host tells: it was rebooted."""

    def unmoved(self, before: Self) -> bool:
        """Whether nothing has happened; where it is up, or has ended, nothing is waited for."""
        if self.state in ("healthy", "exited"):
            return (self.state, self.code) == (before.state, before.code)
        return super().unmoved(before)

    def headline(self) -> str:
        """State, and what explains it best."""
        ended = self.state in ("exited", "stuck")
        words = self.note or (self.earliest_error if ended else self.progress)
        if self.port_owner == "other":
            words = "its port is answered by a process that is not the job's"
        code = "" if self.code is None else f", code {self.code}"
        return f"{self.state} after {self.waited_s:.1f} s{code}" + (f": {words}" if words else "")


Seen = TypeVar("Seen", bound=ServerState)


class WatchServer(Watch[WatchServerArgs, ServerState]):
    """Watch a starting server until it answers, its process ends, or it hangs."""

    interval_s = 0.5

    def command(self, args: WatchServerArgs, call: CallContext) -> Command:
        """Return the script that takes one sample, its own clock included."""
        limits = (SAMPLE_BYTES, TAIL_BYTES, ERROR_BYTES)
        words = (args.job, args.url, args.python, *map(str, limits))
        return script(call, "server_sample", words, STATUS_PARTS)

    def parse(self, args: WatchServerArgs, call: CallContext, result: Result) -> ServerState:
        """Read one sample."""
        return self.parse_all(args, call, [result])

    def parse_all(
        self, args: WatchServerArgs, call: CallContext, results: Sequence[Result]
    ) -> ServerState:
        """Read all samples; times are those that the samples themselves carry.

        Raises:
            ToolFailed: there is no such job, or the last samples cannot be read.
        """
        spell = spell_of(call, results, _activity, cpu_of, transfers)
        seen = _state(args, spell.last, spell.waited_s, spell.quiet_s)
        if seen.state != "stuck":
            return seen
        errors = map(_error, readable(call, iter(results)))
        return seen.model_copy(update={"earliest_error": next(filter(None, errors), "")})

    def finished(self, args: WatchServerArgs, observation: ServerState) -> bool:
        """Whether there is nothing more to wait for."""
        return observation.state in ("healthy", "exited", "stuck")

    def limit_s(self, args: WatchServerArgs) -> float:
        """The caller's limit."""
        return args.limit_s

    def cut_short(self, observation: ServerState) -> ServerState:
        """A server that still loads is one of which nothing is decided."""
        return undecided(observation)

    def subjects(self, args: WatchServerArgs) -> tuple[Subject, ...]:
        """The job and its port."""
        return (job_subject(args.job), port_subject(args.port))


def _activity(sample: dict[str, str]) -> tuple[str, ...]:
    return tuple(sample[key] for key in ("state", "out_bytes", "err_bytes"))


def cpu_of(sample: dict[str, str]) -> float:
    """Return the CPU time of a job's sample, in seconds."""
    return number(sample, "ticks") / number(sample, "tick_hz")


def undecided(seen: Seen) -> Seen:
    """Return the state of a server whose watch is over: what loads is undecided."""
    if seen.state != "loading":
        return seen
    return seen.model_copy(update={"state": "undecided"})


def _error(sample: dict[str, str]) -> str:
    errors = (earliest_error(sample.get(key, "")) for key in reversed(LOG_KEYS))
    return next(filter(None, errors), "")


def _state(
    args: WatchServerArgs, sample: dict[str, str], waited_s: float, quiet_s: float
) -> ServerState:
    if sample["state"] == "unknown":
        raise ToolFailed(f"job {args.job}: {sample['note']}")
    out, err = (sample.get(key, "") for key in ("out_tail", "err_tail"))
    state = ServerState.model_validate(
        {
            "state": "exited" if sample["state"] in ("exited", "lost") else "loading",
            "code": sample["code"] or None,
            "waited_s": round(waited_s, 3),
            "log_tail": "\n".join(filter(None, (plain(out), plain(err)))),
            "earliest_error": _error(sample),
            "log_bytes": number(sample, "out_bytes") + number(sample, "err_bytes"),
            "cpu_s": cpu_of(sample),
            "http_status": sample.get("http_status") or None,
            "port_owner": sample.get("port_owner", ""),
            "progress": progress(err) or progress(out),
            "note": sample["note"] if sample["state"] == "lost" and sample["note"] else None,
        }
    )
    return state.model_copy(
        update={"state": verdict(args, state, quiet_s, interval_s=WatchServer.interval_s)}
    )
