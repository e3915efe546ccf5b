"""What running containers use, and what a container writes."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field

from tools.base import Args, CallContext, Observation, Subject, Tool
from tools.command import Command, Result
from tools.docker import (
    CONTAINERS,
    ContainerName,
    container_subject,
    docker,
    failure,
    read_rows,
)
from tools.errors import BadReply
from tools.logs import plain

_USE = (
    '{"name":{{json .Name}},"memory":{{json .MemUsage}},"cpu":{{json .CPUPerc}},'
    '"pids":{{json .PIDs}}}'
)
_SIZES = {"B": 2**-20, "kB": 1e3 / 2**20, "KiB": 2**-10, "MiB": 1.0, "MB": 1e6 / 2**20}
_SIZES |= {"GiB": 2.0**10, "GB": 1e9 / 2**20, "TiB": 2.0**20, "TB": 1e12 / 2**20}
_READ = """docker logs --timestamps --tail "$2" "$3" || exit
docker top "$3" -eo pid,cputimes 2>/dev/null | {
  total=
  while read -r pid cpu; do
    case $cpu in *[!0-9]* | '') ;; *) total=$((${total:-0} + cpu)) ;; esac
  done
  printf '\\n%s cpu_s=%s\\n' "$1" "$total"
}"""
"""The log, and behind the marker the CPU time of all processes; none where it does not run."""
BUSY_PERCENT = 5.0
"""A container that uses so much of a processor works."""
MOVED_MIB = 1.0
"""Memory that comes and goes by itself in a container that does nothing."""
_TIMED = re.compile(r"^(\d{4}-\d\d-\d\dT[0-9:.]+Z) ?(.*)$", re.S)


class ContainerUseArgs(Args):
    """Of which containers."""

    name: ContainerName | Literal[""] = Field(default="", description="Empty: all that run.")


class UseRow(Observation):
    """What one container uses just now."""

    name: str
    memory_mib: float
    """Without the page cache, as docker counts."""
    cpu_percent: float
    """100 is one processor, fully used."""
    pids: int

    def unmoved(self, before: Self) -> bool:
        """Whether it neither works nor grows; what it uses now tells that by itself."""
        same = (self.name, self.pids) == (before.name, before.pids)
        grown = abs(self.memory_mib - before.memory_mib) > MOVED_MIB
        return same and not grown and self.cpu_percent < BUSY_PERCENT


class ContainersInUse(Observation):
    """What running containers use."""

    containers: tuple[UseRow, ...]

    def headline(self) -> str:
        """Name, memory and processor of each."""
        rows = (
            f"{it.name} {it.memory_mib:.0f} MiB {it.cpu_percent:.0f} %" for it in self.containers
        )
        return ", ".join(rows)[:200] or "no container runs"


class ContainerUse(Tool[ContainerUseArgs, ContainersInUse]):
    """Measure what running containers use now: memory, processors, processes; takes 2 seconds."""

    def command(self, args: ContainerUseArgs, call: CallContext) -> Command:
        """Return ``docker stats``."""
        words = [args.name] if args.name else []
        return docker("stats", "--no-stream", "--no-trunc", "--format", _USE, *words)

    def parse(self, args: ContainerUseArgs, call: CallContext, result: Result) -> ContainersInUse:
        """Read the numbers.

        Raises:
            ToolFailed: docker cannot be used, or there is no such container.
        """
        rows = read_rows("docker stats", result)
        running = (row for row in rows if row["pids"].isdigit() and int(row["pids"]))
        return ContainersInUse(containers=tuple(map(_use, running)))

    def subjects(self, args: ContainerUseArgs) -> tuple[Subject, ...]:
        """The container, or the engine."""
        return (container_subject(args.name) if args.name else CONTAINERS,)


def _use(row: dict[str, str]) -> UseRow:
    return UseRow(
        name=row["name"],
        memory_mib=round(size_mib(row["memory"].partition("/")[0]), 1),
        cpu_percent=float(row["cpu"].rstrip("%")),
        pids=int(row["pids"]),
    )


def size_mib(text: str) -> float:
    """Return a size as docker writes it, such as ``1.5GiB`` or ``438MB``, in MiB.

    Raises:
        BadReply: it is no such size.
    """
    match = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]+)\s*", text)
    unit = _SIZES.get(match[2]) if match else None
    if match is None or unit is None:
        raise BadReply(f"docker should tell a size, and said: {text[:80]}")
    return float(match[1]) * unit


class ContainerLogsArgs(Args):
    """Whose output, and how much."""

    name: ContainerName
    tail: int = Field(default=200, ge=1, le=2000)
    """So many lines of the end."""


class ContainerLog(Observation):
    """The end of what a container has written."""

    text: str
    """Both streams in the order in which they were written; rewritten lines in their last state."""
    lines: int
    left_out_bytes: int = 0
    """Bytes missing in the middle, where it was more than can be taken."""
    cpu_s: int | None = None
    """CPU time of its processes in seconds, which grows though it writes nothing; ``None`` where it
    does not run, or the engine does not tell."""

    def headline(self) -> str:
        """How much, and its last line."""
        last = self.text.rstrip().rpartition("\n")[2]
        return f"{self.lines} lines, the last: {last}"[:200]


class ContainerLogs(Tool[ContainerLogsArgs, ContainerLog]):
    """Read the last lines that a container wrote, whether it runs or has ended."""

    def command(self, args: ContainerLogsArgs, call: CallContext) -> Command:
        """Return ``docker logs`` and ``docker top``; times bring the two streams together again."""
        words = (call.marker, str(args.tail), args.name)
        return Command.of("sh", "-c", _READ, "sh", *words, timeout_s=30.0)

    def parse(self, args: ContainerLogsArgs, call: CallContext, result: Result) -> ContainerLog:
        """Read the lines.

        Raises:
            ToolFailed: docker cannot be used, or there is no such container.
        """
        if not result.ok:
            raise failure("docker logs", result)
        out, _, cpu = result.stdout.partition(f"\n{call.marker} cpu_s=")
        lines = merged(out, result.stderr)
        return ContainerLog(
            text=plain("\n".join(lines)),
            lines=len(lines),
            left_out_bytes=result.stdout_omitted + result.stderr_omitted,
            cpu_s=int(cpu) if cpu.strip().isdecimal() else None,
        )

    def subjects(self, args: ContainerLogsArgs) -> tuple[Subject, ...]:
        """The container."""
        return (container_subject(args.name),)


def merged(*streams: str) -> list[str]:
    """Return the lines of several streams in the order of their times, the times taken off.

    A line without a time belongs to the one before it.
    """
    timed: list[tuple[str, str]] = []
    for stream in streams:
        now = ""
        for line in stream.split("\n"):
            match = _TIMED.match(line)
            now = match[1] if match else now
            if match or line:
                timed.append((now, match[2] if match else line))
    return [line for _, line in sorted(timed, key=lambda pair: pair[0])]
