"""Who holds a TCP port on the target, and which other one is free."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from tools.base import Observation, Subject
from tools.files import Word
from tools.probe import ProbeArgs, ProbeTool

Port = Annotated[int, Field(ge=1, le=65535)]
"""A TCP port number."""


def port_subject(port: int) -> Subject:
    """Return the subject of a port."""
    return Subject(kind="port", key=str(port))


class PortOwnerArgs(ProbeArgs):
    """Which port, on which address."""

    host: Word = Field(default="127.0.0.1", description="The address to listen on.")
    port: Port = Field(description="The TCP port.")
    spare: tuple[Port, ...] = Field(
        default=(), max_length=1000, description="Ports to try instead, best first."
    )


class PortState(Observation):
    """Whether a server could listen on a port, and who keeps it from that."""

    free: bool
    """Whether it could be bound, with ``SO_REUSEADDR`` as servers do."""
    bind_error: str | None
    """Why not, such as ``EADDRINUSE: Address already in use``."""
    owner_pid: int | None
    """``None`` also where the owner belongs to another user or container and cannot be seen."""
    owner_command: str | None
    owner_user: str | None
    """Known on Linux even when the process cannot be seen."""
    owner_start: str | None
    """When the owner began, as its host counts: a pid with another start is another process.

    On Linux clock ticks since boot (field 22 of ``/proc/PID/stat``), elsewhere the date of ``ps``.
    """
    answers_http: bool
    """Whether whatever holds the port speaks plain HTTP."""
    next_free: int | None
    """The first of ``spare`` that could be bound."""

    def headline(self) -> str:
        """Free, or held by whom."""
        if self.free:
            return "free"
        spare = f"; {self.next_free} is free" if self.next_free else ""
        if self.owner_pid is None:
            return f"not free ({self.bind_error}), owner not visible{spare}"
        return f"held by pid {self.owner_pid} ({self.owner_command}, {self.owner_user}){spare}"[
            :200
        ]


class PortOwner(ProbeTool[PortOwnerArgs, PortState]):
    """Tell whether a port is free, which process holds it, and which other one is free."""

    script: ClassVar[str] = "port.py"

    def subjects(self, args: PortOwnerArgs) -> tuple[Subject, ...]:
        """The port."""
        return (port_subject(args.port),)
