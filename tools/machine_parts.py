"""What is known of a machine, part by part: frozen models, sizes in MiB, ``None`` for unknown."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from tools.base import Observation
from tools.gpu_parts import Gpu, Gpus, Holder, MigSlice
from tools.network_parts import Network, Nic, RdmaPort

__all__ = [
    "Cache",
    "Clock",
    "Cpu",
    "Disk",
    "Docker",
    "Environment",
    "Gpu",
    "Gpus",
    "Holder",
    "Limits",
    "Memory",
    "MigSlice",
    "Network",
    "Nic",
    "Passthrough",
    "Problem",
    "Process",
    "Python",
    "RdmaPort",
    "Service",
    "System",
    "Trouble",
]
Trouble = Literal["missing", "denied", "timed out", "failed", "cut off"]
"""Why a part of the facts could not be had."""


class Problem(Observation):
    """A part that could not be had, or not wholly."""

    part: str
    """Such as ``gpus``, ``docker``, ``images``."""
    kind: Trouble
    """missing: no such program or file · denied: this user may not · timed out: it gave no answer
    within its limit · failed: it ended with an error, see ``note`` · cut off: the machine's answer
    ended before it."""
    note: str = ""
    """What was said, in the words of the machine; one line."""


class System(Observation):
    """The machine as such."""

    clock_fields: ClassVar[tuple[str, ...]] = ("uptime_s",)

    name: str = ""
    system: str = ""
    """``Linux``, ``Darwin``."""
    os: str = ""
    """Name and release of the distribution."""
    kernel: str = ""
    arch: str = ""
    product: str = ""
    """What the firmware calls the machine."""
    user: str = ""
    uid: int | None = None
    groups: tuple[str, ...] = ()
    home: str = ""
    boot_id: str = ""
    uptime_s: float | None = None
    init: str = ""
    """Name of process 1, such as ``systemd``."""
    systemd: bool = False
    """Whether services can be had through systemd."""
    inside: str = ""
    """The container that this is the inside of: ``docker``, ``lxc``, ``podman``, ...; or empty."""
    sudo: Literal["root", "member", ""] = ""
    """root: it is · member: of a group that may become root; empty: neither."""


class Cpu(Observation):
    """Processors."""

    model: str = ""
    cores: int | None = None
    """Processors that a process may use."""
    limit: float | None = None
    """Processors that a control group leaves, where it leaves fewer."""


class Process(Observation):
    """A process that holds memory."""

    pid: int
    user: str = ""
    command: str = ""
    """The words that say what runs; all others are left out, since they may be secrets."""
    mib: int | None = None
    """Resident memory."""
    container: str = ""
    """Name or short id of its container."""


class Memory(Observation):
    """The machine's memory."""

    clock_fields: ClassVar[tuple[str, ...]] = ("available_mib",)

    total_mib: int | None = None
    available_mib: int | None = None
    """What can be taken without swapping."""
    swap_total_mib: int | None = None
    swap_used_mib: int | None = None
    limit_mib: int | None = None
    """What a control group leaves, where that is less than the machine has."""
    limit_used_mib: int | None = None
    unified: bool = False
    """Whether a GPU shares it (GB10)."""
    hugepages_mib: int | None = None
    """Kept for huge pages, so not to be had otherwise."""
    holders: tuple[Process, ...] = ()
    """Who holds most, largest first."""

    @property
    def usable_mib(self) -> int | None:
        """What there is for programs here: all of it, or what a control group leaves."""
        return _least(self.total_mib, self.limit_mib)

    @property
    def free_mib(self) -> int | None:
        """What of that can still be taken without swapping."""
        if self.limit_mib is None or self.limit_used_mib is None:
            return _least(self.available_mib, self.limit_mib)
        return _least(self.available_mib, max(self.limit_mib - self.limit_used_mib, 0))


def _least(*sizes: int | None) -> int | None:
    return min((size for size in sizes if size is not None), default=None)


