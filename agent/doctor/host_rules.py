"""What can be wrong with memory, disks, limits, clock, Python and Docker of one machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.doctor.finding import Hit, book, gib, hit
from agent.doctor.gpu_rules import older, who
from agent.doctor.network_rules import ACTIVE
from tools.machine import MachineFacts
from tools.machine_parts import Disk

_SAID_ELSEWHERE = ("gpus", "docker", "python", "disk", "images", "caches", "processes")
"""Parts whose troubles have findings of their own, or matter to nobody."""


def host_hits(facts: MachineFacts) -> Iterator[Hit]:
    """Yield what is wrong with the machine besides GPUs and network."""
    yield from _memory(facts)
    yield from _docker(facts)
    yield from _disks(facts)
    yield from _limits(facts)
    yield from _clock(facts)
    yield from _python(facts)
    yield from _unknown(facts)


def _memory(facts: MachineFacts) -> Iterator[Hit]:
    limits, memory, cpu = book().thresholds, facts.memory, facts.cpu
    if cpu and cpu.limit:
        yield hit("cpu_limit", limit=cpu.limit, cores=cpu.cores or "?")
    if memory is None or not memory.total_mib:
        return
    total = memory.total_mib
    if memory.unified and (memory.swap_used_mib or 0) >= limits.swap_used_mib:
        yield hit("memory_swap_unified", used=gib(memory.swap_used_mib))
    free, usable = memory.free_mib, memory.usable_mib or total
    if free is not None and free * 100 < usable * limits.memory_low_percent:
        named = who(memory.holders) or "processes that are not seen from here"
        yield hit("memory_low", available=gib(free), total=gib(usable), who=named)
    if (memory.hugepages_mib or 0) * 100 > total * limits.hugepages_percent:
        yield hit("memory_hugepages", size=gib(memory.hugepages_mib))
    if memory.limit_mib is not None:
        yield hit("memory_limit", limit=gib(memory.limit_mib), total=gib(total))


def _docker(facts: MachineFacts) -> Iterator[Hit]:
    docker, limits = facts.docker, book().thresholds
    if _cut_off(facts, "docker"):
        return
    if docker is None:
        yield hit("docker_missing")
        return
    if not docker.server:
        yield _unusable(facts)
        return
    if older(docker.server, limits.docker_gpus_from):
        yield hit("docker_old", version=docker.server, needs=limits.docker_gpus_from)
    has_gpus = facts.gpus is not None and bool(facts.gpus.gpus)
    if has_gpus and not docker.hands_out_gpus:
        yield hit("docker_without_gpu")


def _cut_off(facts: MachineFacts, part: str) -> bool:
    """Whether the machine's answer ended before that part: then nothing is known of it."""
    problem = facts.problem(part)
    return problem is not None and problem.kind == "cut off"


def _unusable(facts: MachineFacts) -> Hit:
    problem = facts.problem("docker")
    user = facts.system.user if facts.system else "this user"
    socket = facts.docker.socket if facts.docker else ""
    if problem is None:
        return hit("docker_fails", why="no reason was told")
    note = problem.note.lower()
    if problem.kind == "denied":
        return hit("docker_denied", user=user, socket=socket or "its owner and mode are not told")
    if problem.kind == "timed out":
        return hit("docker_hangs")
    if "cannot connect" in note or "is the docker daemon running" in note:
        return hit("docker_down", why=problem.note)
    return hit("docker_fails", why=problem.note or problem.kind)


def _disks(facts: MachineFacts) -> Iterator[Hit]:
    for problem in facts.problems:
        if problem.part == "disk":
            yield hit("disk_silent", why=problem.note)
    real = [disk for disk in facts.disks if disk.paths != ("shm",)]
    for disk in real:
        what = ", ".join(disk.paths)
        if _is_full(disk, _used_paths(disk, facts)):
            sizes = {"free": gib(disk.free_mib), "total": gib(disk.total_mib)}
            yield hit("disk_full", disk.mount, what=what, **sizes)
        if disk.writable is False and {"home", "models", "tmp"} & set(disk.paths):
            yield hit("disk_read_only", disk.mount, what=what)
    yield from _models(real, facts)


def _used_paths(disk: Disk, facts: MachineFacts) -> list[str]:
    return [path for path in disk.paths if path != "docker" or facts.docker is not None]


