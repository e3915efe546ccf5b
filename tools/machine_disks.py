"""File systems that matter, and folders that grow."""

from __future__ import annotations

import re

from tools.machine_parts import Cache, Disk, Problem
from tools.machine_text import MISSING, OUT_OF_TIME, Part, mib_of_kib, whole

_NUMBERS = re.compile(r"(?<!\S)(\d{1,20}) +(\d{1,20}) +(-?\d{1,20}) +(?:\d{1,3}%|-) +(/.*)$")
"""Blocks, used, available, capacity and the mount point, in rows of ``df -Pk``."""


def disks_of(own: Part, others: Part) -> tuple[tuple[Disk, ...], list[Problem]]:
    """Read the file systems, each once, with the places of interest that lie on it."""
    found: dict[str, Disk] = {}
    problems: dict[int | None, Problem] = {}
    for row in (*own.rows("disk"), *others.rows("disk")):
        if len(row) != 5:
            continue
        name, path, code, use, text = row
        disk = _disk(text, use)
        place = path if name == "other" else name
        if disk is None:
            problems.setdefault(whole(code), _problem(whole(code), path, text))
            continue
        if name == "other" and disk.mount in found:
            continue
        known = found.setdefault(disk.mount, disk)
        usable = known.writable or disk.writable
        found[disk.mount] = known.model_copy(
            update={"paths": (*known.paths, place), "writable": usable}
        )
    return tuple(found.values()), list(problems.values())


def _problem(code: int | None, path: str, text: str) -> Problem:
    """Say why a file system is not known: `disk` for one that hangs, `disks` for all else."""
    if code in OUT_OF_TIME:
        return Problem(part="disk", kind="timed out", note=f"df {path} gives no answer"[:200])
    if code == MISSING:
        return Problem(part="disks", kind="missing", note="there is no program df")
    note = f"df {path}: {' '.join(text.split()) or code}"[:200]
    return Problem(part="disks", kind="failed", note=note)


def _disk(text: str, use: str) -> Disk | None:
    match = _NUMBERS.search(text.strip())
    if match is None:
        return None
    before = text[: match.start()].split()
    typed = "Type" in before[:3] and len(before) > 1
    return Disk(
        mount=match[4].strip(),
        type=before[-1] if typed else "",
        total_mib=mib_of_kib(match[1]),
        free_mib=mib_of_kib(match[3]),
        writable=use == "writable",
    )


def caches_of(part: Part) -> tuple[Cache, ...]:
    """Read the folders and their sizes."""
    found = []
    for row in part.rows("cache"):
        if len(row) == 5:
            name, path, _, items, kib = row
            size = mib_of_kib(kib)
            count = whole(items) if name == "models" else None
            found.append(Cache(name=name, path=path, mib=size, items=count))
    return tuple(found)
