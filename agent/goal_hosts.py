"""Puts the hosts of an inventory in the place of their names in a goal, when the goal is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent.goal_parts import LOCAL
from agent.inventory import Inventory, select
from agent.inventory_parts import Member
from agent.name_ranges import has_range

Known = Callable[[], Inventory | None]
"""Returns the inventory; it is read only where a goal names a host that may be in it."""


def with_hosts(data: dict[Any, Any], known: Known) -> dict[Any, Any]:
    """Return a goal's data with what the inventory knows of its hosts; the rest is as it was.

    An entry that is a name, a range or ``@GROUP`` stands for the inventory's hosts. An entry with
    keys takes what it does not say from the host that its ``address`` names.

    Raises:
        InventoryError: a group or a host is not there, or the inventory cannot be used.
    """
    hosts = data.get("hosts")
    if not isinstance(hosts, list):
        return data
    return {**data, "hosts": [made for entry in hosts for made in _resolved(entry, known)]}


def _resolved(entry: Any, known: Known) -> list[Any]:
    if isinstance(entry, str) and _may_be_listed(entry):
        inventory = known()
        several = entry.startswith("@") or has_range(entry)
        if several or (inventory is not None and entry in inventory.members):
            return [_keys(member) for member in select([entry], inventory)]
    elif isinstance(entry, dict) and isinstance(entry.get("address"), str):
        name = entry["address"]
        inventory = known() if _may_be_listed(name) else None
        if inventory is not None and name in inventory.members:
            said = {key: value for key, value in entry.items() if key != "address"}
            return [{**_keys(inventory.members[name]), **said}]
    return [entry]


def _may_be_listed(word: str) -> bool:
    return word != LOCAL and "@" not in word[1:] and ":" not in word


def _keys(member: Member) -> dict[str, Any]:
    """Return a host as a goal would have it written."""
    return {"name": member.host.name, **member.host.model_dump(exclude_defaults=True)}
