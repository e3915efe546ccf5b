"""The typed fact store: what each tool last observed, by which event, and whether it still holds.

An observation is *fresh* until a change touches one of its subjects on the same target. So nobody
acts on what was true before the last change.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from tools.base import Observation, Subject, Tool

Obs = TypeVar("Obs", bound=Observation)
_SORTED = json.JSONEncoder(sort_keys=True)


@dataclass(frozen=True, slots=True)
class Known:
    """One observation with its provenance."""

    tool: str
    target: str
    args: dict[str, Any]
    observation: Observation
    subjects: tuple[Subject, ...]
    event: str
    """Id of the event that holds it, for citing."""
    seq: int


class FactStore:
    """Observations by tool and arguments, and the last change to each subject."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Known]] = {}
        self._changed: dict[tuple[str, Subject], int] = {}
        self._asked: set[str] = set()

    def learn(self, known: Known) -> None:
        """Keep an observation; a later one with the same arguments takes its place."""
        rows = self._known.setdefault(known.tool, {})
        key = key_of(known.target, known.args)
        rows.pop(key, None)
        rows[key] = known

    def changed(self, target: str, subjects: Iterable[Subject], seq: int) -> None:
        """Note that a change touched these subjects."""
        for subject in subjects:
            self._changed[target, subject] = seq

    def last_change(self, target: str, subject: Subject) -> int:
        """Return the number of the event that last changed the subject, -1 for never."""
        return self._changed.get((target, subject), -1)

    def is_fresh(self, known: Known) -> bool:
        """Whether nothing has touched the observation's subjects since."""
        return all(
            self.last_change(known.target, subject) < known.seq for subject in known.subjects
        )

    def find(self, tool: str, target: str, args: dict[str, Any]) -> Known | None:
        """Return the fresh observation of exactly this call, if there is one."""
        self._asked.add(tool)
        row = self._known.get(tool, {}).get(key_of(target, args))
        return row if row is not None and self.is_fresh(row) else None

    def latest(
        self, tool: type[Tool[Any, Obs]], *, fresh: bool = True
    ) -> tuple[Obs, Known] | tuple[None, None]:
        """Return what the tool last observed, whatever its arguments were."""
        for row in reversed(self._of(tool).values()):
            if fresh and not self.is_fresh(row):
                continue
            observation = row.observation
            if isinstance(observation, tool.observation_type):
                return observation, row  # type: ignore[return-value]
        return None, None

    def known(self, tool: type[Tool[Any, Any]]) -> list[Known]:
        """Return all that the tool observed, the latest of each question, be it stale."""
        return list(self._of(tool).values())

    def _of(self, tool: type[Tool[Any, Any]]) -> dict[str, Known]:
        name = tool().name
        self._asked.add(name)
        return self._known.get(name, {})

    def was_asked(self, tool: str) -> bool:
        """Whether anybody has ever asked what this tool observed."""
        return tool in self._asked


def key_of(target: str, args: dict[str, Any]) -> str:
    """Return what is the same for the same question to the same target."""
    return target + _SORTED.encode(args)
