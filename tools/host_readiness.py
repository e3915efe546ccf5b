"""What a host has of what runs need, and what may be changed on it: one look, one round trip."""

from __future__ import annotations

import json
import re
from typing import Annotated

from pydantic import Field

from tools.base import Args, CallContext, Observation, Subject, Tool
from tools.command import Command, Result
from tools.host import HOST
from tools.script import read_answers, script

LOOK_S = 90.0
Package = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]*$", max_length=100)]
"""A package's name, as Debian allows it (Policy §5.6.1)."""
Folder = Annotated[str, Field(pattern=r"^(/|~/)[^\x00-\x1f]*[^\x00-\x1f/]$")]
"""An absolute path, or one below the home of the user there."""


class HostReadinessArgs(Args):
    """Which environment is looked at, and which packages the repositories are asked for."""

    environment: Folder = Field(description="Of Python, absolute or ~/…")
    packages: tuple[Package, ...] = ()


class Readiness(Observation):
    """What there is. Texts are the host's own words."""

    os_id: str = ""
    """``ID`` of ``/etc/os-release``; DGX OS says ``ubuntu``."""
    os_like: tuple[str, ...] = ()
    os_name: str = ""
    manager: str = ""
    """``apt-get`` or ``dnf``."""
    user: str = ""
    sudo: str = ""
    """``root``, ``yes`` (without a password), ``absent``, or what sudo says against it."""
    groups: tuple[str, ...] = ()
    """Those of this login."""
    groups_next: tuple[str, ...] = ()
    """Those that the next login will have."""
    systemd: bool = False
    reboot: bool = False
    """Whether the system says that it has to be started anew."""
    known: tuple[str, ...] = ()
    """Packages, of those asked about, that the configured repositories have."""
    python: str = ""
    ensurepip: bool = False
    """Whether this Python can make environments with pip in them."""
    env_there: bool = False
    env_python: str = ""
    """Version of the environment's Python; empty where there is no environment."""
    env_pip: str = ""
    docker: str = ""
    dockerd: bool = False
    docker_server: str = ""
    """Version of the daemon, where it answers this user."""
    docker_error: str = ""
    docker_runtimes: tuple[str, ...] = ()
    docker_running: tuple[str, ...] = ()
    """Names of the containers that run."""
    live_restore: bool = False
    gpu_pci: bool = False
    """Whether an NVIDIA device is on the PCI bus."""
    gpus: str = ""
    """What ``nvidia-smi -L`` says; empty where there is no such program."""
    toolkit: str = ""
    """Version line of NVIDIA's container toolkit."""
    memlock: str = ""
    """Hard limit of this login in KiB, or ``unlimited``."""
    nofile: str = ""
    limits: str = ""
    """Our file of limits."""

    @property
    def may_change(self) -> bool:
        """Whether root can be become without a password."""
        return self.sudo in ("root", "yes")

    def headline(self) -> str:
        """System, user, and what is there."""
        parts = [f"{self.os_name or self.os_id or 'unknown system'}, user {self.user}"]
        parts.append(f"sudo: {self.sudo}")
        parts.append(f"Python {self.python or 'none'}{'' if self.ensurepip else ' without venv'}")
        parts.append(f"environment {self.env_python or 'none'}")
        parts.append(f"Docker {self.docker_server or ('unusable' if self.docker else 'none')}")
        if self.toolkit:
            parts.append("NVIDIA container toolkit")
        return ", ".join(parts)[:300]


class HostReadiness(Tool[HostReadinessArgs, Readiness]):
    """Look at what a host has of Python, Docker, GPU toolkit, groups, limits; and at sudo."""

    runs_in = "host"

    def command(self, args: HostReadinessArgs, call: CallContext) -> Command:
        """Return the script that looks."""
        words = (args.environment, *args.packages)
        return script(call, "provision_look", words, ("provision_common",), LOOK_S)

    def parse(self, args: HostReadinessArgs, call: CallContext, result: Result) -> Readiness:
        """Read what there is."""
        return readiness(read_answers(call, result))

    def subjects(self, args: HostReadinessArgs) -> tuple[Subject, ...]:
        """The host."""
        return (HOST,)


def readiness(answers: dict[str, str]) -> Readiness:
    """Read the script's answers."""
    runtimes, live_restore = _engine(answers.get("docker_info", ""))
    lists = {
        name: tuple(answers.get(name, "").split())
        for name in ("os_like", "groups", "groups_next", "known", "docker_running")
    }
    flags = {
        name: name in answers
        for name in ("systemd", "reboot", "ensurepip", "env_there", "dockerd", "gpu_pci")
    }
    texts = {
        name: answers[name].strip()
        for name in Readiness.model_fields
        if name in answers and name not in lists and name not in flags
    }
    pip = re.match(r"pip (\S+)", texts.get("env_pip", ""))
    more = {"docker_runtimes": runtimes, "live_restore": live_restore}
    return Readiness.model_validate(
        {**texts, **lists, **flags, **more, "env_pip": pip[1] if pip else ""}
    )


def _engine(text: str) -> tuple[tuple[str, ...], bool]:
    """Read ``{"runc":{...}} false``: the runtimes, and whether containers outlive a restart."""
    try:
        runtimes, end = json.JSONDecoder().raw_decode(text.strip())
    except ValueError:
        return (), False
    names = tuple(sorted(runtimes)) if isinstance(runtimes, dict) else ()
    return names, text.strip()[end:].strip() == "true"
