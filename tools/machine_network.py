"""Network interfaces, RDMA devices, and which of them belong together."""

from __future__ import annotations

import re
from typing import Any

from tools.machine_text import Part, whole
from tools.network_parts import Network, Nic, RdmaPort

_VIRTUAL = re.compile(r"(lo|ifb\d+|veth.*|tunl\d+|sit\d+|dummy\d+|erspan\d+|gre(tap)?\d+)$")
"""Interfaces that lead nowhere by themselves; left out where they have no address."""
_ADDRESS = re.compile(r"^\d+:\s+(\S+)\s+inet6?\s+(\S+)")
_BUS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])$")
_MAPPED = "0000:0000:0000:0000:0000:ffff:"
"""How GIDs begin that stand for an IPv4 address."""


def network_of(nics: Part, rdma: Part) -> Network:
    """Read the interfaces, and put RDMA devices to them."""
    addresses: dict[str, list[str]] = {}
    for line in nics.lines:
        match = _ADDRESS.match(line)
        if match:
            addresses.setdefault(match[1].partition("@")[0], []).append(match[2])
    ports = _ports(rdma)
    devices = {port.netdev: port.device for port in ports if port.netdev}
    found = []
    for row in nics.rows("nic"):
        name, state, mtu, speed, driver = (*row, *[""] * 5)[:5]
        own = _telling(addresses.get(name, ()))
        if name == "lo" or (_VIRTUAL.match(name) and not own):
            continue
        rate = whole(speed)
        nic = Nic(
            name=name,
            state=state,
            mtu=whole(mtu),
            speed_mbit=rate if rate and rate > 0 else None,
            driver=driver,
            addresses=own,
            rdma=devices.get(name, ""),
        )
        found.append(nic)
    return Network(
        nics=tuple(found),
        rdma=ports,
        pairs=_pairs(ports),
        rdma_nodes=_nodes(rdma),
        default=nics.value("default"),
        unplaced=tuple(nics.value("addresses").split()),
    )


def _telling(addresses: Any) -> tuple[str, ...]:
    """Leave out link-local IPv6 addresses, which every interface has."""
    return tuple(address for address in addresses if not address.lower().startswith("fe80:"))


def _ports(part: Part) -> tuple[RdmaPort, ...]:
    gids: dict[tuple[str, str], list[list[str]]] = {}
    for row in part.rows("gid"):
        if len(row) == 6:
            gids.setdefault((row[0], row[1]), []).append(row[2:])
    found = []
    for row in part.rows("port"):
        device, port, state, link, rate, bus = (*row, *[""] * 6)[:6]
        entries = gids.get((device, port), [])
        found.append(
            RdmaPort(
                device=device,
                port=whole(port) or 1,
                state=state.rpartition(" ")[2],
                link=link,
                rate=rate.partition(" (")[0],
                netdev=next((entry[3] for entry in entries if entry[3]), ""),
                bus_id=bus,
                gids=len(entries),
                roce_v2=_roce_v2(entries),
            )
        )
    return tuple(found)


def _nodes(part: Part) -> tuple[str, ...]:
    names = (name.rpartition("/")[2] for name in part.value("nodes").split())
    return tuple(name for name in names if name != "*")


def _roce_v2(entries: list[list[str]]) -> tuple[int, ...]:
    """Return the indices that ``NCCL_IB_GID_INDEX`` may name: RoCE v2 over IPv4."""
    return tuple(
        number
        for index, value, kind, _ in entries
        if (number := whole(index)) is not None
        and "v2" in kind.lower()
        and value.lower().startswith(_MAPPED)
    )


def _pairs(ports: tuple[RdmaPort, ...]) -> tuple[tuple[str, str], ...]:
    """Find devices that are one function of one card, reached over two PCI domains.

    So a DGX Spark joins its ConnectX-7: each of its two physical ports is ``0000:01:00.N`` and
    ``0002:01:00.N``, and only both together reach its full speed.
    """
    places: dict[str, list[str]] = {}
    for port in ports:
        match = _BUS.match(port.bus_id)
        if match and port.link == "Ethernet":
            places.setdefault(match[2], []).append(port.device)
    pairs = [sorted(devices, key=str.swapcase) for devices in places.values() if len(devices) == 2]
    return tuple((first, second) for first, second in pairs)
