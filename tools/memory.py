"""How much memory a server could have: of the host, and of each NVIDIA GPU."""

from __future__ import annotations

from typing import ClassVar, Self

from tools.base import Observation, Subject
from tools.probe import ProbeArgs, ProbeTool

MEMORY = Subject(kind="memory", key="host")
"""The host's memory and that of its GPUs: touched by what starts or stops a server."""


MOVED_MIB = 256
"""Memory of a host that comes and goes by itself."""


class GpuMemory(Observation):
    """One GPU."""

    index: int
    name: str
    total_mib: int | None
    """``None`` where the driver does not tell: on unified memory (GB10) it says ``[N/A]``."""
    free_mib: int | None
    users: tuple[str, ...] = ()
    """Processes that compute on it, as ``pid name MiB``."""


class MemoryState(Observation):
    """What is free just now."""

    total_mib: int
    available_mib: int
    """Memory that can be taken without swapping, page cache included."""
    gpus: tuple[GpuMemory, ...] = ()
    gpu_problem: str = ""
    """Why ``nvidia-smi`` gave no answer; empty where it is not installed."""

    def unmoved(self, before: Self) -> bool:
        """Whether no GPU's memory has changed, and the host's by no more than it does by itself."""
        moved = abs(self.available_mib - before.available_mib) > MOVED_MIB
        return not moved and (self.gpus, self.gpu_problem) == (before.gpus, before.gpu_problem)

    def headline(self) -> str:
        """Free memory in one line."""
        words = f"{self.available_mib} of {self.total_mib} MiB available"
        known = [f"GPU {gpu.index}: {gpu.free_mib} MiB free" for gpu in self.gpus if gpu.free_mib]
        return ", ".join([words, *known])[:200]


class MemoryFree(ProbeTool[ProbeArgs, MemoryState]):
    """Look how much memory the host has available, and each NVIDIA GPU, and who uses it."""

    script: ClassVar[str] = "memory.py"

    def subjects(self, args: ProbeArgs) -> tuple[Subject, ...]:
        """The memory of the host."""
        return (MEMORY,)
