"""Watch a server in a container until it answers, ends or hangs."""

from __future__ import annotations

from collections.abc import Sequence

from tools.base import CallContext, Subject, Watch
from tools.command import Command, Result
from tools.container_use import merged
from tools.docker import CONTAINERS, ContainerName, container_subject
from tools.logs import earliest_error, plain, progress
from tools.network import port_subject
from tools.script import number, script
from tools.server import ServerState, undecided
from tools.watching import WatchArgs, spell_of, transfers, verdict

TAIL_LINES = 40
SAMPLE_BYTES, END_BYTES, ERROR_BYTES = 1500, 6000, 32768
"""How much of the log a sample of a running and of an ended container shows, and from its first
error on."""
ENDED = ("exited", "dead", "removing")
MAX_RESTARTS = 3
"""A container that its engine has started again so often since the watch began has failed."""


class WatchServiceArgs(WatchArgs):
    """Which container, and when to give up."""

    container: ContainerName


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
        spell = spell_of(call, results, _activity, _cpu_s, transfers)
        restarts = number(spell.last, "restarts") - number(spell.first, "restarts")
        seen = _state(args, spell.last, spell.waited_s)
        if restarts >= MAX_RESTARTS:
            return seen.model_copy(update={"state": "exited"})
        state = verdict(args, seen, spell.quiet_s, interval_s=self.interval_s)
        return seen.model_copy(update={"state": state})

    def finished(self, args: WatchServiceArgs, observation: ServiceState) -> bool:
        """Whether there is nothing more to wait for."""
        return observation.state in ("healthy", "exited", "stuck")

    def limit_s(self, args: WatchServiceArgs) -> float:
        """The caller's limit."""
        return args.limit_s

    def cut_short(self, observation: ServiceState) -> ServiceState:
        """A server that still loads is one of which nothing is decided."""
        return undecided(observation)

    def subjects(self, args: WatchServiceArgs) -> tuple[Subject, ...]:
        """The container, its port, and which containers there are."""
        return (container_subject(args.container), port_subject(args.port), CONTAINERS)


def _activity(sample: dict[str, str]) -> tuple[str, ...]:
    return tuple(sample.get(key, "") for key in ("state", "restarts", "tail"))


def _cpu_s(sample: dict[str, str]) -> float:
    return float(sample.get("cpu_s") or 0)


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
