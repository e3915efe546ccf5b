"""Start a server in a container of its own, as a service that goes on when we are gone."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field

from tools.base import Args, CallContext, Observation, Risk, Subject, Tool
from tools.command import Command, Ending, Result
from tools.docker import (
    CONTAINERS,
    ContainerName,
    EnvironmentName,
    ImageRef,
    container_subject,
    docker,
    failure,
    label_words,
    service_subject,
)
from tools.docker_run import Mount, env_words
from tools.errors import ToolFailed
from tools.files import Word
from tools.memory import MEMORY
from tools.network import Port, port_subject

GPUS = r"^(all|[A-Za-z0-9-]+(,[A-Za-z0-9-]+)*)?$"
MADE = "was made and is to be removed"
"""What is said of a container that a failed start leaves behind."""
_ID = re.compile(r"^[0-9a-f]{64}$", re.M)
_ADDRESS = r"^([0-9]{1,3}(\.[0-9]{1,3}){3}|\[?[0-9A-Fa-f:]+\]?|localhost)$"


class StartServiceArgs(Args):
    """Which image, what it runs, and what it gets of the target."""

    image: ImageRef
    argv: tuple[Word, ...] = Field(default=(), description="Behind the entrypoint.")
    name: ContainerName
    host: str = Field(
        default="127.0.0.1", pattern=_ADDRESS, description="The address to listen on."
    )
    port: Port = 8000
    mounts: tuple[Mount, ...] = ()
    env: dict[EnvironmentName, Word] = Field(default_factory=dict)
    gpus: str = Field(default="", pattern=GPUS, description="Empty, all, or ids: 0,1.")
    ipc: Literal["", "host"] = ""
    shm_mib: int = Field(default=0, ge=0, description="0 for docker's own 64 MiB.")
    network: Literal["host", "bridge"] = "host"
    entrypoint: str = Field(
        default="",
        pattern=r"^([^-\x00][^\x00]*)?$",
        description="Empty keeps the image's own.",
    )


class ServiceStarted(Observation):
    """A container that was started; whether it serves, watch_service tells."""

    container: str
    id: str
    port: int

    def headline(self) -> str:
        """Which container, and where it will listen."""
        return f"{self.container} started ({self.id[:12]}), port {self.port}"


class StartService(Tool[StartServiceArgs, ServiceStarted]):
    """Start a server in a new container of an image; watch_service tells when it answers."""

    risk = Risk.CHANGE
    needs = (
        "image_present",
        "architecture_resolves",
        "config_parses",
        "imports",
        "weights_at_hand",
        "name_free",
        "memory_free",
        "port_free",
    )
    establishes = ("process_up",)
    runs_in = "image"

    def title(self, args: StartServiceArgs) -> str:
        """Name it."""
        return f"Start a server of {args.image} on port {args.port}."

    def command(self, args: StartServiceArgs, call: CallContext) -> Command:
        """Return ``docker run --detach``; nothing is pulled."""
        set_words, carried = env_words(args.env)
        words = ["run", "--detach", "--name", args.name, *label_words(call), "--pull", "never"]
        words += _network(args)
        words += ["--gpus", _gpus(args.gpus)] if args.gpus else []
        words += ["--ipc", args.ipc] if args.ipc else []
        words += ["--shm-size", f"{args.shm_mib}m"] if args.shm_mib else []
        for mount in args.mounts:
            words += mount.words
        words += set_words
        words += ["--entrypoint", args.entrypoint] if args.entrypoint else []
        return docker(*words, args.image, *args.argv, env=carried, timeout_s=120.0)

    def parse(self, args: StartServiceArgs, call: CallContext, result: Result) -> ServiceStarted:
        """Read the container's id.

        Raises:
            ToolFailed: docker cannot be used, or does not start it: the name or the port is taken,
                there is no such image, no driver for GPUs. Where a container was made all the same,
                the message says so.
        """
        made = _ID.findall(result.stdout)
        if result.ok and made:
            return ServiceStarted(container=args.name, id=made[-1], port=args.port)
        error = failure(f"docker run {args.image}", result)
        if made:
            raise ToolFailed(f"{error}\nThe container {args.name} {MADE}.")
        if result.ending is not Ending.EXITED:
            raise ToolFailed(f"{error}\nWhether there is a container {args.name} is not known.")
        raise error

    def subjects(self, args: StartServiceArgs) -> tuple[Subject, ...]:
        """The service, its container and port, and the memory that it takes."""
        return (
            service_subject(args.name),
            container_subject(args.name),
            port_subject(args.port),
            CONTAINERS,
            MEMORY,
        )

    def undo_text(self, args: StartServiceArgs) -> str:
        """A service is stopped, and its container removed."""
        return f"docker stop {args.name} (stop_container), then docker rm {args.name}"


def _network(args: StartServiceArgs) -> list[str]:
    if args.network == "host":
        return ["--network", "host"]
    host = "127.0.0.1" if args.host == "localhost" else args.host
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return ["--network", "bridge", "--publish", f"{host}:{args.port}:{args.port}"]


def _gpus(gpus: str) -> str:
    """Return the option's value; several ids are one field of a comma-separated line."""
    return gpus if gpus == "all" else f'"device={gpus}"'
