"""Processes that hold memory: who they are, and in which container."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tools.machine_commands import plain_words
from tools.machine_parts import Process
from tools.machine_text import Part, mib_of_kib, whole

MOST_HOLDERS = 8
_DOCKER = re.compile(r"(?<![0-9a-f])([0-9a-f]{64})(?![0-9a-f])")
_LXC = re.compile(r"(?:/lxc/|lxc\.payload\.)([\w.-]+)")


@dataclass(frozen=True, slots=True)
class Seen:
    """A process as /proc shows it."""

    pid: int
    user: str
    mib: int | None
    command: str
    container: str
    """The whole id of a Docker container, the name of another, or empty."""


def processes_of(part: Part) -> list[Seen]:
    """Read rows of pid, user id, user, resident KiB, control group and words; largest first."""
    found = []
    for line in part.lines:
        fields = line.split("\t", 5)
        pid = whole(fields[0])
        if len(fields) == 6 and pid is not None:
            _, uid, user, kib, group, words = fields
            seen = Seen(pid, user or uid, mib_of_kib(kib), plain_words(words), _container(group))
            found.append(seen)
    return sorted(found, key=lambda seen: -(seen.mib or 0))


def holders(seen: list[Seen], names: dict[str, str]) -> tuple[Process, ...]:
    """Return the largest of them as facts; ``names`` are those of containers by id."""
    return tuple(
        Process(
            pid=it.pid,
            user=it.user,
            command=it.command,
            mib=it.mib,
            container=container_name(it.container, names),
        )
        for it in seen[:MOST_HOLDERS]
    )


def container_name(found: str, names: dict[str, str]) -> str:
    """Return a container's name, else what is known of it, short."""
    return names.get(found, found[:12] if _DOCKER.fullmatch(found) else found)


def _container(group: str) -> str:
    docker = _DOCKER.search(group)
    if docker:
        return docker[1]
    lxc = _LXC.search(group)
    return lxc[1] if lxc else ""
