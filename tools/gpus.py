"""NVIDIA GPUs, as ``nvidia-smi -q -x``, the running kernel and the device nodes tell of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from tools.gpu_parts import Gpu, Gpus, Holder, MigSlice
from tools.machine_commands import plain_words
from tools.machine_parts import Problem
from tools.machine_processes import Seen, container_name
from tools.machine_text import Part, decimal, whole

_TAG = re.compile(r'\s*<(/?)(\w+)(?:\s+id="([^"]*)")?\s*>(?:(.*)</\2>)?\s*')
_ROWS = ("gpu", "mig_device", "process_info")
"""Blocks that come several times."""
_NOT_OWN = ("N/A", "[N/A]", "Not Supported", "[Not Supported]")
"""What the driver says of memory that a GPU does not have for itself (GB10)."""
_KERNEL_DRIVER = re.compile(r"Kernel Module(?: for \S+)?\s+(\d+\.\d+(?:\.\d+)?)")
_LIBRARY = re.compile(r"libcuda\.so\.(\d+\.\d+(?:\.\d+)?)$")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_DEEPEST = 40
"""Tags within each other; a report has eight."""


@dataclass
class _Block:
    """A block of the report: its values by path, and the blocks in it that come several times."""

    name: str
    values: dict[str, str] = field(default_factory=dict)
    blocks: list[_Block] = field(default_factory=list)

    def of(self, name: str) -> Iterator[_Block]:
        return (block for block in self.blocks if block.name == name)

    def get(self, *paths: str) -> str:
        """Return the first value that is told; what is not applicable is not."""
        values = (self.values.get(path, "") for path in paths)
        return next((value for value in values if value not in ("", *_NOT_OWN)), "")

    def number(self, *paths: str) -> int | None:
        """Return the number in front of a unit: ``143771 MiB``, ``0 %``."""
        return whole(self.get(*paths).partition(" ")[0])


def gpus_of(
    log: Part, words: Part, links: Part, driver: Part, users: list[Seen], names: dict[str, str]
) -> tuple[Gpus | None, Problem | None]:
    """Read all that is known of GPUs; ``None`` where nothing speaks of one.

    Args:
        log: the driver's report, in XML.
        words: index and compute capability of each.
        links: the matrix of ``nvidia-smi topo -m``.
        driver: what the kernel, the bus, ``/dev`` and the folders of libraries have.
        users: the processes that the report names.
        names: of containers, by id.
    """
    report = _read(log.text)
    capabilities = _capabilities(words)
    seen = {it.pid: it for it in users}
    found = tuple(
        _gpu(block, index, capabilities, seen, names)
        for index, block in enumerate(report.of("gpu"))
    )
    nodes = [row.partition(" ") for row in driver.values("node")]
    kernel = _KERNEL_DRIVER.search(driver.text)
    libraries = [match[1] for row in driver.values("library") if (match := _LIBRARY.search(row))]
    gpus = Gpus(
        driver=report.get("driver_version"),
        cuda=report.get("cuda_version"),
        kernel_driver=kernel[1] if kernel else driver.value("module"),
        library=libraries[0] if libraries else "",
        gpus=found,
        links=_links(links.text, len(found)),
        pci=tuple(driver.values("pci")),
        devices=tuple(name for _, _, name in nodes),
        denied_devices=tuple(name for use, _, name in nodes if use == "denied"),
    )
    signs = (gpus.gpus, gpus.pci, gpus.devices, gpus.kernel_driver)
    problem = _problem(log, gpus)
    if not any(signs) and (problem is None or problem.kind in ("missing", "cut off")):
        return None, None
    return gpus, problem


def _problem(log: Part, gpus: Gpus) -> Problem | None:
    """Say why the report has no GPU, or not all of it came."""
    code = whole(log.value("smi"))
    said = [line.strip() for line in log.lines if not line.lstrip().startswith(("<", "smi "))]
    words = " ".join(said)
    if code not in (0, None) or (not gpus.gpus and words):
        return log.problem("gpus", code or 1, words or f"nvidia-smi: exit {code}")
    return log.problem("gpus", said="nvidia-smi is not on the PATH" if log.code == 127 else "")


def _read(text: str) -> _Block:
    """Read the report, one tag a line; a broken end loses only what is missing."""
    top = _Block("")
    stack: list[tuple[str, _Block]] = [("", top)]
    for line in text.split("\n"):
        match = _TAG.fullmatch(line)
        if match is None:
            continue
        closing, name, identity, value = match.groups()
        depth = _depth(stack, name) if closing else 0
        if closing and depth:
            del stack[depth:]
        elif value is not None and not closing:
            stack[-1][1].values.setdefault(_path(stack, name), value.strip())
        elif not closing and len(stack) < _DEEPEST:
            stack.append((name, _inner(stack[-1][1], name, identity)))
    return top


def _depth(stack: list[tuple[str, _Block]], name: str) -> int:
    return max(
        (depth for depth, (open_name, _) in enumerate(stack) if open_name == name), default=0
    )


def _inner(block: _Block, name: str, identity: str | None) -> _Block:
    if name not in _ROWS:
        return block
    inner = _Block(name, {"id": identity or ""})
    block.blocks.append(inner)
    return inner


def _path(stack: list[tuple[str, _Block]], name: str) -> str:
    """Return the names of the open tags within the block, joined by slashes."""
    block = stack[-1][1]
    outer = [tag for tag, owner in stack if owner is block and tag not in (*_ROWS, "", _LOG)]
    return "/".join([*outer, name])


_LOG = "nvidia_smi_log"


def _capabilities(part: Part) -> dict[int, str]:
    found = {}
    for line in part.lines:
        index, _, capability = (word.strip() for word in line.partition(","))
        number = whole(index)
        if number is not None and re.fullmatch(r"\d+\.\d+", capability):
            found[number] = capability
    return found


def _gpu(
    block: _Block,
    index: int,
    capabilities: dict[int, str],
    seen: dict[int, Seen],
    names: dict[str, str],
) -> Gpu:
    holders = tuple(_holder(row, seen, names) for row in block.of("process_info"))
    total = block.number("fb_memory_usage/total")
    mig = _switch(block.get("mig_mode/current_mig"))
    # Of a GPU that is divided, the driver may tell the memory of the parts alone.
    told = block.values.get("fb_memory_usage/total")
    unified = total is None and told in _NOT_OWN and mig != "on"
    used = block.number("fb_memory_usage/used")
    if unified:
        used = sum(holder.mib or 0 for holder in holders)
    return Gpu(
        index=index,
        name=block.get("product_name"),
        uuid=block.get("uuid"),
        bus_id=block.get("pci/pci_bus_id", "id"),
        architecture=block.get("product_architecture"),
        compute_capability=capabilities.get(index, ""),
        total_mib=total,
        used_mib=used,
        free_mib=block.number("fb_memory_usage/free"),
        unified=unified,
        utilization_percent=block.number("utilization/gpu_util"),
        temperature_c=block.number("temperature/gpu_temp"),
        power_w=_watts(block, "average_power_draw", "instant_power_draw", "power_draw"),
        power_limit_w=_watts(block, "current_power_limit", "power_limit"),
        mig=mig,
        mig_slices=tuple(_slice(row) for row in block.of("mig_device")),
        ecc=_switch(block.get("ecc_mode/current_ecc")),
        ecc_uncorrected=_uncorrected(block),
        needs_reset=block.get("gpu_recovery_action").replace("None", ""),
        persistence={"Enabled": True, "Disabled": False}.get(block.get("persistence_mode")),
        link="C2C" if unified else _link(block),
        holders=holders,
    )


def _holder(row: _Block, seen: dict[int, Seen], names: dict[str, str]) -> Holder:
    pid = row.number("pid") or 0
    process = seen.get(pid)
    instance = [row.get("gpu_instance_id"), row.get("compute_instance_id")]
    return Holder(
        pid=pid,
        user=process.user if process else "",
        command=process.command if process else plain_words(row.get("process_name")),
        mib=row.number("used_memory"),
        container=container_name(process.container, names) if process else "",
        mig="/".join(instance) if all(instance) else "",
    )


def _slice(row: _Block) -> MigSlice:
    return MigSlice(
        index=row.number("index") or 0,
        instance=f"{row.get('gpu_instance_id')}/{row.get('compute_instance_id')}",
        total_mib=row.number("fb_memory_usage/total"),
        used_mib=row.number("fb_memory_usage/used"),
    )


def _switch(word: str) -> Literal["on", "off", ""]:
    return "on" if word == "Enabled" else "off" if word == "Disabled" else ""


def _uncorrected(block: _Block) -> int:
    names = [name for name in block.values if name.startswith("ecc_errors/volatile/")]
    return sum(block.number(name) or 0 for name in names if "uncorrect" in name)


def _watts(block: _Block, *names: str) -> float | None:
    """Return a number of watts; the block's name has changed with the drivers."""
    paths = [
        f"{outer}/{name}" for name in names for outer in ("gpu_power_readings", "power_readings")
    ]
    return decimal(block.get(*paths).partition(" ")[0])


def _link(block: _Block) -> str:
    """Say how it is joined; on a GB10 the driver tells PCIe 1 x1, and it is C2C."""
    outer = "pci/pci_gpu_link_info"
    generation = block.number(f"{outer}/pcie_gen/current_link_gen")
    width = block.get(f"{outer}/link_widths/current_link_width").removesuffix("x")
    if block.get("c2c_mode") == "Enabled":
        return "C2C"
    return f"PCIe {generation} x{width}" if generation and width else ""


def _links(text: str, count: int) -> tuple[str, ...]:
    """Read the matrix: how each pair of GPUs is joined, by the driver's word for it."""
    found = []
    for line in _COLOUR.sub("", text).split("\n"):
        cells = [cell.strip() for cell in line.split("\t")]
        row = re.fullmatch(r"GPU(\d{1,4})", cells[0])
        if row is None:
            continue
        index = int(row[1])
        for other in range(index + 1, min(count, len(cells) - 1)):
            if cells[1 + other]:
                found.append(f"GPU{index}-GPU{other} {cells[1 + other]}")
    return tuple(found)
