"""How a tool is declared: ``Args``, ``Observation``, ``Risk``, ``Subject``, ``Tool``.

A tool is a pure command and a pure parser; running it is the dispatcher's work. So dry runs,
approval texts, replay and parser tests need no machine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict

from tools.command import Command, Result


class Args(BaseModel):
    """Arguments of a tool; an invented argument is an error that the caller reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    remarks: ClassVar[tuple[str, ...]] = ()
    """Arguments that change nothing of what is done: a reason, a number of the run's own."""


class Observation(BaseModel):
    """What a tool call found."""

    model_config = ConfigDict(frozen=True)

    clock_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that differ from look to look though nothing has happened: times, measured speeds."""

    def unmoved(self, before: Self) -> bool:
        """Whether nothing has happened since an earlier look; see ``clock_fields``.

        All else counts, so what grows while something works (CPU time, bytes of a log) tells that
        it lives, even where its words are the same.
        """
        names = [name for name in type(self).model_fields if name not in self.clock_fields]
        return all(_unmoved(getattr(self, name), getattr(before, name)) for name in names)

    def headline(self) -> str:
        """One line for people; the default lists the scalar fields."""
        pairs = [
            f"{key}={value}"
            for key, value in self.model_dump().items()
            if isinstance(value, str | int | float | bool) and value != ""
        ]
        return " ".join(pairs)[:200]


def _unmoved(now: Any, before: Any) -> bool:
    if isinstance(now, Observation):
        return type(now) is type(before) and now.unmoved(before)
    if isinstance(now, list | tuple) and isinstance(before, list | tuple):
        return len(now) == len(before) and all(map(_unmoved, now, before))
    return bool(now == before)


class Risk(IntEnum):
    """What a call may do."""

    READ = 0
    """Observes; safe to repeat."""
    CHANGE = 1
    """Changes something, and a recorded undo exists."""
    DESTROY = 2
    """Loses data, or ends something that is not ours."""


class Subject(BaseModel):
    """A thing on a target that a call looks at or touches."""

    model_config = ConfigDict(frozen=True)

    kind: str
    """environment, model, port, job, service, file or host."""
    key: str

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a tool may know about the call it is part of."""

    run_id: str
    call_id: str
    marker: str
    """A word of the run's own random source; a probe prints it before its JSON answer."""
    host_dir: str
    """Folder on the target for what the run leaves there (job folders)."""
    host_key: str = ""
    """Fingerprint of the key by which an ssh host was known; empty for other targets."""


A = TypeVar("A", bound=Args)
Obs = TypeVar("Obs", bound=Observation)


@cache
def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Tool(Generic[A, Obs]):
    """One declared thing that can be done to a target; the docstring is what a model reads."""

    risk: ClassVar[Risk] = Risk.READ
    needs: ClassVar[tuple[str, ...]] = ()
    """Names of checks that have to hold before this tool makes sense."""
    establishes: ClassVar[tuple[str, ...]] = ()
    """Names of checks that this tool can make true."""
    runs_in: ClassVar[Literal["", "venv", "image", "host"]] = ""
    """The kind of place that it is for, ``host`` for one that is made ready; empty: any."""
    always_asks: ClassVar[bool] = False
    """Whether a person is asked in every mode."""
    renews_login: ClassVar[bool] = False
    """Whether what it does holds only for a new login, so that the connection is opened anew."""

    args_type: ClassVar[type[Args]]
    observation_type: ClassVar[type[Observation]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in getattr(cls, "__orig_bases__", ()):
            origin, types = get_origin(base), get_args(base)
            is_tool = isinstance(origin, type) and issubclass(origin, Tool) and len(types) == 2
            if is_tool and isinstance(types[0], type):
                cls.args_type, cls.observation_type = types

    @property
    def name(self) -> str:
        """The class name in snake case: ``ConfigProbe`` is ``config_probe``."""
        return _snake_case(type(self).__name__)

    @property
    def summary(self) -> str:
        """What the tool does, for people and models."""
        return (type(self).__doc__ or "").strip()

    def title(self, args: A) -> str:
        """Say what this very call does, in one line for whoever approves it."""
        return self.summary.splitlines()[0]

    def command(self, args: A, call: CallContext) -> Command:
        """Return the command that does it. Pure."""
        raise NotImplementedError(f"{self.name} declares no command")

    def parse(self, args: A, call: CallContext, result: Result) -> Obs:
        """Read the result. Pure.

        Raises:
            ToolFailed: the command ran and did not do what it was for.
        """
        raise NotImplementedError(f"{self.name} declares no parser")

    def risk_of(self, args: A) -> Risk:
        """Return the risk of this very call."""
        return self.risk

    def subjects(self, args: A) -> tuple[Subject, ...]:
        """Return what the call looks at (READ) or touches (above)."""
        return ()

    def undo_text(self, args: A) -> str | None:
        """Say how the change is undone, or ``None`` where it is not undoable."""
        return None


class Watch(Tool[A, Obs]):
    """A READ that samples the same command until something is decided; one call, many samples."""

    interval_s: ClassVar[float] = 1.0

    def finished(self, args: A, observation: Obs) -> bool:
        """Whether the last sample decides it."""
        raise NotImplementedError(f"{self.name} never finishes")

    def limit_s(self, args: A) -> float:
        """Seconds after which the watch ends undecided."""
        return 600.0

    def cut_short(self, observation: Obs) -> Obs:
        """Say of the last observation that its time was over before anything was decided."""
        return observation

    def parse_all(self, args: A, call: CallContext, results: Sequence[Result]) -> Obs:
        """Read all samples so far; the default looks at the last one."""
        return self.parse(args, call, results[-1])