class Service(Observation):
    """A running container."""

    name: str
    id: str = ""
    image: str = ""
    status: str = ""
    ports: tuple[str, ...] = ()
    """As docker shows them; ``host network`` where it shares the machine's."""
    mib: int | None = None
    """Resident memory of its processes that are visible from here."""
    gpu_mib: int | None = None


class Docker(Observation):
    """The Docker engine, as this user sees it."""

    client: str = ""
    server: str = ""
    """Empty where the engine does not answer; ``MachineFacts.problems`` says why."""
    root: str = ""
    storage: str = ""
    runtimes: tuple[str, ...] = ()
    default_runtime: str = ""
    cdi: tuple[str, ...] = ()
    """Devices that the engine knows by CDI, else files with their descriptions."""
    toolkit: str = ""
    """Version of NVIDIA's container toolkit."""
    cgroup: str = ""
    rootless: bool = False
    images: int | None = None
    images_mib: int | None = None
    containers: int | None = None
    """All of them, stopped ones too."""
    socket: str = ""
    """Owner, group and mode of the socket: ``root:docker 660``."""
    services: tuple[Service, ...] = ()

    @property
    def hands_out_gpus(self) -> bool:
        """Whether it knows NVIDIA's runtime, or a GPU by CDI."""
        return "nvidia" in self.runtimes or any("nvidia" in name for name in self.cdi)


class Environment(Observation):
    """A place where Python packages of ours may lie."""

    path: str
    python: str = ""
    packages: dict[str, str] = Field(default_factory=dict)
    """Versions by name, of the packages that matter for serving, as their metadata says."""
    torch_cuda: str = ""
    """The CUDA that torch was built for; ``cpu`` for none, empty where it is not told."""


class Python(Observation):
    """The Python that is found first, and environments."""

    path: str = ""
    version: str = ""
    pip: bool | None = None
    venv: bool | None = None
    """Whether it can make environments (``ensurepip`` is there)."""
    uv: str = ""
    environments: tuple[Environment, ...] = ()


class Disk(Observation):
    """A file system that matters."""

    clock_fields: ClassVar[tuple[str, ...]] = ("free_mib",)

    mount: str
    paths: tuple[str, ...] = ()
    """What of interest lies on it: ``/``, ``home``, ``docker``, ``models``, ``tmp``, ``shm``."""
    type: str = ""
    total_mib: int | None = None
    free_mib: int | None = None
    """Free for an ordinary user."""
    writable: bool | None = None


class Cache(Observation):
    """A folder that grows."""

    name: str
    """``models``, ``pip``, ``uv``, ``vllm``, ..."""
    path: str
    mib: int | None = None
    """``None`` where counting took too long."""
    items: int | None = None
    """Models in it."""


class Limits(Observation):
    """What a process of this user may use."""

    memlock_kib: int | None = None
    """Memory that may be locked, as RDMA does; ``-1`` for unlimited."""
    nofile: int | None = None
    nofile_hard: int | None = None
    shm_mib: int | None = None
    """Size of ``/dev/shm``."""


class Clock(Observation):
    """The machine's clock against ours."""

    clock_fields: ClassVar[tuple[str, ...]] = ("epoch_s", "skew_s", "within_s")

    epoch_s: float | None = None
    """What it said when it was asked."""
    skew_s: float | None = None
    """By how much it is ahead of ours; ``None`` where we did not note the time."""
    within_s: float | None = None
    """The skew is true to so many seconds: half of what the way there and back took."""
    synchronized: bool | None = None
    """Whether the machine says that its clock is kept right."""


class Passthrough(Observation):
    """What a container has of its host's devices."""

    cgroup_rules: tuple[str, ...] = ()
    """Devices that it may use, where the rules can be read (control groups of version 1)."""
    rules_readable: bool = False
    nvidia_major: tuple[int, ...] = ()
    """Major numbers that the kernel gave the driver's devices."""
    unprivileged: bool | None = None
    """Whether root in here is an ordinary user on the host."""
