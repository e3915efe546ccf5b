"""What the hosts reach of each other: which addresses are tried, and what it comes to; pure."""

from __future__ import annotations

import ipaddress
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tools.machine import MachineFacts
from tools.machine_parts import Nic
from tools.reach import Place, Tried

MOST_HOSTS = 64
"""Between more hosts nothing is tried: each would have to connect to all others."""
REFUSED = "refused"
_VIRTUAL = re.compile(
    r"lo|(docker|br-|veth|virbr|lxcbr|lxdbr|incusbr|cni|flannel|cali|kube|tunl|dummy|ifb|podman).*"
)
"""Devices whose addresses other hosts cannot reach, or have as well."""


@dataclass(frozen=True, slots=True)
class Door:
    """An address by which a host may be reached."""

    host: str
    nic: str
    address: str
    port: int
    network: str
    speed_mbit: int | None = None

    @property
    def place(self) -> Place:
        """Where to connect to."""
        return self.address, self.port


@dataclass(frozen=True, slots=True)
class Link:
    """One attempt of a host to reach another by one of its addresses."""

    source: str
    door: Door
    tried: Tried
    speed_mbit: int | None = None
    """Of the slower of the two devices, of the other's where it does not work; ``None`` where one
    does not tell."""
    shared: bool = True
    """Whether the source has an address in the same network."""

    @property
    def refused(self) -> bool:
        """Whether the host is there, and nobody listens."""
        return REFUSED in self.tried.error.lower()


@dataclass(frozen=True, slots=True)
class NetworkView:
    """What the hosts of one network reach of each other by it."""

    network: str
    nics: tuple[str, ...]
    hosts: tuple[str, ...]
    links: tuple[Link, ...]

    @property
    def speed_mbit(self) -> int | None:
        """Of its slowest link that tells."""
        return min((it.speed_mbit for it in self.links if it.speed_mbit), default=None)

    @property
    def reached(self) -> tuple[Link, ...]:
        """The links that work."""
        return tuple(link for link in self.links if link.tried.ok)

    @property
    def ms(self) -> float | None:
        """The median round trip."""
        times = [link.tried.ms for link in self.reached if link.tried.ms is not None]
        return statistics.median(times) if times else None


@dataclass(frozen=True, slots=True)
class Between:
    """All that was tried."""

    links: tuple[Link, ...] = ()
    not_tried: tuple[tuple[str, str], ...] = ()
    """Hosts that tried nothing, each with the reason."""

    @property
    def networks(self) -> list[NetworkView]:
        """The networks that two hosts or more have in common, the fastest first."""
        names: dict[str, list[Link]] = {}
        for link in self.links:
            if link.shared:
                names.setdefault(link.door.network, []).append(link)
        views = [_view(network, links) for network, links in names.items()]
        return sorted(views, key=lambda view: -(view.speed_mbit or 0))

    @property
    def pairs(self) -> dict[tuple[str, str], list[Link]]:
        """The attempts by who tried to reach whom."""
        found: dict[tuple[str, str], list[Link]] = {}
        for link in self.links:
            found.setdefault((link.source, link.door.host), []).append(link)
        return found


def _view(network: str, links: list[Link]) -> NetworkView:
    nics = tuple(dict.fromkeys(link.door.nic for link in links))
    names = [link.source for link in links] + [link.door.host for link in links]
    hosts = tuple(dict.fromkeys(names))
    return NetworkView(network, nics, hosts, tuple(links))


def doors_of(host: str, facts: MachineFacts, port: int) -> list[Door]:
    """Return the addresses by which others may reach a host."""
    nics = facts.network.nics if facts.network else ()
    return [
        Door(host, nic.name, str(it.ip), port, str(it.network), nic.speed_mbit)
        for nic in nics
        if nic.state != "down" and not _VIRTUAL.fullmatch(nic.name)
        for it in _addresses(nic)
    ]


def _addresses(nic: Nic) -> list[ipaddress.IPv4Interface | ipaddress.IPv6Interface]:
    """Return a device's addresses; those of IPv6 only where it has no others."""
    found = []
    for text in nic.addresses:
        try:
            address = ipaddress.ip_interface(text)
        except ValueError:
            continue
        alone = isinstance(address, ipaddress.IPv6Interface) and address.is_link_local
        if not (address.is_loopback or alone):
            found.append(address)
    return [it for it in found if it.version == 4] or found


def plan(doors: Mapping[str, Sequence[Door]], sources: Iterable[str]) -> dict[str, list[Door]]:
    """Return for each source what it should try: the doors of all others.

    An address that several hosts have tells nothing, since whoever answers may be another one.
    """
    holders: dict[str, set[str]] = {}
    for host, its in doors.items():
        for door in its:
            holders.setdefault(door.address, set()).add(host)
    found = {
        source: [
            door
            for host, its in doors.items()
            for door in its
            if host != source and len(holders[door.address]) == 1
        ]
        for source in sources
    }
    return {source: its for source, its in found.items() if its}


def links_of(
    source: str, facts: MachineFacts, doors: Sequence[Door], tried: Sequence[Tried]
) -> list[Link]:
    """Put together what a host tried, with the speed of the devices in use."""
    nics = facts.network.nics if facts.network else ()
    speeds = {text.partition("/")[0]: nic.speed_mbit for nic in nics for text in nic.addresses}
    networks = {str(it.network) for nic in nics for it in _addresses(nic)}
    links = []
    for door, one in zip(doors, tried, strict=True):
        both = (speeds.get(one.source), door.speed_mbit) if one.ok else (door.speed_mbit,)
        known = [speed for speed in both if speed]
        speed = min(known) if len(known) == len(both) else None
        links.append(Link(source, door, one, speed, door.network in networks))
    return links
