"""A machine in a few lines for people: a word for each part, and what is known of it; pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tools.machine import MachineFacts
from tools.machine_commands import HIDDEN
from tools.machine_parts import (
    Clock,
    Docker,
    Gpu,
    Gpus,
    Limits,
    Memory,
    Network,
    Nic,
    Python,
    System,
)

Line = tuple[str, str]
"""The part, empty where it goes on; and the text."""

_MOST = 4
"""So many things of one kind are named."""
_SKEW_S = 0.5


def lines_of(facts: MachineFacts) -> list[Line]:
    """Return a machine's lines; parts of which nothing is known are left out."""
    parts: dict[str, list[str]] = {
        "system": [_system(facts.system, facts)] if facts.system else [],
        "memory": [_memory(facts.memory)] if facts.memory else [],
        "gpu": list(_gpus(facts.gpus)) if facts.gpus else ["none that is NVIDIA's"],
        "docker": [_docker(facts.docker), *_services(facts.docker)] if facts.docker else ["none"],
        "python": list(_python(facts.python)) if facts.python else [],
        "disks": [_disks(facts)] if facts.disks else [],
        "network": list(_network(facts.network)) if facts.network else [],
        "limits": [_limits(facts.limits)] if facts.limits else [],
        "clock": [_clock(facts.clock)] if facts.clock and _worth(facts.clock) else [],
        "unknown": [_unknown(facts)] if facts.problems else [],
    }
    return [
        ("" if number else part, text)
        for part, texts in parts.items()
        for number, text in enumerate(text for text in texts if text)
    ]


def size(mib: float | None) -> str:
    """Return a size for people: ``512 MiB``, ``91.2 GiB``, ``3.6 TiB``."""
    if mib is None:
        return "?"
    if mib < 1000:
        return f"{mib:.0f} MiB"
    gib = mib / 1024
    return f"{gib:.1f} GiB" if gib < 1000 else f"{gib / 1024:.1f} TiB"


def part_of(free: float | None, total: float | None) -> str:
    """Return how much of something is free, in the unit of the whole: ``91.2 of 119.7 GiB``."""
    if total is None or free is None:
        return f"{size(free)} of {size(total)}"
    number, unit = size(total).split()
    per = {"MiB": 1, "GiB": 1024, "TiB": 1024**2}[unit]
    digits = 0 if unit == "MiB" else 1
    return f"{free / per:.{digits}f} of {number} {unit}"


def speed(mbit: int | None) -> str:
    """Return the speed of a network device: ``200 Gb/s``; empty where it is not known."""
    if not mbit:
        return ""
    return f"{mbit / 1000:g} Gb/s" if mbit >= 1000 else f"{mbit} Mb/s"


def _system(system: System, facts: MachineFacts) -> str:
    cores = facts.cpu.cores if facts.cpu else None
    return _joined(
        f"{system.os or system.system} {system.arch}".strip(),
        f"{cores} CPUs" if cores else "",
        f"kernel {system.kernel}" if system.kernel else "",
        system.product,
        f"inside {system.inside}" if system.inside else "",
    )


def _memory(memory: Memory) -> str:
    holders = [
        f"{it.container or _program(it.command)} {size(it.mib)}"
        for it in memory.holders[:_MOST]
        if it.mib and memory.total_mib and it.mib > memory.total_mib // 100
    ]
    return _joined(
        f"{part_of(memory.free_mib, memory.usable_mib)} free",
        "unified with the GPU" if memory.unified else "",
        f"limited, the machine has {size(memory.total_mib)}" if memory.limit_mib else "",
        f"swap in use {size(memory.swap_used_mib)}" if memory.swap_used_mib else "",
        f"most by {', '.join(holders)}" if holders else "",
    )


def _gpus(gpus: Gpus) -> Iterator[str]:
    if not gpus.gpus:
        yield f"{len(gpus.pci) or 'some'} on the bus, and no driver that works"
        return
    driver = _joined(
        f"driver {gpus.driver}" if gpus.driver else "", f"CUDA {gpus.cuda}" if gpus.cuda else ""
    )
    for number, (_, same) in enumerate(groupby(gpus.gpus, _kind)):
        yield _joined(_alike(list(same)), "" if number else driver)
    held = [
        f"{it.container or _program(it.command)} {size(it.mib)} on {gpu.index}"
        for gpu in gpus.gpus
        for it in gpu.holders
    ]
    if held:
        more = f" and {len(held) - _MOST} more" if len(held) > _MOST else ""
        yield f"held by {', '.join(held[:_MOST])}{more}"


def _kind(gpu: Gpu) -> tuple[object, ...]:
    return gpu.name, gpu.total_mib, gpu.mig, gpu.unified