def _wanted(paths: Iterable[str]) -> int:
    return max((book().thresholds.disk_free_gib.get(path, 0) for path in paths), default=0) * 1024


def _is_full(disk: Disk, paths: Iterable[str]) -> bool:
    """Whether too little is left, of what a disk of its size can have."""
    limits = book().thresholds
    if disk.free_mib is None or not disk.total_mib:
        return False
    most = disk.total_mib * limits.disk_wanted_percent / 100
    little = disk.free_mib * 100 < disk.total_mib * limits.disk_free_percent
    return little or disk.free_mib < min(_wanted(paths), most)


def _models(disks: list[Disk], facts: MachineFacts) -> Iterator[Hit]:
    """Tell of a small disk where models are kept, and of a larger one."""
    limits = book().thresholds
    own = next((disk for disk in disks if "models" in disk.paths), None)
    if own is None or own.free_mib is None or (own.total_mib or 0) >= limits.small_disk_gib * 1024:
        return
    others = [disk for disk in disks if disk.writable and disk is not own]
    best = max(others, key=lambda disk: disk.free_mib or 0, default=None)
    if best and (best.free_mib or 0) > own.free_mib * limits.other_disk_times:
        yield hit(
            "models_small_disk",
            own.mount,
            free=gib(own.free_mib),
            other=best.mount,
            room=gib(best.free_mib),
        )
    elif own.free_mib < _wanted(["models"]) and not _is_full(own, _used_paths(own, facts)):
        yield hit("models_no_room", own.mount, free=gib(own.free_mib), total=gib(own.total_mib))


def _limits(facts: MachineFacts) -> Iterator[Hit]:
    limits, found = book().thresholds, facts.limits
    if found is None:
        return
    gpus = len(facts.gpus.gpus) if facts.gpus else 0
    rdma = any(it.state == ACTIVE for it in (facts.network.rdma if facts.network else ()))
    lock = found.memlock_kib
    if rdma and lock is not None and 0 <= lock < limits.memlock_mib * 1024:
        yield hit("memlock_low", limit=f"{lock} KiB")
    if found.shm_mib is not None and found.shm_mib <= limits.shm_tiny_mib:
        yield hit("shm_tiny", size=f"{found.shm_mib} MiB")
    elif found.shm_mib is not None and gpus > 1 and found.shm_mib < limits.shm_small_mib:
        yield hit("shm_small", size=f"{found.shm_mib} MiB")
    if found.nofile is not None and 0 <= found.nofile < limits.nofile:
        hard = "unlimited" if found.nofile_hard == -1 else found.nofile_hard or "?"
        yield hit("nofile_low", limit=found.nofile, hard=hard)


def _clock(facts: MachineFacts) -> Iterator[Hit]:
    limits, clock = book().thresholds, facts.clock
    if clock is None:
        return
    if clock.skew_s is not None:
        within = clock.within_s or 0.0
        off = abs(clock.skew_s) - within
        if off >= limits.skew_error_s:
            yield hit("clock_wrong", skew=clock.skew_s, within=within)
        elif off >= limits.skew_warning_s:
            yield hit("clock_skew", skew=clock.skew_s, within=within)
    if clock.synchronized is False:
        yield hit("clock_unsynchronized")


def _python(facts: MachineFacts) -> Iterator[Hit]:
    needs, problem = book().thresholds.python_from, facts.problem("python")
    if problem is not None and problem.kind != "cut off":
        missing = problem.kind == "missing"
        yield hit("python_missing" if missing else "python_broken", why=problem.note)
    elif facts.python and facts.python.version:
        version = facts.python.version
        if older(version, needs):
            yield hit("python_old", version=version, needs=needs)
        if facts.python.venv is False and not facts.python.uv:
            yield hit("python_no_venv", version=version)


def _unknown(facts: MachineFacts) -> Iterator[Hit]:
    for problem in facts.problems:
        why = f": {problem.note}" if problem.note else ""
        if problem.part == "processes" and problem.kind == "denied":
            yield hit("facts_hidden")
        elif problem.kind == "cut off" or problem.part not in _SAID_ELSEWHERE:
            yield hit("facts_missing", problem.part, part=problem.part, kind=problem.kind, why=why)
