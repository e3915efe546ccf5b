"""The fastest private address by which one host reaches another, tried and not guessed."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from agent.doctor.ask import Fleet
from agent.doctor.between import Door, Link, doors_of, links_of, plan
from agent.inventory_parts import Member
from tools.machine import MachineFacts


@dataclass(frozen=True, slots=True)
class FastLink:
    """Which address to use, or why there is none."""

    address: str
    """Of the target; empty where there is none."""
    why: str
    """What it is, or what was found instead."""


def fastest(fleet: Fleet, port: int) -> FastLink:
    """Ask two hosts for their addresses, and let the first try those of the second.

    Args:
        fleet: source and target, in this order; its connections stay open.
        port: something that listens on the target, such as its ssh server; a refusal will do, for
            only who is reached can refuse.
    """
    source, target = fleet.members
    facts: dict[str, MachineFacts] = {}
    for answer in fleet.facts():
        if answer.facts is None:
            return FastLink("", f"{answer.member.name}: {answer.trouble}")
        facts[answer.member.name] = answer.facts
    doors = {name: doors_of(name, its, port) for name, its in facts.items()}
    doors[target.name] = [it for it in doors[target.name] if _may_be_used(it, target)]
    tries = plan(doors, [source.name]).get(source.name, [])
    if not tries:
        by = f" on {target.nic}" if target.nic else ""
        return FastLink("", f"{target.name} has no private address of its own{by}")
    tried = fleet.ways({source.name: [door.place for door in tries]})[source.name]
    if isinstance(tried, str):
        return FastLink("", f"{source.name}: {tried}")
    links = links_of(source.name, facts[source.name], tries, tried)
    return _best([link for link in links if link.tried.ok or link.refused], source, target)


def _may_be_used(door: Door, target: Member) -> bool:
    """Whether it is private, and on the device that the inventory names, where it names one."""
    return ipaddress.ip_address(door.address).is_private and target.nic in ("", door.nic)


def _best(links: list[Link], source: Member, target: Member) -> FastLink:
    if not links:
        return FastLink("", f"{source.name} reaches no private address of {target.name}")
    best = max(links, key=lambda link: (link.speed_mbit or 0, -(link.tried.ms or 1e9)))
    speed = f", {best.speed_mbit / 1000:g} Gbit/s" if best.speed_mbit else ""
    return FastLink(best.door.address, f"{best.door.nic} {best.door.address}{speed}")
