"""What is known of network interfaces and RDMA devices: frozen models."""

from __future__ import annotations

from tools.base import Observation


class Nic(Observation):
    """A network interface."""

    name: str
    state: str = ""
    mtu: int | None = None
    speed_mbit: int | None = None
    driver: str = ""
    addresses: tuple[str, ...] = ()
    """With prefix length: ``10.0.0.1/24``."""
    rdma: str = ""
    """The RDMA device that shares its port."""


class RdmaPort(Observation):
    """A port of an RDMA device."""

    device: str
    port: int = 1
    state: str = ""
    """``ACTIVE``, ``DOWN``."""
    link: str = ""
    """``Ethernet`` (RoCE) or ``InfiniBand``."""
    rate: str = ""
    netdev: str = ""
    bus_id: str = ""
    gids: int = 0
    """Entries of the GID table that are set."""
    roce_v2: tuple[int, ...] = ()
    """Indices of GIDs that are RoCE v2 with an IPv4 address, as ``NCCL_IB_GID_INDEX`` wants."""


class Network(Observation):
    """How the machine is reached, and reaches others."""

    nics: tuple[Nic, ...] = ()
    rdma: tuple[RdmaPort, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    """RDMA devices that are two ways to one physical port (ConnectX-7 of a DGX Spark)."""
    rdma_nodes: tuple[str, ...] = ()
    """Device nodes below ``/dev/infiniband``, which programs open."""
    default: str = ""
    """The interface of the default route."""
    unplaced: tuple[str, ...] = ()
    """Addresses whose interface could not be told, where there is no ``ip``."""
