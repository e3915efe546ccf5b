"""Many hosts, a line each: what one looks for first; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len

from agent.doctor.ask import Answer
from agent.doctor.words import part_of, size
from tools.machine import MachineFacts
from tools.machine_parts import Gpus, Memory

HEAD = ("host", "system", "CPUs", "memory free", "GPUs", "driver", "Docker")
GAP = 2
_LEAST = (8, 10, 4, 8, 9, 6, 6)
_SHRINKS = (1, 4, 0, 6, 5)
"""Columns that give room, in this order, where a line is too long."""


def row_of(answer: Answer) -> tuple[str, ...]:
    """Return a host's cells; one that did not answer has a reason instead."""
    name = answer.member.name
    if answer.facts is None:
        why = "no facts" if answer.reached else "not reached"
        return (name, f"{why}: {answer.trouble}", *[""] * (len(HEAD) - 2))
    facts = answer.facts
    memory = facts.memory
    return (
        name,
        _system(facts),
        str(facts.cpu.cores or "?") if facts.cpu else "?",
        _memory(memory) if memory else "?",
        _gpus(facts.gpus),
        facts.gpus.driver if facts.gpus else "",
        facts.docker.server or "silent" if facts.docker else "none",
    )


def widths(rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the width of each column, so that a line fits; 0 for one without any values.

    Args:
        rows: cells, the head's first; where only two are filled, the second one may run over.
        room: the width of a line.
    """
    whole = [row for row in rows if any(row[2:])]
    filled = [any(row[place] for row in whole[1:]) for place in range(len(HEAD))]
    found = [
        max(cell_len(row[place]) for row in whole) if filled[place] else 0
        for place in range(len(HEAD))
    ]
    found[0] = max(cell_len(row[0]) for row in rows)
    for place in _SHRINKS:
        over = sum(found) + GAP * (len(found) - 1 - found.count(0)) - room
        if over > 0:
            found[place] = max(min(found[place], _LEAST[place]), found[place] - over)
    return found


def _system(facts: MachineFacts) -> str:
    if facts.system is None:
        return "?"
    name = re.sub(r"\s*\(.*?\)|GNU/Linux |\s+LTS", "", facts.system.os or facts.system.system)
    inside = f" in {facts.system.inside}" if facts.system.inside else ""
    return f"{name} {facts.system.arch}{inside}".strip()


def _memory(memory: Memory) -> str:
    """Return free and whole memory; many GiB without their fractions."""
    free, total = memory.free_mib, memory.usable_mib
    if free is None or total is None or total < 10 * 1024:
        return part_of(free, total)
    return f"{free / 1024:.0f} of {total / 1024:.0f} GiB"


def _gpus(gpus: Gpus | None) -> str:
    if gpus is None:
        return "none"
    if not gpus.gpus:
        return "no driver"
    kinds: dict[str, int] = {}
    for gpu in gpus.gpus:
        memory = "" if gpu.unified else f" {size(gpu.total_mib)}"
        kind = f"{gpu.name.removeprefix('NVIDIA ')}{memory}"
        kinds[kind] = kinds.get(kind, 0) + 1
    return ", ".join(f"{count} x {kind}" if count > 1 else kind for kind, count in kinds.items())
