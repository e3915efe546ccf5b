"""What a bare host is made ready with, by its distribution, and what an operator types there."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict, Field

from tools.host_readiness import Readiness


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Family(_Entry):
    """Distributions that name and install packages in the same way."""

    ids: tuple[str, ...]
    manager: str
    packages: dict[str, tuple[tuple[str, ...], ...]]
    """Part to its choices, the best first."""
    known: tuple[str, ...]
    """Packages that count only where a configured repository has them."""
    install: str
    """How a person installs ``{packages}``."""
    repository: tuple[str, ...]
    """How a person adds NVIDIA's repository, and compares its key."""

    def choice(self, part: str, known: tuple[str, ...]) -> tuple[str, ...]:
        """Return the packages of a part; empty where no configured repository has them."""
        for names in self.packages[part]:
            if all(name in known for name in names if name in self.known):
                return names
        return ()


class OperatorWords(_Entry):
    """What a person types for what bringup does not do; ``{name}`` is filled in."""

    group: str
    daemon_systemd: str
    daemon: str
    login: str
    driver: str
    reboot: str
    runtime: tuple[str, ...]
    limits: tuple[str, ...]


class Provisioning(_Entry):
    """All of it."""

    families: dict[str, Family] = Field(min_length=1)
    operator: OperatorWords

    def family(self, seen: Readiness) -> Family | None:
        """Return the family of a host; ``None`` for a system that is not known."""
        for name in (seen.os_id, *seen.os_like):
            for family in self.families.values():
                if name in family.ids and family.manager == seen.manager:
                    return family
        return None

    @property
    def all_packages(self) -> tuple[str, ...]:
        """Every package whose being there in the repositories matters."""
        return tuple(dict.fromkeys(it for family in self.families.values() for it in family.known))


@cache
def load() -> Provisioning:
    """Read the file that is shipped."""
    text = (files("prompts") / "provision.yaml").read_text(encoding="utf-8")
    return Provisioning.model_validate(yaml.safe_load(text))
