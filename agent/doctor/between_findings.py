"""What is wrong between the hosts: who does not reach whom, and where; pure."""

from __future__ import annotations

from collections.abc import Sequence

from agent.doctor.between import Between, Link, NetworkView
from agent.doctor.finding import Finding
from agent.name_ranges import fold


def findings_between(between: Between) -> list[Finding]:
    """Say which hosts do not reach each other, and where a faster way is not used."""
    pairs = between.pairs
    cut = [pair for pair, links in pairs.items() if not any(it.tried.ok for it in links)]
    targets: dict[str, list[str]] = {}
    for source, target in cut:
        targets.setdefault(source, []).append(target)
    sources: dict[tuple[str, ...], list[str]] = {}
    for source, its in targets.items():
        sources.setdefault(tuple(its), []).append(source)
    whole = cut and len(cut) == len(pairs)
    alike = {tuple(targets): list(targets)} if whole else sources
    found = [
        _no_way(from_, to, [it for pair in cut for it in pairs[pair] if pair[0] in from_])
        for to, from_ in alike.items()
    ]
    for view in between.networks:
        bad = [link for link in view.links if not link.tried.ok]
        bad = [link for link in bad if (link.source, link.door.host) not in cut]
        if bad and view.speed_mbit:
            found.append(_partly(view, bad))
    return found


def _no_way(sources: Sequence[str], targets: Sequence[str], links: Sequence[Link]) -> Finding:
    """Hosts that reach none of the addresses of others; several are told in one."""
    refused = all(any(it.refused for it in links if it.door.host == target) for target in targets)
    why = "; ".join(dict.fromkeys(link.tried.error for link in links))
    ports = ", ".join(dict.fromkeys(str(link.door.port) for link in links))
    others = "each other" if sorted(sources) == sorted(targets) else fold(targets)
    do = "Open the ssh port between them, or check addresses, cables and routes."
    if refused:
        do = "They are there, and nobody listens: is ssh on another port, or on other addresses?"
    verb = "reaches" if len(sources) == 1 else "reach"
    return Finding(
        code="no_way",
        level="note" if refused else "warning",
        subject=fold(sources),
        text=f"{fold(sources)} {verb} no address of {others} at port {ports}: {why}.",
        do=do,
        by="administrator",
        hosts=tuple(dict.fromkeys((*sources, *targets))),
    )


def _partly(view: NetworkView, bad: Sequence[Link]) -> Finding:
    """A network with a known speed that not all of its hosts can use."""
    pairs = ", ".join(f"{link.source} to {link.door.host}" for link in bad[:4])
    more = f" and {len(bad) - 4} more" if len(bad) > 4 else ""
    why = "; ".join(dict.fromkeys(link.tried.error for link in bad))
    nics = ", ".join(view.nics)
    return Finding(
        code="partly_reached",
        level="note" if all(link.refused for link in bad) else "warning",
        subject=view.network,
        text=f"By {view.network} ({nics}) it does not go from {pairs}{more}: {why}.",
        do="Check devices, addresses and firewalls of that network; by others it works.",
        by="administrator",
        hosts=tuple(dict.fromkeys(name for it in bad for name in (it.source, it.door.host))),
    )
