"""Watch a server in a container until it answers, ends or hangs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from tools.base import Args, CallContext, Subject, Watch
from tools.command import Command, Result
from tools.container_use import merged
from tools.docker import CONTAINERS, ContainerName, container_subject
from tools.errors import ToolFailed
from tools.logs import earliest_error, plain, progress
from tools.network import port_subject
from tools.script import number, read_answers, script
from tools.server import LOST_SAMPLES, Python, ServerState, State

TAIL_LINES = 40
SAMPLE_BYTES, END_BYTES, ERROR_BYTES = 1500, 6000, 32768
"""How much of the log a sample of a running and of an ended container shows, and from its first
error on."""
ENDED = ("exited", "dead", "removing")
MAX_RESTARTS = 3
"""A container that its engine has started again so often since the watch began has failed."""


class WatchServiceArgs(Args):
    """Which container, and when to give up."""

    container: ContainerName
    url: str = Field(pattern=r"^https?://")
    """Answers 200 when the server is up; asked on the target itself."""
    stuck_after_s: float = Field(120.0, gt=0)
    """So many seconds without a line of log or a second of CPU time mean that it hangs."""
    limit_s: float = Field(1800.0, gt=0)
    python: Python = "python3"
    """A Python ≥ 3.8 on the target, which asks the server there."""

    @property
    def port(self) -> int:
        """The port that the address names, or else that of its scheme."""
        parts = urlsplit(self.url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @field_validator("url")
    @classmethod
    def _has_a_port(cls, value: str) -> str:
        _ = urlsplit(value).port  # raises ValueError where it is no number of a port
        return value


class ServiceState(ServerState):
    """How far a starting server in a container is."""

    container: str = ""
    status: str = ""
    """The engine's word: running, exited, restarting, created, paused or dead."""
    restart_count: int = 0
    oom_killed: bool = False
    """Whether the kernel ended it for lack of memory."""

    def headline(self) -> str:
        """State, and what explains it best."""
        memory = "; killed for lack of memory" if self.oom_killed else ""
        words = super().headline().replace("is not the job's", "is not the container's")
        return f"{words}{memory}"


class WatchService(Watch[WatchServiceArgs, ServiceState]):
    """Watch a starting server in a container until it answers, its container ends, or it hangs."""

    interval_s = 1.0

    def command(self, args: WatchServiceArgs, call: CallContext) -> Command:
        """Return the script that takes one sample, its own clock included."""
        limits = (TAIL_LINES, SAMPLE_BYTES, END_BYTES, ERROR_BYTES)
        words = (args.container, args.url, args.python, *map(str, limits))
        return script(call, "service_sample", words, ())

    def parse(self, args: WatchServiceArgs, call: CallContext, result: Result) -> ServiceState:
        """Read one sample."""
        return self.parse_all(args, call, [result])

    def parse_all(
        self, args: WatchServiceArgs, call: CallContext, results: Sequence[Result]
    ) -> ServiceState:
        """Read all samples; times are those that the samples themselves carry.

        Raises:
            ToolFailed: there is no such container, or the last samples cannot be read.
        """
        recent = _readable(call, reversed(results))
        last = next(recent, None)
        if last is None:
            read_answers(call, results[-1])
            raise ToolFailed(f"no sample could be read: {results[-1].tail}")
        first = next(_readable(call, iter(results)), last)
        quiet_since = float(last["now"])
        for sample in recent:
            if _activity(sample) != _activity(last):
                break
            quiet_since = float(sample["now"])
        now = float(last["now"])
        restarts = number(last, "restarts") - number(first, "restarts")
        seen = _state(args, last, now - float(first["now"]))
        return seen.model_copy(update={"state": _verdict(args, seen, now - quiet_since, restarts)})

    def finished(self, args: WatchServiceArgs, observation: ServiceState) -> bool:
        """Whether there is nothing more to wait for."""
        return observation.state in ("healthy", "exited", "stuck")

    def limit_s(self, args: WatchServiceArgs) -> float:
        """The caller's limit."""
        return args.limit_s

    def subjects(self, args: WatchServiceArgs) -> tuple[Subject, ...]:
        """The container, its port, and which containers there are."""
        return (container_subject(args.container), port_subject(args.port), CONTAINERS)


def _readable(call: CallContext, results: Iterator[Result]) -> Iterator[dict[str, str]]:
    """Yield the samples that can be read, until several in a row cannot."""
    lost = 0
    for result in results:
        try:
            answers = read_answers(call, result)
        except ToolFailed:
            answers = {}
        lost = 0 if "now" in answers else lost + 1
        if lost >= LOST_SAMPLES:
            return
        if "now" in answers:
            yield answers


def _activity(sample: dict[str, str]) -> tuple[str, ...]:
    return tuple(sample.get(key, "") for key in ("state", "restarts", "tail", "cpu_s"))


def _state(args: WatchServiceArgs, sample: dict[str, str], waited_s: float) -> ServiceState:
    ended = sample["state"] in ENDED
    tail = "\n".join(merged(sample.get("tail", "")))
    return ServiceState.model_validate(
        {
            "state": "exited" if ended else "loading",
            "code": number(sample, "code") if ended else None,
            "waited_s": round(waited_s, 3),
            "log_tail": plain(tail),
            "earliest_error": earliest_error(sample.get("first_error", ""))
            or earliest_error(tail)
            or sample["engine_error"],
            "log_bytes": len(tail.encode()),
            "cpu_s": number(sample, "cpu_s"),
            "http_status": sample["http_status"] or None,
            "port_owner": sample["port_owner"],
            "progress": progress(tail),
            "container": args.container,
            "status": sample["state"],
            "restart_count": number(sample, "restarts"),
            "oom_killed": sample["oom_killed"] == "true",
        }
    )


def _verdict(args: WatchServiceArgs, state: ServiceState, quiet_s: float, restarts: int) -> State:
    if state.state == "exited" or restarts >= MAX_RESTARTS:
        return "exited"
    if state.http_status == 200 and state.port_owner != "other":
        return "healthy"
    if quiet_s >= args.stuck_after_s:
        return "stuck"
    over = state.waited_s >= args.limit_s - 2 * WatchService.interval_s
    return "undecided" if over else "loading"
