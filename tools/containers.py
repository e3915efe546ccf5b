"""Look at containers: which there are, and what one is."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field

from tools.base import Args, CallContext, Observation, Subject, Tool
from tools.command import Command, Result
from tools.docker import (
    CONTAINERS,
    ContainerName,
    container_subject,
    docker,
    is_missing,
    mib,
    our_labels,
    read_row,
    read_rows,
)

LABEL = r"^[A-Za-z0-9][A-Za-z0-9_./-]*(=[A-Za-z0-9_./:@+-]*)?$"
NEVER = "0001-01-01T00:00:00Z"
"""How the engine writes a time that has not come."""

_ROW = (
    '{"name":{{json .Names}},"id":{{json .ID}},"image":{{json .Image}},"state":{{json .State}},'
    '"status":{{json .Status}},"ports":{{json .Ports}},"labels":{{json .Labels}},'
    '"created":{{json .CreatedAt}},"networks":{{json .Networks}}}'
)
"""Only what is wanted: for all fields the engine would measure every container's disk."""
_NAMES = (
    '[{{range $i, $e := .Config.Env}}{{if $i}},{{end}}{{json (index (split $e "=") 0)}}{{end}}]'
)
_ONE = (
    '{"id":{{json .Id}},"name":{{json .Name}},"image":{{json .Config.Image}},'
    '"image_id":{{json .Image}},"state":{{json .State}},"created":{{json .Created}},'
    '"restart_count":{{json .RestartCount}},"host":{{json .HostConfig.NetworkMode}},'
    '"restart":{{json .HostConfig.RestartPolicy}},"memory":{{json .HostConfig.Memory}},'
    '"auto_remove":{{json .HostConfig.AutoRemove}},'
    '"ports":{{json .NetworkSettings.Ports}},"mounts":{{json .Mounts}},'
    '"entrypoint":{{json .Config.Entrypoint}},"cmd":{{json .Config.Cmd}},'
    '"user":{{json .Config.User}},"labels":{{json .Config.Labels}},"env":' + _NAMES + "}"
)
"""Names of variables leave the target, their values (keys, tokens) never do."""
_PORT = re.compile(r"(?:(\[[^\]]*\]|[^,\s]*?):(\d+)(?:-\d+)?->)?(\d+)(?:-\d+)?/(tcp|udp|sctp)")
_LABELS = re.compile(r"(?:^|,)(bringup\.[a-z_.]+)=([^,]*)")


class Port(Observation):
    """A port of a container, and where the target offers it."""

    container_port: int
    protocol: str = "tcp"
    host_ip: str = ""
    """Empty where it is not published."""
    host_port: int | None = None


class ListContainersArgs(Args):
    """Which containers."""

    all: bool = Field(default=False, description="Also those that do not run.")
    label: str = Field(
        default="",
        pattern=rf"^$|{LABEL}",
        description="Only those with this label: bringup.run, or bringup.run=ID.",
    )


class ContainerRow(Observation):
    """One container of the list."""

    clock_fields = ("status",)

    name: str
    id: str
    image: str
    """As it was asked for when the container was made; the tag may mean another image by now."""
    state: str
    """running, exited, created, paused, restarting or dead."""
    status: str
    """In words, such as ``Up 3 hours``."""
    ports: tuple[Port, ...] = ()
    """Published ports; on the host's own network (see ``networks``) there are none to tell."""
    networks: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    """Only our own, ``bringup.*``."""
    created: str = ""


class ContainerList(Observation):
    """The containers of an engine."""

    containers: tuple[ContainerRow, ...]

    def headline(self) -> str:
        """How many, and their names."""
        names = [f"{row.name} ({row.image}, {row.state})" for row in self.containers]
        return f"{len(names)} containers" + (": " + ", ".join(names) if names else "")


class ListContainers(Tool[ListContainersArgs, ContainerList]):
    """List the containers of the Docker engine: name, image, state, ports and our labels."""

    def command(self, args: ListContainersArgs, call: CallContext) -> Command:
        """Return ``docker ps``."""
        words = ["--all"] if args.all else []
        words += ["--filter", f"label={args.label}"] if args.label else []
        return docker("ps", *words, "--no-trunc", "--format", _ROW)

    def parse(self, args: ListContainersArgs, call: CallContext, result: Result) -> ContainerList:
        """Read the rows.

        Raises:
            ToolFailed: docker cannot be used.
        """
        rows = read_rows("docker ps", result)
        return ContainerList(containers=tuple(map(_row, rows)))

    def subjects(self, args: ListContainersArgs) -> tuple[Subject, ...]:
        """All containers."""
        return (CONTAINERS,)


def _row(row: dict[str, Any]) -> ContainerRow:
    ports = (
        Port(container_port=int(inner), protocol=kind, host_ip=ip, host_port=outer or None)
        for ip, outer, inner, kind in _PORT.findall(row["ports"])
    )
    return ContainerRow(
        name=row["name"].split(",")[0],
        id=row["id"],
        image=row["image"],
        state=row["state"],
        status=row["status"],
        ports=tuple(ports),
        networks=row["networks"],
        labels=dict(_LABELS.findall(row["labels"])),
        created=row["created"],
    )


