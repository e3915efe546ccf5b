"""The goal of making a bare host ready: which parts, and where its environment is."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, model_validator

from agent.goal import Goal
from agent.goal_parts import Candidate
from tools.host_changes import Limit
from tools.host_readiness import Folder

FOLDER = "~/bringup-env"
"""Where the environment is made unless the person says otherwise."""
Part = Literal["python", "docker", "nvidia", "limits"]
PARTS: tuple[Part, ...] = ("python", "docker", "nvidia", "limits")
CHECKS_OF: dict[Part, tuple[str, ...]] = {
    "python": ("python_ready",),
    "docker": ("docker_usable",),
    "nvidia": ("gpu_in_containers",),
    "limits": ("limits_raised",),
}
"""What holds once a part is there."""


def _each_once(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(part for part in PARTS if part in parts)


def _folder(value: str) -> str:
    return _of_form(value, Folder, "needs an absolute path on the host, or one below ~/")


def _limit(value: str) -> str:
    return _of_form(value, Limit, "needs a number, or `unlimited`")


def _of_form(value: str, form: Any, words: str) -> str:
    try:
        return str(TypeAdapter(form).validate_python(value))
    except ValidationError:
        raise ValueError(words) from None


class ProvisionGoal(Goal):
    """A goal without a model: the host itself is what is made ready."""

    kind: Literal["provision"] = "provision"
    model: str = ""
    candidates: tuple[Candidate, ...] = Field(min_length=1)
    """One: the environment that is made."""
    provide: Annotated[tuple[Part, ...], AfterValidator(_each_once)] = Field(
        default=("python", "docker"), min_length=1
    )
    """The parts: python, docker, nvidia, limits."""
    environment: Annotated[str, AfterValidator(_folder)] = FOLDER
    """Folder of the Python environment on the host."""
    memlock: Annotated[str, AfterValidator(_limit)] = "unlimited"
    """KiB of memory that a login may lock."""
    nofile: Annotated[str, AfterValidator(_limit)] = "1048576"
    """Files that a login may open."""

    @model_validator(mode="before")
    @classmethod
    def _its_place(cls, data: Any) -> Any:
        """The environment is the goal's one place."""
        if not isinstance(data, dict) or "candidates" in data:
            return data
        return {**data, "candidates": [{"venv": data.get("environment", FOLDER)}]}

    @property
    def all_checks(self) -> tuple[str, ...]:
        """What each part comes to."""
        return self.checks or tuple(name for part in self.provide for name in CHECKS_OF[part])
