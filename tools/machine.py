"""All facts of one machine, gathered in one round trip."""

from __future__ import annotations

from typing import ClassVar

from tools.base import Observation
from tools.command import Command, Result
from tools.errors import BadReply
from tools.machine_parts import (
    Cache,
    Clock,
    Cpu,
    Disk,
    Docker,
    Gpus,
    Limits,
    Memory,
    Network,
    Passthrough,
    Problem,
    Python,
    System,
)
from tools.machine_read import read_parts
from tools.machine_software import DISTRIBUTIONS
from tools.machine_text import parts_of
from tools.script import script_text

SCRIPTS = (
    *("machine_common", "machine_host", "machine_gpus", "machine_software", "machine_places"),
    "machine",
)
"""Files of ``tools/scripts`` that make up the whole; the last one begins the work."""
LIMIT_S = 40.0
"""For the whole script; each slow part has a limit of its own below that."""
SLOW_S = 8
"""A driver that is loaded for each question takes some seconds for eight GPUs."""
_ODD = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What a parser may raise on an answer that no machine gives; pydantic's errors among them."""


class MachineFacts(Observation):
    """What a machine is, has, and has free just now; a part that could not be had is ``None``."""

    clock_fields: ClassVar[tuple[str, ...]] = ("clock", "took_s")

    system: System | None = None
    cpu: Cpu | None = None
    memory: Memory | None = None
    gpus: Gpus | None = None
    """``None`` where nothing speaks of an NVIDIA GPU."""
    docker: Docker | None = None
    """``None`` where there is no docker program."""
    python: Python | None = None
    disks: tuple[Disk, ...] = ()
    caches: tuple[Cache, ...] = ()
    network: Network | None = None
    limits: Limits | None = None
    clock: Clock | None = None
    passthrough: Passthrough | None = None
    """Only inside a container."""
    problems: tuple[Problem, ...] = ()
    took_s: float | None = None

    def problem(self, part: str) -> Problem | None:
        """Return what kept a part from being known, or ``None``."""
        return next((problem for problem in self.problems if problem.part == part), None)

    def headline(self) -> str:
        """The machine in one line."""
        return headline(self)


def machine_command(marker: str, *, limit_s: float = LIMIT_S, slow_s: int = SLOW_S) -> Command:
    """Return the command that asks a machine for everything; it only reads.

    Args:
        marker: a word of the caller's random source, without blanks: what the machine says
            besides does not matter.
        limit_s: for the whole of it, in seconds.
        slow_s: how long the GPUs' driver and the Docker engine may take for an answer; a part of
            theirs that takes longer is left out, and named as timed out.
    """
    text = "".join(map(script_text, SCRIPTS))
    return Command(
        ("sh", "-s", "--", marker, str(slow_s), *DISTRIBUTIONS), stdin=text, timeout_s=limit_s
    )


def read_machine(
    result: Result,
    marker: str,
    sent_at: float | None = None,
    received_at: float | None = None,
) -> MachineFacts:
    """Read what ``machine_command`` brought; what is missing is named in ``problems``.

    Args:
        result: how the command ended. Where it was cut short, the parts that came are read.
        marker: the one that the command was made with.
        sent_at: our clock when the command was given to the connector, in seconds since 1970.
        received_at: our clock when its result came back.

    Raises:
        BadReply: nothing of the answer came, or it cannot be read.
        ToolFailed: there is no ``sh``, or the script ended at once.
    """
    try:
        found, problems = read_parts(parts_of(marker, result), sent_at, received_at)
    except _ODD as error:
        kind = type(error).__name__
        raise BadReply(f"the machine's answer cannot be read ({kind}: {error!s:.200})") from error
    return MachineFacts(**found, problems=tuple(problems), took_s=result.duration_s or None)


def headline(facts: MachineFacts) -> str:
    """Say in one line what a machine is."""
    system, cpu, memory = facts.system, facts.cpu, facts.memory
    words = []
    if system:
        inside = f" inside {system.inside}" if system.inside else ""
        words.append(f"{system.os or system.system or '?'} {system.arch}{inside}")
    if cpu and cpu.cores:
        words.append(f"{cpu.cores} CPUs")
    if memory and memory.total_mib:
        unified = " unified" if memory.unified else ""
        words.append(f"{memory.free_mib} of {memory.usable_mib} MiB{unified} memory free")
    words.append(_gpu_words(facts.gpus))
    if facts.docker:
        words.append(f"Docker {facts.docker.server or 'unusable'}")
    if facts.problems:
        words.append(f"not known: {', '.join(problem.part for problem in facts.problems)}")
    return ", ".join(words)[:300]


def _gpu_words(gpus: Gpus | None) -> str:
    if gpus is None or not (gpus.gpus or gpus.pci):
        return "no GPU"
    if not gpus.gpus:
        return f"{len(gpus.pci)} NVIDIA GPU(s), none usable"
    names: dict[str, int] = {}
    for gpu in gpus.gpus:
        names[gpu.name] = names.get(gpu.name, 0) + 1
    return " + ".join(f"{count} x {name}" for name, count in names.items())
