"""The parts of a goal: hosts, candidates, what is allowed, limits; frozen, and no unknown keys."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tools.docker import REFERENCE

LOCAL = "local"
"""The address of this machine."""
INSIDE = r"^(((docker|lxc):)?[A-Za-z0-9][A-Za-z0-9_.-]*|pct:[0-9]+)?$"
"""``NAME`` or ``docker:NAME`` of an engine, ``lxc:NAME``, or ``pct:NUMBER`` on a Proxmox host."""


class Part(BaseModel):
    """What all parts of a goal share: frozen, and no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Host(Part):
    """A machine that the goal may use."""

    name: str = Field(default=LOCAL, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    address: str = LOCAL
    """``local``, or what one would give to ssh: ``HOST``, ``USER@HOST`` or ``USER@HOST:PORT``."""
    container: str = Field(default="", pattern=INSIDE)
    """A running container there that is the target, instead of the machine itself."""
    python: str = Field(default="python3", pattern=r"^([^\x00]*/)?(python|pypy)[0-9.]*$")
    """A Python ≥ 3.8 on the host, for probes that need no environment."""
    models: str = Field(default="", pattern=r"^(/[^,:\"\x00\r\n]*)?$")
    """Folder on the host for models that are fetched; needed where ``model`` is a hub's name."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        """An address alone is a host; its name is the address without user and port."""
        data = {"address": value} if isinstance(value, str) else value
        if isinstance(data, dict) and "name" not in data and isinstance(data.get("address"), str):
            plain = data["address"].removeprefix("ssh://").rpartition("@")[2].partition(":")[0]
            return {**data, "name": re.sub(r"^[^A-Za-z0-9]+|[^A-Za-z0-9_.-]", "", plain) or "host"}
        return data

    @property
    def is_remote(self) -> bool:
        """Whether it is reached over ssh."""
        return self.address != LOCAL


class Candidate(Part):
    """One environment that might run the model: a virtual environment, or a container image."""

    venv: str = ""
    """A virtual environment's folder on the host."""
    image: str = Field(default="", pattern=rf"^$|{REFERENCE}")
    """A container image; the server runs as a container of it."""
    engine: str = "transformers"
    """A name in ``prompts/playbooks/engines.yaml``, or ``custom`` with ``serve``."""
    serve: tuple[str, ...] = ()
    """custom: the server's argument vector; ``{python}``, ``{model}``, ``{port}`` are filled in."""
    registry: tuple[str, ...] = ()
    """Modules that register the engine's own config classes, imported before a config is judged."""
    modules: tuple[str, ...] = ()
    """custom: modules that have to be importable before the server is started."""
    health: str = "/health"
    """custom: path that answers 200 once the server is up."""
    requirements: tuple[str, ...] = ()
    """What the environment should hold, such as ``torch==2.13.0``; bounds every fix."""
    keep: tuple[str, ...] = ("torch",)
    """Distributions that no fix may move."""
    gpus: str = Field(default="auto", pattern=r"^(auto|none|all|\d+(,\d+)*)$")
    """image: ``auto`` gives all where the engine has the NVIDIA runtime; else as given."""

    @model_validator(mode="after")
    def _one_place(self) -> Candidate:
        if bool(self.venv) == bool(self.image):
            raise ValueError("a candidate names either `venv` or `image`")
        return self

    @property
    def title(self) -> str:
        """What people call it: the folder or the image."""
        return self.image or self.venv


def _port_range(value: Any) -> str:
    words = str(value).split("-")
    numbers = [int(word) for word in words if word.isascii() and word.isdecimal()]
    if len(numbers) != len(words) or len(words) > 2 or not 1 <= numbers[0] <= numbers[-1] <= 65535:
        raise ValueError("a port, such as 8001, or a range, such as 8001-8010, is needed")
    return str(value)


PortRange = Annotated[str, BeforeValidator(_port_range)]


class Needs(Part):
    """What the server needs of the host before it is started."""

    memory_mib: int = Field(default=0, ge=0)
    """Memory in MiB that has to be available; 0: not looked at."""


class Allow(Part):
    """What the person allows beforehand."""

    paths: tuple[str, ...] = ()
    """Folders in which changes are allowed."""
    ports: tuple[PortRange, ...] = ()
    """Ports that may be used when the asked one is held: ``8001`` or ``8001-8010``."""
    stop: tuple[str, ...] = ()
    """Containers of others that may be stopped, by name; it is still asked each time."""
    pull: bool = False
    """Whether images that the goal names may be pulled unasked in mode ``auto``."""
    download_gb: float = Field(default=0.0, ge=0.0)
    """Weights of up to so many gigabytes are fetched unasked in mode ``auto``."""
    download_mb: float = 500.0
    """At 2000 or more, an install of an accelerator build (gigabytes) is not asked about."""


class Limits(Part):
    """What a run may use."""

    steps: int = Field(default=60, gt=0)
    """Replies of the brain."""
    minutes: float = Field(default=60.0, gt=0)
    tokens: int = Field(default=3_000_000, gt=0)
    """Tokens of a model, prompts and replies together."""
    usd: float = Field(default=0.0, ge=0)
    """Money for a model, by the settings' price table; 0: not limited."""


Kind = Literal["serve", "train", "diagnose", "provision"]
