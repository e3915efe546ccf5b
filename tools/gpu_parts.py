"""What is known of GPUs: frozen models, sizes in MiB, ``None`` for unknown."""

from __future__ import annotations

from typing import ClassVar, Literal

from tools.base import Observation


class Holder(Observation):
    """A process that holds memory of a GPU."""

    pid: int
    user: str = ""
    """Empty where the process is not visible: of another container or namespace."""
    command: str = ""
    mib: int | None = None
    container: str = ""
    mig: str = ""
    """GPU and compute instance where MIG is on: ``1/0``."""


class MigSlice(Observation):
    """One part of a GPU that is divided by MIG."""

    index: int
    instance: str
    """GPU and compute instance: ``1/0``."""
    total_mib: int | None = None
    used_mib: int | None = None


class Gpu(Observation):
    """One NVIDIA GPU."""

    clock_fields: ClassVar[tuple[str, ...]] = (
        "utilization_percent",
        "temperature_c",
        "power_w",
    )

    index: int
    name: str
    uuid: str = ""
    bus_id: str = ""
    architecture: str = ""
    compute_capability: str = ""
    """``9.0``, ``12.1``."""
    total_mib: int | None = None
    """``None`` where it has none of its own: see ``unified``."""
    used_mib: int | None = None
    free_mib: int | None = None
    unified: bool = False
    """It shares the machine's memory; totals are those of the machine."""
    utilization_percent: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    mig: Literal["on", "off", ""] = ""
    """Empty where it cannot be divided."""
    mig_slices: tuple[MigSlice, ...] = ()
    ecc: Literal["on", "off", ""] = ""
    ecc_uncorrected: int = 0
    """Errors in its memory since the last restart that could not be corrected."""
    needs_reset: str = ""
    """What the driver asks for, such as ``Reset``; empty where nothing."""
    persistence: bool | None = None
    link: str = ""
    """How it is joined to the machine, such as ``PCIe 5 x16``."""
    holders: tuple[Holder, ...] = ()


class Gpus(Observation):
    """All NVIDIA GPUs, and what drives them."""

    driver: str = ""
    cuda: str = ""
    """The newest CUDA that the driver can run."""
    kernel_driver: str = ""
    """Version of the driver in the running kernel, which a container shares with its host."""
    library: str = ""
    """Version of ``libcuda`` that programs here load."""
    gpus: tuple[Gpu, ...] = ()
    links: tuple[str, ...] = ()
    """Between GPUs, as the driver names them: ``GPU0-GPU1 NV18``."""
    pci: tuple[str, ...] = ()
    """NVIDIA display controllers on the bus, driver or not: ``0000:01:00.0 nvidia``."""
    devices: tuple[str, ...] = ()
    """Device nodes below ``/dev`` that this place has: ``nvidia0``, ``nvidia-uvm``."""
    denied_devices: tuple[str, ...] = ()
    """Those of them that this user cannot open."""