class ContainerArgs(Args):
    """Which container."""

    name: ContainerName = Field(description="The container's name or id.")


class ContainerMount(Observation):
    """A place of the target inside a container."""

    source: str
    target: str
    read_only: bool


class ContainerState(Observation):
    """What a container is; without ``present`` all else says nothing."""

    clock_fields = ("pid", "started_at", "finished_at", "restart_count")
    """That its engine starts it again and again is no sign of life."""

    present: bool
    id: str = ""
    name: str = ""
    image: str = ""
    """The reference that it was made from."""
    image_id: str = ""
    """The image that it really is."""
    state: str = ""
    """running, exited, created, paused, restarting or dead."""
    exit_code: int | None = None
    """Of a container that has ended."""
    oom_killed: bool = False
    error: str = ""
    """The engine's words about a failed start."""
    created: str = ""
    started_at: str = ""
    finished_at: str = ""
    restart_policy: str = ""
    restart_count: int = 0
    auto_remove: bool = False
    """Whether it is gone for good once it stops (``docker run --rm``)."""
    network_mode: str = ""
    ports: tuple[Port, ...] = ()
    mounts: tuple[ContainerMount, ...] = ()
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    """Words behind the entrypoint."""
    user: str = ""
    env_names: tuple[str, ...] = ()
    """Names only: values may be secret."""
    pid: int | None = None
    """Of its first process, as the engine's machine counts."""
    memory_limit_mib: int | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    """Only our own, ``bringup.*``."""

    def headline(self) -> str:
        """State, image, and what explains an end."""
        if not self.present:
            return "there is no such container"
        code = "" if self.exit_code is None else f", code {self.exit_code}"
        memory = ", killed for lack of memory" if self.oom_killed else ""
        error = f": {self.error}" if self.error else ""
        return f"{self.name} is {self.state}{code}{memory}, from {self.image}{error}"[:200]


class InspectContainer(Tool[ContainerArgs, ContainerState]):
    """Look at one container: state, exit code, command, ports, mounts, image; never env values."""

    def command(self, args: ContainerArgs, call: CallContext) -> Command:
        """Return ``docker container inspect`` for the fields that are read."""
        return docker("container", "inspect", "--format", _ONE, args.name)

    def parse(self, args: ContainerArgs, call: CallContext, result: Result) -> ContainerState:
        """Read what it is; that there is none is an answer too.

        Raises:
            ToolFailed: docker cannot be used.
        """
        if is_missing(result):
            return ContainerState(present=False)
        row = read_row("docker container inspect", result)
        state, limit = row["state"], row["memory"]
        ended = state["Status"] in ("exited", "dead")
        return ContainerState(
            present=True,
            id=row["id"],
            name=row["name"].lstrip("/"),
            image=row["image"],
            image_id=row["image_id"],
            state=state["Status"],
            exit_code=state["ExitCode"] if ended else None,
            oom_killed=state["OOMKilled"],
            error=state["Error"],
            created=row["created"],
            started_at=_time(state["StartedAt"]),
            finished_at=_time(state["FinishedAt"]),
            restart_policy=(row["restart"] or {}).get("Name") or "no",
            restart_count=row["restart_count"] or 0,
            auto_remove=bool(row.get("auto_remove")),
            network_mode=row["host"],
            ports=_ports(row["ports"]),
            mounts=tuple(map(_mount, row["mounts"] or ())),
            entrypoint=_words(row["entrypoint"]),
            command=_words(row["cmd"]),
            user=row["user"],
            env_names=tuple(sorted(row["env"])),
            pid=state["Pid"] or None,
            memory_limit_mib=mib(limit) if limit else None,
            labels=our_labels(row["labels"]),
        )

    def subjects(self, args: ContainerArgs) -> tuple[Subject, ...]:
        """The container, and which ones there are."""
        return (container_subject(args.name), CONTAINERS)


def _time(value: str) -> str:
    return "" if value == NEVER else value


def _words(value: list[str] | None) -> tuple[str, ...]:
    return tuple(value or ())


def _mount(mount: dict[str, Any]) -> ContainerMount:
    source = mount.get("Name") or mount.get("Source", "")
    return ContainerMount(source=source, target=mount["Destination"], read_only=not mount["RW"])


def _ports(ports: dict[str, list[dict[str, str]] | None] | None) -> tuple[Port, ...]:
    found = []
    for inner, places in sorted((ports or {}).items()):
        number, _, protocol = inner.partition("/")
        for place in places or [{}]:
            where = {"host_ip": place.get("HostIp", ""), "host_port": place.get("HostPort") or None}
            found.append({"container_port": number, "protocol": protocol, **where})
    return tuple(map(Port.model_validate, found))
