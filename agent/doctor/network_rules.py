"""What can be wrong with the fast network of one machine."""

from __future__ import annotations

from collections.abc import Iterator

from agent.doctor.finding import Hit, book, hit
from tools.machine import MachineFacts
from tools.machine_parts import Network, RdmaPort

ACTIVE = "ACTIVE"


def network_hits(facts: MachineFacts, *, linked: bool) -> Iterator[Hit]:
    """Yield what is wrong with RDMA devices and fast interfaces.

    Args:
        facts: of the machine.
        linked: whether its fast network is meant to be used.
    """
    network = facts.network
    if network is None:
        return
    ports = network.rdma
    if ports and not any(name.startswith("uverbs") for name in network.rdma_nodes):
        yield hit("rdma_no_nodes", devices=", ".join(port.device for port in ports))
    if ports and not any(port.state == ACTIVE for port in ports):
        values: dict[str, object] = {"ports": ", ".join(map(_place, ports))}
        yield Hit("rdma_all_down", values=values, level=None if linked else "note")
    yield from _pairs(network)
    yield from _mtu(network)


def _pairs(network: Network) -> Iterator[Hit]:
    by_device = {port.device: port for port in network.rdma}
    told = set()
    for names in network.pairs:
        pair = [by_device[name] for name in names if name in by_device]
        for one, other in zip(pair, reversed(pair), strict=True):
            if one.state == ACTIVE and other.state != ACTIVE:
                yield hit("rdma_pair_half", up=_place(one), down=_place(other))
            elif _reached(one) and other.state == ACTIVE and not other.roce_v2:
                told.add(other.device)
                words = {"without": _place(other), "partner": _place(one)}
                yield hit("rdma_pair_one_address", other.device, **words)
    for port in network.rdma:
        if port.state == ACTIVE and _is_roce(port) and not port.roce_v2 and port.device not in told:
            yield hit("rdma_no_gid", port.device, netdev=port.netdev or "its interface")


def _is_roce(port: RdmaPort) -> bool:
    return port.link == "Ethernet"


def _reached(port: RdmaPort) -> bool:
    return port.state == ACTIVE and bool(port.roce_v2)


def _place(port: RdmaPort) -> str:
    return f"{port.device} ({port.netdev})" if port.netdev else port.device


def _mtu(network: Network) -> Iterator[Hit]:
    limits = book().thresholds
    for nic in network.nics:
        fast = nic.state == "up" and (nic.speed_mbit or 0) >= limits.jumbo_speed_mbit
        if fast and nic.mtu is not None and nic.mtu < limits.jumbo_mtu:
            speed = (nic.speed_mbit or 0) / 1000
            yield hit("mtu_small", nic.name, speed=speed, mtu=nic.mtu, jumbo=limits.jumbo_mtu)
