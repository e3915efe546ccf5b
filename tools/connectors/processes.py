"""Reads from ``/proc`` what runs on this machine; where there is no ``/proc``, nothing is seen."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

STATE, PARENT, GROUP, SESSION, START = 0, 1, 2, 3, 19
"""Places of fields in ``/proc/PID/stat``, counted after the program's name."""


def family(leader: int) -> dict[int, str]:
    """Return the group, session and descendants of a process, each with its start time."""
    table = {pid: fields for pid in _pids() if (fields := _stat(pid)) is not None}
    mine = str(leader)
    found = {pid for pid, fields in table.items() if mine in (fields[GROUP], fields[SESSION])}
    more = found
    while more:
        more = {pid for pid, fields in table.items() if int(fields[PARENT]) in found} - found
        found = found | more
    return {pid: table[pid][START] for pid in found}


def group_runs(group: int) -> bool:
    """Whether a process of the group still runs; zombies, which nobody reaps, do not count."""
    stats = [fields for pid in _pids() if (fields := _stat(pid)) is not None]
    running = [fields for fields in stats if fields[GROUP] == str(group) and _runs(fields)]
    return bool(running) or not stats


def is_running(pid: int, start: str) -> bool:
    """Whether the process that began at ``start`` still runs; a zombie does not."""
    fields = _stat(pid)
    return fields is not None and fields[START] == start and _runs(fields)


def holders(inodes: Iterable[int]) -> set[int]:
    """Return the processes that hold one of these pipes open, as far as we may see."""
    wanted = {f"pipe:[{inode}]" for inode in inodes}
    found = set()
    for pid in _pids():
        with contextlib.suppress(OSError):
            folder = Path(f"/proc/{pid}/fd")
            if any(_link(entry) in wanted for entry in folder.iterdir()):
                found.add(pid)
    return found


def command_of(pid: int) -> str:
    """Return a process's command line, shortened; ``?`` where it cannot be read."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        return " ".join(words).strip()[:200] or "?"
    return "?"


def _stat(pid: int) -> list[str] | None:
    """Return the fields of ``/proc/PID/stat`` after the name; ``None`` where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _pids() -> list[int]:
    try:
        return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    except OSError:
        return []


def _runs(fields: list[str]) -> bool:
    return fields[STATE] not in "ZX"


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""