def _alike(same: list[Gpu]) -> str:
    first = same[0]
    count = f"{len(same)} x " if len(same) > 1 else ""
    capability = f" (sm {first.compute_capability})" if first.compute_capability else ""
    free = [gpu.free_mib for gpu in same if gpu.free_mib is not None]
    memory = "memory unified" if first.unified else f"{size(first.total_mib)} each"
    if free and not first.unified and len(same) == 1:
        memory = f"{part_of(free[0], first.total_mib)} free"
    elif free and not first.unified:
        memory = f"{part_of(min(free), first.total_mib)} free at least"
    mig = f"MIG {first.mig}" if first.mig == "on" else ""
    return _joined(f"{count}{first.name}{capability}", memory, mig)


def _docker(docker: Docker) -> str:
    if not docker.server:
        return "the program is there, and the engine does not answer"
    return _joined(
        docker.server + (" with NVIDIA GPUs" if docker.hands_out_gpus else ""),
        f"{docker.images} images" if docker.images is not None else "",
        size(docker.images_mib) if docker.images_mib else "",
        "rootless" if docker.rootless else "",
    )


def _services(docker: Docker) -> Iterator[str]:
    for service in docker.services[:_MOST]:
        held = [size(service.mib)] if service.mib else []
        held += [f"{size(service.gpu_mib)} of GPU"] if service.gpu_mib else []
        ports = ", ".join(service.ports[:2])
        yield _joined(f"runs {service.name}", service.image, ports, " and ".join(held))
    if len(docker.services) > _MOST:
        yield f"and {len(docker.services) - _MOST} more containers"


def _python(python: Python) -> Iterator[str]:
    lacks = [name for name, there in (("pip", python.pip), ("venv", python.venv)) if there is False]
    yield _joined(
        f"{python.version} at {python.path}" if python.version else "no python3",
        f"without {' and '.join(lacks)}" if lacks else "",
        f"uv {python.uv}" if python.uv else "",
    )
    for environment in python.environments[:_MOST]:
        cuda = f" ({environment.torch_cuda})" if environment.torch_cuda else ""
        packages = [f"{name} {version}" for name, version in environment.packages.items()]
        yield f"{environment.path}: {', '.join(packages[:_MOST])}{cuda}"


def _disks(facts: MachineFacts) -> str:
    disks = [it for it in facts.disks if it.mount != "/dev/shm"]  # noqa: S108 - only its name
    words = [f"{it.mount} {part_of(it.free_mib, it.total_mib)} free" for it in disks[:_MOST]]
    kept = [f"{it.name} {size(it.mib)}" for it in facts.caches[:_MOST] if it.mib]
    return _joined(*words, f"caches: {', '.join(kept)}" if kept else "")


def _network(network: Network) -> Iterator[str]:
    used = [nic for nic in network.nics if nic.addresses and nic.state != "down"]
    used.sort(key=lambda nic: -(nic.speed_mbit or 0))
    for nic in used[:_MOST]:
        yield _nic(nic)
    if len(used) > _MOST:
        yield f"and {len(used) - _MOST} more with addresses"
    idle = [port.device for port in network.rdma if port.state != "ACTIVE"]
    if idle:
        yield f"RDMA not active: {', '.join(idle[:_MOST])}"


def _nic(nic: Nic) -> str:
    addresses = [text for text in nic.addresses if ":" not in text] or nic.addresses
    return _joined(
        f"{nic.name} {', '.join(addresses[:2])}",
        speed(nic.speed_mbit),
        f"MTU {nic.mtu}" if nic.mtu and nic.mtu != 1500 else "",
        f"RDMA {nic.rdma}" if nic.rdma else "",
    )


def _limits(limits: Limits) -> str:
    locked = limits.memlock_kib
    memlock = "unlimited" if locked == -1 else size(None if locked is None else locked / 1024)
    return _joined(
        f"memlock {memlock}" if locked is not None else "",
        f"shm {size(limits.shm_mib)}" if limits.shm_mib is not None else "",
        f"{limits.nofile} files" if limits.nofile else "",
    )


def _worth(clock: Clock) -> bool:
    return clock.skew_s is not None and abs(clock.skew_s) > _SKEW_S + (clock.within_s or 0)


def _clock(clock: Clock) -> str:
    skew = clock.skew_s or 0.0
    return f"{abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} this machine's"


def _unknown(facts: MachineFacts) -> str:
    words = [f"{it.part} ({it.kind})" for it in facts.problems[:_MOST]]
    more = len(facts.problems) - _MOST
    return ", ".join(words) + (f" and {more} more" if more > 0 else "")


def _program(command: str) -> str:
    """Return what a process is called: its program, or the script or module that a Python runs."""
    words = [word for word in command.split() if word != HIDDEN]
    names = [word.rpartition("/")[2] for word in words]
    after = names[1:3] if names and names[0].startswith("python") else []
    if after[:1] == ["-m"] and len(after) > 1:
        return words[2]
    if after and not after[0].startswith("-"):
        return after[0]
    return names[0] if names else "?"


def _joined(*words: str) -> str:
    return ", ".join(word for word in words if word)
