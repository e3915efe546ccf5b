"""What a machine lacks that another has: for moving a service from the first to the second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agent.doctor.across import PACKAGES
from agent.doctor.finding import Difference, book, gib
from agent.doctor.gpu_rules import older
from tools.machine import MachineFacts
from tools.machine_parts import Gpu, Nic

_LESS = 0.95
"""Sizes that differ by less than a twentieth are the same."""


@dataclass(frozen=True, slots=True)
class _Lack:
    code: str
    a: str
    b: str


def compare(a: MachineFacts, b: MachineFacts) -> list[Difference]:
    """Return what ``b`` lacks that ``a`` has, what weighs most first; what b has more is left out.

    What is not known of one of them is not compared.
    """
    words = book().differences
    found = []
    for rule in (_system, _gpus, _memory, _docker, _disks, _python, _network, _limits):
        for lack in rule(a, b):
            entry = words[lack.code]
            text = entry.says.format(a=lack.a, b=lack.b or "nothing")
            difference = Difference(
                code=lack.code,
                level=entry.level,
                part=entry.part,
                a=lack.a,
                b=lack.b,
                text=text,
                weight=entry.weight,
            )
            found.append(difference)
    return sorted(found, key=lambda difference: -difference.weight)


def _system(a: MachineFacts, b: MachineFacts) -> Iterator[_Lack]:
    if a.cpu and b.cpu and _less(a.cpu.cores, b.cpu.cores):
        yield _Lack("cores", str(a.cpu.cores), str(b.cpu.cores))
    if a.system is None or b.system is None:
        return
    if a.system.arch != b.system.arch:
        yield _Lack("arch", a.system.arch, b.system.arch)
    if a.system.os != b.system.os:
        yield _Lack("os", a.system.os, b.system.os)
    if a.system.systemd and not b.system.systemd:
        yield _Lack("systemd", "systemd", b.system.init)
    rights = _rights(a.system.groups) - _rights(b.system.groups)
    if rights and b.system.uid != 0:
        yield _Lack("rights", ", ".join(sorted(rights)), "")


def _rights(groups: tuple[str, ...]) -> set[str]:
    """Return groups that give rights over what a server needs."""
    return set(groups) & {"docker", "sudo", "wheel", "video", "render"}


def _gpus(a: MachineFacts, b: MachineFacts) -> Iterator[_Lack]:
    if a.gpus is None or not a.gpus.gpus:
        return
    theirs = a.gpus.gpus
    if b.gpus is None or not b.gpus.gpus:
        yield _Lack("gpu_none", f"{len(theirs)} x {theirs[0].name}", "")
        return
    ours = b.gpus.gpus
    if len(ours) < len(theirs):
        yield _Lack("gpu_count", str(len(theirs)), str(len(ours)))
    yield from _one_gpu(theirs, ours)
    if b.gpus.cuda and a.gpus.cuda and older(b.gpus.cuda, a.gpus.cuda):
        yield _Lack("cuda", a.gpus.cuda, b.gpus.cuda)
    if b.gpus.driver and a.gpus.driver and older(b.gpus.driver, a.gpus.driver):
        yield _Lack("driver", a.gpus.driver, b.gpus.driver)
    if _nvlinks(a.gpus.links) and len(ours) > 1 and not _nvlinks(b.gpus.links):
        yield _Lack("gpu_links", _kinds(a.gpus.links), _kinds(b.gpus.links))


def _one_gpu(theirs: tuple[Gpu, ...], ours: tuple[Gpu, ...]) -> Iterator[_Lack]:
    """Compare the least GPU of each."""
    least = [min((gpu.total_mib or 0 for gpu in gpus), default=0) for gpus in (theirs, ours)]
    if all(least) and _less(*least):
        yield _Lack("gpu_memory", gib(least[0]), gib(least[1]))
    kinds = [_unified(gpus) for gpus in (theirs, ours)]
    if kinds[0] != kinds[1]:
        yield _Lack("gpu_unified", *kinds)
    capable = [_capabilities(gpus) for gpus in (theirs, ours)]
    if all(capable) and capable[0] != capable[1]:
        yield _Lack("gpu_capability", *capable)


def _unified(gpus: tuple[Gpu, ...]) -> str:
    return "shared with the machine" if any(gpu.unified for gpu in gpus) else "its own"


def _capabilities(gpus: tuple[Gpu, ...]) -> str:
    """Name models with their compute capability; empty where one does not tell it."""
    if not all(gpu.compute_capability for gpu in gpus):
        return ""
    return ", ".join(sorted({f"{gpu.name} (compute {gpu.compute_capability})" for gpu in gpus}))


def _nvlinks(links: tuple[str, ...]) -> bool:
    return any(link.rpartition(" ")[2].startswith("NV") for link in links)


def _kinds(links: tuple[str, ...]) -> str:
    return ", ".join(sorted({link.rpartition(" ")[2] for link in links}))


def _memory(a: MachineFacts, b: MachineFacts) -> Iterator[_Lack]:
    if a.memory is None or b.memory is None:
        return
    theirs, ours = a.memory, b.memory
    if _less(theirs.usable_mib, ours.usable_mib):
        yield _Lack("memory", gib(theirs.usable_mib), gib(ours.usable_mib))
    elif _less(theirs.free_mib, ours.free_mib):
        yield _Lack("memory_free", gib(theirs.free_mib), gib(ours.free_mib))


def _docker(a: MachineFacts, b: MachineFacts) -> Iterator[_Lack]:
    theirs, ours = a.docker, b.docker
    if theirs is None or not theirs.server or _is_cut_off(b, "docker"):
        return
    if ours is None or not ours.server:
        yield _Lack("docker", theirs.server, "")
        return
    if theirs.hands_out_gpus and not ours.hands_out_gpus:
        yield _Lack("docker_gpus", ", ".join(theirs.cdi or ("the runtime nvidia",)), "")
    if older(ours.server, theirs.server):
        yield _Lack("docker_version", theirs.server, ours.server)


def _is_cut_off(facts: MachineFacts, part: str) -> bool:
    """Whether the answer ended before that part, so that nothing is known of it."""
    problem = facts.problem(part)
    return problem is not None and problem.kind == "cut off"


def _disks(a: MachineFacts, b: MachineFacts) -> Iterator[_Lack]:
    models = sum(cache.mib or 0 for cache in a.caches if cache.name == "models")
    present = sum(cache.mib or 0 for cache in b.caches if cache.name == "models")
    free = _free(b, "models")
    if free is not None and models - present > free:
        yield _Lack("models", gib(models), gib(free))
    images = a.docker.images_mib if a.docker else None
    room = _free(b, "docker")
    if images and room is not None and images - _images(b) > room:
        yield _Lack("disk_root", gib(images), gib(room))


def _images(facts: MachineFacts) -> int:
    return (facts.docker.images_mib or 0) if facts.docker else 0


def _free(facts: MachineFacts, place: str) -> int | None:
    return next((disk.free_mib for disk in facts.disks if place in disk.paths), None)


def _python(a: MachineFacts, b: MachineFacts) -> Iterator[_Lack]:
    theirs, ours = _packages(a), _packages(b)
    if _is_cut_off(b, "python"):
        return
    for name in PACKAGES:
        if name in theirs and (name not in ours or older(ours[name], theirs[name])):
            here = f"{name} {ours[name]}" if name in ours else ""
            yield _Lack("engine", f"{name} {theirs[name]}", here or f"no {name}")
    if a.python and a.python.version:
        version = b.python.version if b.python else ""
        if not version or older(version, a.python.version):
            yield _Lack("python", a.python.version, version or "missing")


def _packages(facts: MachineFacts) -> dict[str, str]:
    """Return the newest release of each package, over all environments."""
    found: dict[str, str] = {}
    for env in facts.python.environments if facts.python else ():
        for name, version in env.packages.items():
            if name not in found or older(found[name], version):
                found[name] = version
    return found


def _network(a: MachineFacts, b: MachineFacts) -> Iterator[_Lack]:
    if a.network is None or b.network is None:
        return
    theirs, ours = (
        sum(port.state == "ACTIVE" for port in it.rdma) for it in (a.network, b.network)
    )
    if ours < theirs:
        yield _Lack("rdma", str(theirs), str(ours))
    fast, own = _fastest(a.network.nics), _fastest(b.network.nics)
    if fast is None:
        return
    if own is None or _less(fast.speed_mbit, own.speed_mbit):
        yield _Lack("speed", _speed(fast), _speed(own) if own else "an unknown speed")
    elif (own.mtu or 0) < (fast.mtu or 0):
        yield _Lack("mtu", str(fast.mtu), str(own.mtu))


def _fastest(nics: tuple[Nic, ...]) -> Nic | None:
    known = [nic for nic in nics if nic.speed_mbit and nic.state == "up"]
    return max(known, key=lambda nic: nic.speed_mbit or 0, default=None)


def _speed(nic: Nic) -> str:
    return f"{(nic.speed_mbit or 0) / 1000:g} Gbit/s ({nic.name})"


def _limits(a: MachineFacts, b: MachineFacts) -> Iterator[_Lack]:
    theirs, ours = a.limits, b.limits
    if theirs is None or ours is None:
        return
    for code, first, second, words in (
        ("memlock", theirs.memlock_kib, ours.memlock_kib, _locked),
        ("shm", theirs.shm_mib, ours.shm_mib, gib),
        ("nofile", theirs.nofile, ours.nofile, _count),
    ):
        if _less(_endless(first), _endless(second)):
            yield _Lack(code, _say(words, first), _say(words, second))


def _endless(value: int | None) -> float | None:
    return float("inf") if value == -1 else value


def _say(words: Callable[[int], str], value: int | None) -> str:
    return "unknown" if value is None else words(value)


def _locked(kib: int) -> str:
    return "any amount" if kib == -1 else f"{kib} KiB"


def _count(number: int) -> str:
    return "any number of" if number == -1 else str(number)


def _less(a: float | None, b: float | None) -> bool:
    """Whether b is less than a by a word worth; unknown values are not."""
    return a is not None and b is not None and b < a * _LESS
