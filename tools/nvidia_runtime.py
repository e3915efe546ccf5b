"""Make NVIDIA's runtime known to a host's Docker daemon, which is started anew for it."""

from __future__ import annotations

from pydantic import Field

from tools.base import Args, CallContext, Observation, Risk, Subject, Tool
from tools.command import Command, Result
from tools.docker import ContainerName
from tools.host import HOST
from tools.os_packages import call_name
from tools.script import read_answers, script

RESTART_S = 300.0


class ConfigureDockerRuntimeArgs(Args):
    """Which containers may stop by it."""

    running: tuple[ContainerName, ...] = Field(
        default=(), description="All containers that run there now."
    )


class RuntimeConfigured(Observation):
    """The daemon knows the runtime, and answers."""

    path: str
    backup: str = ""
    """What was there before; empty for nothing."""
    written: str
    """A copy of what was written, by which a later change is told."""


class ConfigureDockerRuntime(Tool[ConfigureDockerRuntimeArgs, RuntimeConfigured]):
    """Add NVIDIA's runtime to Docker's daemon.json and restart Docker: running containers stop."""

    risk = Risk.CHANGE
    needs = ("driver_works", "docker_usable", "toolkit_installed")
    establishes = ("gpu_in_containers",)
    runs_in = "host"
    always_asks = True

    def title(self, args: ConfigureDockerRuntimeArgs) -> str:
        """Say what stops."""
        stops = f"these stop: {', '.join(args.running)}" if args.running else "no container runs"
        return f"Add NVIDIA's runtime to daemon.json and restart Docker; {stops}."

    def command(self, args: ConfigureDockerRuntimeArgs, call: CallContext) -> Command:
        """Return the script, which puts all back where the daemon does not come up again."""
        words = (call_name(call), *args.running)
        return script(call, "docker_runtime", words, ("provision_common",), RESTART_S)

    def parse(
        self, args: ConfigureDockerRuntimeArgs, call: CallContext, result: Result
    ) -> RuntimeConfigured:
        """Read which file it is."""
        return RuntimeConfigured.model_validate(read_answers(call, result))

    def subjects(self, args: ConfigureDockerRuntimeArgs) -> tuple[Subject, ...]:
        """The host."""
        return (HOST,)

    def undo_text(self, args: ConfigureDockerRuntimeArgs) -> str:
        """The file is put back, and Docker restarted once more."""
        return "`bringup undo` puts the file back, and restarts Docker once more"
