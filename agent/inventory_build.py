"""From an inventory as it is written to its hosts and groups; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agent.explain import explain, unknown_word
from agent.goal_parts import LOCAL, Host
from agent.inventory_parts import NAME, Entry, Member, Written
from agent.name_ranges import expand, pair
from tools.connectors.ssh_config import parse_address

ALL = "all"
"""``@all`` is every host of the inventory."""
_OF_HOSTS = ("python", "models", "container")
_OF_MEMBERS = ("roles", "nic")


def members_of(written: Written) -> dict[str, Member]:
    """Return all hosts by name.

    Raises:
        ValueError: a name stands twice, or an entry is wrong.
    """
    found: dict[str, Member] = {}
    for word, entry in written.hosts.items():
        try:
            made = _of_entry(word, written.defaults, entry)
        except ValidationError as error:
            raise ValueError(f"hosts.{word}: {explain(error, Host)}") from error
        except ValueError as error:
            raise ValueError(f"hosts.{word}: {str(error).removeprefix(f'{word}: ')}") from error
        for member in made:
            if member.name in found:
                raise ValueError(f"hosts.{word}: {member.name} is there twice")
            found[member.name] = member
    return found


def _of_entry(word: str, defaults: Entry, entry: Entry) -> list[Member]:
    said = {**_said(defaults), **_said(entry)}
    env = {**defaults.env, **entry.env}
    of_host = {key: said[key] for key in _OF_HOSTS if key in said}
    of_member = {key: said[key] for key in _OF_MEMBERS if key in said}
    made = []
    for name, address in pair(word, said.get("address", LOCAL if word == LOCAL else "{name}")):
        if not re.fullmatch(NAME, name):
            raise ValueError("a name begins with a letter or digit, and has letters, digits, . _ -")
        if name == LOCAL and address != LOCAL:
            raise ValueError("`local` is this machine; choose another name")
        if address != LOCAL:
            parse_address(address)
        host = Host.model_validate({"name": name, "address": address, **of_host})
        made.append(Member(name=name, host=host, env=env, listed=True, **of_member))
    return made


def _said(entry: Entry) -> dict[str, Any]:
    return {key: value for key, value in entry if value is not None and key != "env"}


def groups_of(written: Written, members: Mapping[str, Member]) -> dict[str, tuple[str, ...]]:
    """Return the names of each group and role.

    Raises:
        ValueError: a group names what is not there, or itself; or is also a role.
    """
    roles: dict[str, list[str]] = {}
    for member in members.values():
        for role in dict.fromkeys(member.roles):
            roles.setdefault(role, []).append(member.name)
    for name in written.groups:
        if name == ALL or name in roles:
            why = "is every host" if name == ALL else "is a role, too"
            raise ValueError(f"groups.{name}: `@{name}` {why}; choose another name")
    groups = _Groups(written, members, {role: tuple(names) for role, names in roles.items()})
    for name in written.groups:
        groups.names_of(name)
    return groups.done


class _Groups:
    """Resolves groups, those inside of others first."""

    def __init__(
        self,
        written: Written,
        members: Mapping[str, Member],
        roles: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._written, self._members = written.groups, members
        self._open: list[str] = []
        self.done: dict[str, tuple[str, ...]] = dict(roles)

    def names_of(self, name: str) -> tuple[str, ...]:
        """Return the names of a group that is written down."""
        if name in self.done:
            return self.done[name]
        if name in self._open:
            way = " > ".join([*self._open, name])
            raise ValueError(f"groups.{name}: it is part of itself: {way}")
        self._open.append(name)
        found: dict[str, None] = {}
        for word in self._written[name]:
            found |= dict.fromkeys(self._of_word(name, word))
        self._open.pop()
        self.done[name] = tuple(found)
        return self.done[name]

    def _of_word(self, name: str, word: str) -> tuple[str, ...]:
        if word == f"@{ALL}":
            return tuple(self._members)
        if word.startswith("@"):
            known = {*self._written, *self.done}
            if word[1:] not in known:
                known.add(ALL)
                raise ValueError(f"groups.{name}: {unknown_word('group', word[1:], sorted(known))}")
            return self.names_of(word[1:])
        names = tuple(expand(word))
        for host in names:
            if host not in self._members:
                known_hosts = list(self._members)
                raise ValueError(f"groups.{name}: {unknown_word('host', host, known_hosts)}")
        return names
