"""What a judgement of machines consists of; its words and thresholds are data.

They lie in ``prompts/doctor/findings.yaml`` and are checked on load. The rules are code, beside
this module: each yields a ``Hit``, a code with the values that its text names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict

from agent.name_ranges import fold

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")
"""Worst first."""
By = Literal["you", "administrator", "bringup"]
"""Who can do it: you: the host's user · administrator: needs root there · bringup: it asks and then
does it."""


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Finding(_Entry):
    """Something about a machine, or about several, that somebody should know."""

    code: str
    level: Level
    subject: str = ""
    """What it is about: ``GPU 0``, ``/``, ``eth0``; empty for the machine as a whole."""
    text: str
    do: str = ""
    """What to do; empty where nothing has to be done."""
    by: By = "you"
    hosts: tuple[str, ...] = ()
    """Names of the machines that differ; empty for a finding about one machine."""


class Difference(_Entry):
    """What one machine has and another lacks."""

    code: str
    level: Level
    part: str
    """The part of the facts: ``gpus``, ``docker``, ``disks``, ..."""
    a: str
    """What the first has."""
    b: str
    """What the second has instead; empty for nothing."""
    text: str
    weight: int
    """Order: what weighs more comes first."""


class Words(_Entry):
    """How a finding reads; ``{names}`` are filled with what was found."""

    level: Level
    says: str
    do: str = ""
    by: By = "you"


class DifferenceWords(_Entry):
    """How a difference reads, and what it weighs."""

    level: Level
    part: str
    says: str
    weight: int


class Thresholds(_Entry):
    """Where a value begins to be worth a word; each is explained in the data."""

    gpu_held_mib: int
    gpu_hidden_mib: int
    memory_low_percent: int
    hugepages_percent: int
    swap_used_mib: int
    disk_free_percent: int
    disk_free_gib: dict[str, int]
    disk_wanted_percent: int
    small_disk_gib: int
    other_disk_times: int
    memlock_mib: int
    shm_tiny_mib: int
    shm_small_mib: int
    nofile: int
    skew_warning_s: float
    skew_error_s: float
    jumbo_speed_mbit: int
    jumbo_mtu: int
    docker_gpus_from: str
    python_from: str


class Book(_Entry):
    """All words and thresholds."""

    thresholds: Thresholds
    drivers: dict[str, str]
    """The oldest driver by the major version of CUDA."""
    findings: dict[str, Words]
    fleet: dict[str, Words]
    differences: dict[str, DifferenceWords]


@cache
def book() -> Book:
    """Return the data of the doctor."""
    source = files("prompts") / "doctor" / "findings.yaml"
    return Book.model_validate(yaml.safe_load(source.read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule that applies: its code, what it is about, and the values that its text names."""

    code: str
    subject: str = ""
    values: dict[str, object] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    level: Level | None = None
    """Where it weighs something else than its words say."""


def hit(code: str, subject: str = "", **values: object) -> Hit:
    """Return a hit: ``hit("disk_full", "/", free="2.0 GiB")``."""
    return Hit(code, subject, values)


def told(hits: Iterable[Hit], words: dict[str, Words]) -> list[Finding]:
    """Put hits into words, worst first, else in the order in which they came."""
    found = []
    for it in hits:
        entry = words[it.code]
        values = {"subject": it.subject, "hosts": fold(it.hosts), **it.values}
        found.append(
            Finding(
                code=it.code,
                level=it.level or entry.level,
                subject=it.subject,
                text=entry.says.format(**values),
                do=entry.do.format(**values),
                by=entry.by,
                hosts=it.hosts,
            )
        )
    return sorted(found, key=lambda finding: LEVELS.index(finding.level))


def gib(mib: float | None) -> str:
    """Return a size in GiB, for people."""
    return "?" if mib is None else f"{mib / 1024:.1f} GiB"
