"""The inventory: which hosts there are, by the names and groups of a person's ``hosts.yaml``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import ValidationError

from agent.explain import explain, unknown_word
from agent.goal_parts import LOCAL, Host
from agent.inventory_build import ALL, groups_of, members_of
from agent.inventory_parts import HERE, Member, Written
from agent.inventory_secrets import ADVICE, looks_secret, secret_places
from agent.name_ranges import MOST, expand
from agent.problems import Problem
from agent.yaml_file import read_mapping
from tools.connectors.ssh_config import parse_address

FILE = "hosts.yaml"
SEE = "docs/hosts.md"
_COMMA = re.compile(r",(?![^\[\]]*\])")


class InventoryError(Problem):
    """The inventory, or a name of a host, cannot be used; the message says what and where."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """What was read: hosts by name, and the names of each group."""

    path: Path
    members: Mapping[str, Member]
    groups: Mapping[str, tuple[str, ...]]
    """Groups, and roles as groups."""

    def group(self, name: str) -> tuple[Member, ...]:
        """Return the hosts of a group or role.

        Raises:
            InventoryError: there is none of that name.
        """
        if name == ALL:
            return tuple(self.members.values())
        if name not in self.groups:
            known = sorted([*self.groups, ALL])
            raise InventoryError(f"{self.path}: {unknown_word('group', name, known)}")
        return tuple(self.members[it] for it in self.groups[name])


def find(named: Path | None) -> Path | None:
    """Return where the inventory is: the named file, else ``./hosts.yaml``, else the user's own.

    Raises:
        InventoryError: the named file does not exist.
    """
    if named is not None:
        path = named.expanduser()
        if not path.exists():
            raise InventoryError(f"{path}: no such inventory; name another, or make it ({SEE})")
        return path
    places = (Path(FILE), Path(platformdirs.user_config_dir("bringup")) / FILE)
    return next((path for path in places if path.exists()), None)


def load(path: Path) -> Inventory:
    """Read an inventory.

    Raises:
        InventoryError: it cannot be read, a key or name is wrong, or a secret seems to be in it.
    """
    data = read_mapping(path, "inventory", SEE, InventoryError)
    for place in secret_places(data):
        raise InventoryError(f"{path}: {place}: looks like a secret; no secrets here: {ADVICE}")
    try:
        written = Written.model_validate(_entries(data))
    except ValidationError as error:
        raise InventoryError(f"{path}: {_explained(error)}") from error
    except ValueError as error:
        raise InventoryError(f"{path}: {error}") from error
    try:
        members = members_of(written)
        return Inventory(path, members, groups_of(written, members))
    except ValueError as error:
        raise InventoryError(f"{path}: {error}") from error


def found(named: Path | None) -> Inventory | None:
    """Return the inventory where there is one; see ``find`` and ``load``."""
    path = find(named)
    return None if path is None else load(path)


def select(words: Iterable[str], inventory: Inventory | None) -> tuple[Member, ...]:
    """Return the hosts that words name, each once, in order.

    A word is a name of the inventory, ``@GROUP``, ``local`` or an address for ssh; a range stands
    for several, and commas part words.

    Raises:
        InventoryError: a word names nothing, or more than ``MOST`` hosts are named.
    """
    chosen: dict[str, Member] = {}
    for word in (part.strip() for words_ in words for part in _COMMA.split(words_)):
        try:
            chosen |= {member.name: member for member in _named(word, inventory)}
        except ValueError as error:
            raise InventoryError(str(error)) from error
        if len(chosen) > MOST:
            raise InventoryError(f"more than {MOST} hosts are named")
    return tuple(chosen.values())


def _named(word: str, inventory: Inventory | None) -> Iterable[Member]:
    if word.startswith("@"):
        if inventory is None:
            raise ValueError(f"{word}: a group needs an inventory, and there is none ({SEE})")
        return inventory.group(word[1:])
    names = expand(word)
    listed = inventory.members if inventory else {}
    missing = [name for name in names if name not in listed]
    if inventory and len(names) > len(missing) > 0:
        raise ValueError(f"{inventory.path}: {word}: there is no {missing[0]}")
    return [listed[name] if name in listed else typed(name) for name in names]


def typed(word: str) -> Member:
    """Return a host that no inventory knows: ``local``, or an address for ssh.

    Raises:
        ValueError: it is neither.
    """
    if word == LOCAL:
        return HERE
    if looks_secret(word):
        raise ValueError("a host's address holds a password; log in with a key instead")
    parse_address(word)
    return Member(name=word, host=Host.model_validate(word))


def _entries(data: dict[Any, Any]) -> dict[Any, Any]:
    """Return the data with an entry of keys for each host; an address alone is one, too.

    Raises:
        ValueError: hosts are no mapping, or a name is no text.
    """
    data = {key: value for key, value in data.items() if value is not None}
    for part in ("hosts", "groups"):
        within = data.get(part, {})
        if not isinstance(within, dict):
            raise ValueError(f"{part}: names are needed, each with what it is; see {SEE}")
        for key in within:
            if not isinstance(key, str):
                raise ValueError(f"{part}: YAML takes a name for `{key}`; put quotes around it")
    return {**data, "hosts": {key: _entry(it) for key, it in data.get("hosts", {}).items()}}


def _entry(value: Any) -> Any:
    return {"address": value} if isinstance(value, str) else {} if value is None else value


def _explained(error: ValidationError) -> str:
    """Say in one line what is wrong; pydantic marks a wrong key of a mapping by ``[key]``."""
    first = error.errors(include_url=False)[0]
    if first["loc"][-1:] == ("[key]",):
        spot, key = ".".join(map(str, first["loc"][:-2])), first["loc"][-2]
        return f"{spot}: `{key}` is no name; letters, digits and _ are"
    if first["type"] == "model_type" and len(first["loc"]) == 2:
        return f"hosts.{first['loc'][1]}: an address is needed, or keys with values"
    return explain(error, Written)


def one(word: str, inventory: Inventory | None) -> Member:
    """Return the one host that a word names.

    Raises:
        InventoryError: it names none, or several.
    """
    chosen = select([word], inventory)
    if len(chosen) != 1:
        raise InventoryError(f"{word}: {len(chosen)} hosts; name one")
    return chosen[0]
