"""What differs between machines that are to work together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_interface

from agent.doctor.finding import Finding, Hit, book, gib, told
from agent.name_ranges import fold
from tools.machine import MachineFacts
from tools.machine_software import ENGINES

Fleet = Mapping[str, MachineFacts]
PACKAGES = (*ENGINES, "torch", "transformers")
"""Packages that have to be of one release in all parts of a server."""
_MEMORY_PERCENT = 5
"""Machines of one kind differ by less."""


def across(machines: Fleet) -> list[Finding]:
    """Return how machines differ where that matters; ``machines`` are their facts by name."""
    if len(machines) < 2:
        return []
    hits = [*_same(machines), *_plain(machines), *_engines(machines), *_mtu(machines)]
    return told([*hits, *_gids(machines), *_memory(machines), *_clocks(machines)], book().fleet)


def _hit(code: str, values: Mapping[str, str], subject: str = "", **more: object) -> Hit:
    """Return a hit that names each value with the machines that have it."""
    groups: dict[str, list[str]] = {}
    for name, value in values.items():
        groups.setdefault(value, []).append(name)
    what = "; ".join(f"{value} ({fold(names)})" for value, names in groups.items())
    return Hit(code, subject, {"what": what, **more}, tuple(values))


def _same(machines: Fleet) -> Iterator[Hit]:
    boots: dict[str, list[str]] = {}
    for name, facts in machines.items():
        if facts.system and facts.system.boot_id:
            boots.setdefault(facts.system.boot_id, []).append(name)
    for names in boots.values():
        if len(names) > 1:
            yield Hit("same_machine", hosts=tuple(names))


def _driver(facts: MachineFacts) -> str:
    return facts.gpus.driver if facts.gpus else ""


def _cuda(facts: MachineFacts) -> str:
    return facts.gpus.cuda if facts.gpus else ""


def _gpu(facts: MachineFacts) -> str:
    if facts.gpus is None:
        return ""
    return " + ".join(sorted({gpu.name for gpu in facts.gpus.gpus}))


def _docker(facts: MachineFacts) -> str:
    return facts.docker.server if facts.docker else ""


def _kernel(facts: MachineFacts) -> str:
    return facts.system.kernel if facts.system else ""


def _arch(facts: MachineFacts) -> str:
    return facts.system.arch if facts.system else ""


_PLAIN: tuple[tuple[str, Callable[[MachineFacts], str]], ...] = (
    ("differ_arch", _arch),
    ("differ_gpu", _gpu),
    ("differ_driver", _driver),
    ("differ_cuda", _cuda),
    ("differ_docker", _docker),
    ("differ_kernel", _kernel),
)


def _plain(machines: Fleet) -> Iterator[Hit]:
    """Compare single values; a machine that has none, or does not tell it, is left out."""
    for code, value in _PLAIN:
        found = {name: said for name, facts in machines.items() if (said := value(facts))}
        if len(set(found.values())) > 1:
            yield _hit(code, found)


def _engines(machines: Fleet) -> Iterator[Hit]:
    for package in PACKAGES:
        found = {
            name: said for name, facts in machines.items() if (said := _releases(facts, package))
        }
        if len(set(found.values())) > 1:
            yield _hit("differ_engine", found, package)


def _releases(facts: MachineFacts, package: str) -> str:
    if facts.python is None:
        return ""
    found = {env.packages[package] for env in facts.python.environments if package in env.packages}
    return ", ".join(sorted(found))


def _mtu(machines: Fleet) -> Iterator[Hit]:
    """Compare interfaces whose addresses lie in one network."""
    networks: dict[str, dict[str, int]] = {}
    for name, facts in machines.items():
        for nic in facts.network.nics if facts.network else ():
            if nic.mtu is not None and not nic.name.startswith(("docker", "br-", "virbr")):
                for network in _networks(nic.addresses):
                    networks.setdefault(network, {})[f"{name} {nic.name}"] = nic.mtu
    for network, found in networks.items():
        if len(set(found.values())) > 1:
            yield _hit("differ_mtu", {key: str(mtu) for key, mtu in found.items()}, network)


def _networks(addresses: tuple[str, ...]) -> Iterator[str]:
    for address in addresses:
        try:
            network = ip_interface(address).network
        except ValueError:
            continue
        if network.prefixlen < network.max_prefixlen:
            yield str(network)


def _gids(machines: Fleet) -> Iterator[Hit]:
    found = {}
    for name, facts in machines.items():
        ports = facts.network.rdma if facts.network else ()
        indices = sorted({index for port in ports for index in port.roce_v2})
        if indices:
            found[name] = ", ".join(map(str, indices))
    if len(set(found.values())) > 1:
        yield _hit("differ_gid", found)


def _memory(machines: Fleet) -> Iterator[Hit]:
    sizes = {
        name: facts.memory.usable_mib
        for name, facts in machines.items()
        if facts.memory and facts.memory.usable_mib
    }
    if sizes and min(sizes.values()) * (100 + _MEMORY_PERCENT) < max(sizes.values()) * 100:
        yield _hit("differ_memory", {name: gib(size) for name, size in sizes.items()})


def _clocks(machines: Fleet) -> Iterator[Hit]:
    skews = {
        name: (facts.clock.skew_s, facts.clock.within_s or 0.0)
        for name, facts in machines.items()
        if facts.clock and facts.clock.skew_s is not None
    }
    if len(skews) < 2:
        return
    first = min(skews.values(), key=lambda skew: skew[0])
    last = max(skews.values(), key=lambda skew: skew[0])
    apart = last[0] - first[0] - last[1] - first[1]
    if apart >= book().thresholds.skew_warning_s:
        said = {name: f"{skew:+.1f} s" for name, (skew, _) in skews.items()}
        yield _hit("differ_clock", said, seconds=last[0] - first[0])
