"""The parts of an inventory: its entries as they are written, and one host as it comes of them."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from agent.goal_parts import LOCAL, Host, Part

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
"""Of hosts, groups and roles."""


def _value(value: Any) -> Any:
    """Take numbers as they stand; YAML makes other values of ``no`` and ``1e3``."""
    if isinstance(value, bool | float) or value is None:
        raise ValueError("a text or a whole number is needed; put quotes around it")
    return str(value) if isinstance(value, int) else value


def _words(value: Any) -> Any:
    """Take one word for a list of one."""
    return (value,) if isinstance(value, str) else value


def _device(value: str) -> str:
    if not re.fullmatch(r"([A-Za-z0-9_.:-]{1,15})?", value):
        raise ValueError("a network device's name is needed, such as enp1s0f0np0")
    return value


Name = Annotated[str, StringConstraints(pattern=NAME)]
Roles = Annotated[tuple[Name, ...], BeforeValidator(_words)]
Members = Annotated[tuple[str, ...], BeforeValidator(_words)]
Nic = Annotated[str, AfterValidator(_device)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Value = Annotated[str, BeforeValidator(_value), StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*$")]


class Entry(Part):
    """What an inventory says of a host, or by ``defaults`` of all; what is ``None`` is not said."""

    address: str | None = None
    """As one would give it to ssh; for a range with ``{name}``, ``{n}`` or a range of its own."""
    roles: Roles | None = None
    """What the host is for; ``@ROLE`` names all hosts with it."""
    nic: Nic | None = None
    """The network device that the hosts talk to each other by."""
    env: dict[Variable, Value] = Field(default_factory=dict)
    """Variables of the host's programs; they join those of ``defaults``. No secrets."""
    python: str | None = None
    models: str | None = None
    container: str | None = None


class Written(Part):
    """An inventory as it is written."""

    defaults: Entry = Entry()
    """What holds where a host says nothing of its own."""
    hosts: dict[str, Entry] = Field(default_factory=dict)
    """By name or range."""
    groups: dict[Name, Members] = Field(default_factory=dict)
    """Names, ranges and ``@GROUP``, by the group's name."""


class Member(Part):
    """One host, from an inventory or as somebody typed it."""

    name: str
    """How people call it: its name there, or the address as it was typed."""
    host: Host
    """How it is reached."""
    roles: tuple[str, ...] = ()
    nic: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    listed: bool = False
    """Whether an inventory has it."""

    @property
    def address(self) -> str:
        """Where it is: ``local``, or an address for ssh."""
        return self.host.address


HERE = Member(name=LOCAL, host=Host())
"""This machine."""
