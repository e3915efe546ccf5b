"""What can be wrong with GPUs and their driver; pure rules over the facts of one machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packaging.version import InvalidVersion, Version

from agent.doctor.finding import Hit, book, gib, hit
from tools.machine import MachineFacts
from tools.machine_parts import Gpu, Gpus, Holder, Process

NEEDED = ("nvidiactl", "nvidia-uvm")
"""Device nodes without which no program can use a GPU, beside one a GPU."""
_NOT_LOADED = ("couldn't communicate", "driver is not loaded", "not been loaded")
_MISMATCH = "version mismatch"


def gpu_hits(facts: MachineFacts) -> Iterator[Hit]:
    """Yield what is wrong with the GPUs, the driver before the single GPU."""
    gpus = facts.gpus
    if gpus is None:
        return
    devices = list(_devices(facts, gpus))
    yield from _driver(facts, gpus, explained=bool(devices))
    yield from devices
    yield from _torch(facts, gpus)
    for gpu in gpus.gpus:
        yield from _state(gpu)
        yield from _held(gpu, facts)
    yield from _together(gpus.gpus)


def _driver(facts: MachineFacts, gpus: Gpus, *, explained: bool) -> Iterator[Hit]:
    """Yield what is wrong with the driver; ``explained``: its device nodes say why it fails."""
    problem = facts.problem("gpus")
    for row in gpus.pci:
        bus, _, driver = row.partition(" ")
        if driver == "nouveau":
            yield hit("gpu_nouveau", bus)
    if _mismatch(facts, gpus):
        inside = facts.system.inside if facts.system else ""
        code = "gpu_guest_mismatch" if inside else "gpu_driver_mismatch"
        kernel, library = gpus.kernel_driver or "another version", gpus.library or "another version"
        yield hit(code, kernel=kernel, library=library, inside=inside)
    elif problem is not None and not (explained or problem.kind == "cut off" or gpus.gpus):
        yield from _no_answer(gpus, problem.kind, problem.note)


def _mismatch(facts: MachineFacts, gpus: Gpus) -> bool:
    """Whether kernel and libraries are of two releases; a report that came tells the contrary."""
    problem = facts.problem("gpus")
    if problem is not None and _MISMATCH in problem.note.lower():
        return True
    known = gpus.kernel_driver and gpus.library
    return bool(known and gpus.kernel_driver != gpus.library and not gpus.gpus)


def _no_answer(gpus: Gpus, kind: str, note: str) -> Iterator[Hit]:
    if kind == "timed out":
        yield hit("gpu_driver_hangs")
    elif gpus.kernel_driver and kind == "missing":
        yield hit("gpu_program_missing", driver=gpus.kernel_driver)
    elif gpus.pci and not gpus.kernel_driver and _is_absent(kind, note):
        bus = ", ".join(row.partition(" ")[0] for row in gpus.pci)
        yield hit("gpu_no_driver", count=len(gpus.pci), bus=bus, why=note)
    else:
        yield hit("gpu_driver_fails", why=note or kind)


def _is_absent(kind: str, note: str) -> bool:
    return kind == "missing" or any(sign in note.lower() for sign in _NOT_LOADED)


def _devices(facts: MachineFacts, gpus: Gpus) -> Iterator[Hit]:
    system = facts.system
    if system is None or not gpus.kernel_driver:
        return
    present = {name for name in gpus.devices if name.removeprefix("nvidia").isdigit()}
    missing = [name for name in NEEDED if name not in gpus.devices]
    if not present:
        missing.insert(0, "nvidia0")
    if system.inside and missing and not gpus.gpus:
        yield hit("gpu_not_passed", inside=system.inside, missing=", ".join(missing))
    denied = [name for name in gpus.denied_devices if not name.startswith(("nvidia-c", "nvidia-m"))]
    if denied:
        yield hit("gpu_device_denied", user=system.user, devices=", ".join(denied))


def _torch(facts: MachineFacts, gpus: Gpus) -> Iterator[Hit]:
    if facts.python is None or not gpus.gpus:
        return
    for env in facts.python.environments:
        wants = env.torch_cuda
        if wants == "cpu":
            yield hit("gpu_torch_cpu", env.path, env=env.path)
        elif wants and (needs := _driver_needed(gpus, wants)):
            yield hit(
                "gpu_driver_old",
                env.path,
                env=env.path,
                wants=wants,
                driver=gpus.driver,
                cuda=gpus.cuda,
                needs=needs,
            )


def _driver_needed(gpus: Gpus, wants: str) -> str:
    """Return the driver that a CUDA release needs, where this one is older; else the empty text."""
    needs = book().drivers.get(wants.partition(".")[0], "")
    if needs and gpus.driver and older(gpus.driver, needs):
        return needs
    return ""


def older(version: str, other: str) -> bool:
    """Whether a version is older than another; one that cannot be read is not."""
    try:
        return Version(version) < Version(other)
    except InvalidVersion:
        return False


def _state(gpu: Gpu) -> Iterator[Hit]:
    name = subject(gpu)
    if gpu.needs_reset:
        yield hit("gpu_needs_reset", name, action=gpu.needs_reset)
    if gpu.ecc_uncorrected:
        yield hit("gpu_memory_errors", name, count=gpu.ecc_uncorrected)
    if gpu.mig == "on" and not gpu.mig_slices:
        yield hit("gpu_mig_empty", name)
    elif gpu.mig == "on":
        sizes = ", ".join(gib(part.total_mib) for part in gpu.mig_slices)
        yield hit("gpu_mig", name, slices=sizes)


def _held(gpu: Gpu, facts: MachineFacts) -> Iterator[Hit]:
    limits = book().thresholds
    total = gpu.total_mib
    if gpu.unified and facts.memory:
        total = facts.memory.total_mib
    big = [holder for holder in gpu.holders if (holder.mib or 0) >= limits.gpu_held_mib]
    held = sum(holder.mib or 0 for holder in gpu.holders)
    if big:
        yield hit("gpu_memory_held", subject(gpu), held=gib(held), total=gib(total), who=who(big))
    hidden = 0 if gpu.unified else (gpu.used_mib or 0) - held
    if hidden >= limits.gpu_hidden_mib:
        yield hit("gpu_memory_hidden", subject(gpu), used=gib(hidden), total=gib(total))


def _together(gpus: Sequence[Gpu]) -> Iterator[Hit]:
    names = sorted({gpu.name for gpu in gpus})
    if len(names) > 1:
        yield hit("gpu_mixed", names=", ".join(names))
    on = [f"{gpu.index}" for gpu in gpus if gpu.ecc == "on"]
    off = [f"{gpu.index}" for gpu in gpus if gpu.ecc == "off"]
    if on and off:
        yield hit("gpu_ecc_mixed", on=f"GPU {', '.join(on)}", off=f"GPU {', '.join(off)}")
    if any(gpu.persistence is False for gpu in gpus):
        yield hit("gpu_persistence")


def subject(gpu: Gpu) -> str:
    """Name a GPU: ``GPU 0 (NVIDIA H200)``."""
    return f"GPU {gpu.index} ({gpu.name})"


def who(holders: Sequence[Holder | Process], most: int = 3) -> str:
    """Name processes: number, user, container, command and memory of the largest."""
    ordered = sorted(holders, key=lambda holder: -(holder.mib or 0))
    words = [_who(holder) for holder in ordered[:most]]
    if len(ordered) > most:
        words.append(f"{len(ordered) - most} more")
    return "; ".join(words)


def _who(holder: Holder | Process) -> str:
    user = f" of {holder.user}" if holder.user else ""
    container = f" in container {holder.container}" if holder.container else ""
    return f"pid {holder.pid}{user}{container} `{holder.command}` ({holder.mib or '?'} MiB)"
