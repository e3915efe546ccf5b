"""What a target is: system, processors, memory, user and disks."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from tools.base import Observation, Subject
from tools.files import TargetPath
from tools.probe import ProbeArgs, ProbeTool

HOST = Subject(kind="host", key="host")
"""The target as a whole."""


class HostFactsArgs(ProbeArgs):
    """Who asks, and about which places."""

    paths: tuple[TargetPath, ...] = Field(
        default=(), description="Whose disks matter.\n\nThey need not exist yet."
    )


class Disk(Observation):
    """The file system under a path; for a path to come, the one where it would be made."""

    clock_fields = ("free_mib",)

    path: str
    exists: bool
    free_mib: int | None
    """Free for an ordinary user, in MiB."""
    total_mib: int | None
    filesystem: str | None
    """Its type, such as ``ext4`` or ``overlay``; ``None`` where the system does not say (macOS)."""
    read_only: bool | None


class HostState(Observation):
    """What a machine is and has free just now."""

    clock_fields = ("memory_available_mib",)

    system: str
    """``Linux`` or ``Darwin``."""
    machine: str
    """Processor architecture, such as ``x86_64`` or ``aarch64``."""
    os_release: str
    kernel: str
    cpu_count: int
    """Processors that a process may use."""
    memory_mib: int | None
    memory_available_mib: int | None
    """Memory that can be taken without swapping; ``None`` where the system does not say (macOS)."""
    in_container: bool
    """Best effort: whether this looks like the inside of a container."""
    user: str
    disks: tuple[Disk, ...] = ()

    def headline(self) -> str:
        """The machine in one line."""
        container = ", in a container" if self.in_container else ""
        memory = "?" if self.memory_available_mib is None else f"{self.memory_available_mib}"
        return (
            f"{self.os_release or self.system} {self.machine}, {self.cpu_count} CPUs, "
            f"{memory} of {self.memory_mib or '?'} MiB memory free, user {self.user}{container}"
        )


class HostFacts(ProbeTool[HostFactsArgs, HostState]):
    """Look at the target: system, architecture, CPUs, memory, user, disks under given paths."""

    script: ClassVar[str] = "host.py"

    def subjects(self, args: HostFactsArgs) -> tuple[Subject, ...]:
        """The host."""
        return (HOST,)
