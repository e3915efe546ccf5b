"""What an inventory says of a host, held against what the host has; pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict

from agent.doctor.finding import Finding
from agent.inventory_parts import Member
from tools.machine import MachineFacts
from tools.machine_parts import Network


class _Variables(BaseModel):
    """Variables whose values name devices, from ``prompts/doctor/variables.yaml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    network: tuple[str, ...]
    rdma: tuple[str, ...]


@cache
def _variables() -> _Variables:
    source = files("prompts") / "doctor" / "variables.yaml"
    return _Variables.model_validate(yaml.safe_load(source.read_text(encoding="utf-8")))


def findings_listed(member: Member, facts: MachineFacts) -> list[Finding]:
    """Return what the inventory says of a host and is not so there."""
    if facts.network is None:
        return []
    return [*_of_nic(member.nic, facts.network), *_of_env(member, facts.network)]


def _of_nic(name: str, network: Network) -> Iterator[Finding]:
    if not name:
        return
    nic = next((it for it in network.nics if it.name == name), None)
    if nic is None:
        there = ", ".join(it.name for it in network.nics) or "none"
        text = f"The inventory says nic: {name}, and there is no such device."
        yield _finding(
            "nic_missing", name, text, f"Correct it in the inventory; there are: {there}."
        )
    elif nic.state == "down" or not nic.addresses:
        why = "is down" if nic.state == "down" else "has no address"
        text = f"The inventory says nic: {name}, and it {why}."
        yield _finding("nic_unusable", name, text, "Bring it up there, or name another one.")


def _of_env(member: Member, network: Network) -> Iterator[Finding]:
    kinds = (
        (_variables().network, [it.name for it in network.nics]),
        (_variables().rdma, sorted({it.device for it in network.rdma})),
    )
    for names, devices in kinds:
        for name in names:
            for word in _named(member.env.get(name, "")):
                if not any(device.startswith(word) for device in devices):
                    there = ", ".join(devices) or "none"
                    text = f"The inventory says {name}={member.env[name]}, and {word} is not there."
                    yield _finding(
                        "variable_names_nothing", name, text, f"Correct it; there are: {there}."
                    )


def _named(value: str) -> list[str]:
    """Return the devices that a value names, or their beginnings; ``^`` means all but these."""
    if value.startswith("^"):
        return []
    words = value.removeprefix("=").split(",")
    return [word.partition(":")[0].strip() for word in words if word.strip()]


def _finding(code: str, subject: str, text: str, do: str) -> Finding:
    return Finding(code=code, level="warning", subject=subject, text=text, do=do, by="you")
