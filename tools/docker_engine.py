"""What the target's Docker engine is, and whether it can be used at all."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.base import Args, CallContext, Observation, Subject, Tool
from tools.command import Command, Result
from tools.docker import ENGINE, failure, mib, read_rows
from tools.errors import BadReply

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}
"""Names of the kernel for what images call otherwise."""

_ASK = """docker version --format '{{json .}}' && docker info --format '{{json .}}'"""


def architecture(name: str) -> str:
    """Return an architecture as images name it: ``x86_64`` is ``amd64``."""
    return ARCHITECTURES.get(name, name)


class DockerInfoArgs(Args):
    """Nothing to say."""


class EngineState(Observation):
    """The engine of a target."""

    client_version: str
    server_version: str
    api_version: str
    """The newest API that the engine speaks, such as ``1.41``."""
    architecture: str
    """As images name it: ``amd64``, ``arm64``."""
    os: str
    cpus: int
    memory_mib: int
    storage_driver: str
    data_root: str
    """The folder on the engine's machine under which images lie: its disk is what fills up."""
    runtimes: tuple[str, ...] = ()
    default_runtime: str = ""
    cdi_spec_dirs: tuple[str, ...] = ()
    """Where the engine looks for devices (CDI, from 25 on); empty where it does not."""
    cdi_devices: tuple[str, ...] = ()
    """Devices it has found there (told from 28.2 on), such as ``nvidia.com/gpu=0``."""

    @property
    def platform(self) -> str:
        """What images must be for: ``linux/amd64``."""
        return f"{self.os}/{self.architecture}"

    @property
    def gpu_hint(self) -> bool:
        """Whether the engine knows a runtime or a device for GPUs; some work without."""
        return "nvidia" in self.runtimes or any("gpu" in device for device in self.cdi_devices)

    def headline(self) -> str:
        """The engine in one line."""
        return (
            f"Docker {self.server_version} (API {self.api_version}), {self.platform}, "
            f"{self.cpus} CPUs, {self.memory_mib} MiB, {self.storage_driver} on {self.data_root}, "
            f"runtimes {', '.join(self.runtimes)}"
        )


class DockerInfo(Tool[DockerInfoArgs, EngineState]):
    """Ask the Docker engine what it is: versions, architecture, memory, storage, GPU runtimes."""

    def command(self, args: DockerInfoArgs, call: CallContext) -> Command:
        """Return ``docker version`` and ``docker info``, one after the other."""
        return Command.of("sh", "-c", _ASK, timeout_s=20.0)

    def parse(self, args: DockerInfoArgs, call: CallContext, result: Result) -> EngineState:
        """Read both answers.

        Raises:
            ToolFailed: no docker program, no right to the socket, no daemon, an engine's own error
                or no answer in time; the message says which.
        """
        what = "docker info"
        rows = read_rows(what, result)
        if len(rows) != 2:
            raise failure(what, result)
        try:
            version, info = _Version.model_validate(rows[0]), _Info.model_validate(rows[1])
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise BadReply(
                f"{what}: the answer has another form: {where}: {first['msg']}"
            ) from error
        return EngineState(
            client_version=version.client.version,
            server_version=version.server.version,
            api_version=version.server.api_version,
            architecture=architecture(version.server.arch),
            os=version.server.os,
            cpus=info.cpus,
            memory_mib=mib(info.memory),
            storage_driver=info.driver,
            data_root=info.data_root,
            runtimes=tuple(sorted(info.runtimes or ())),
            default_runtime=info.default_runtime,
            cdi_spec_dirs=tuple(info.cdi_dirs or ()),
            cdi_devices=tuple(str(device.get("ID", "")) for device in info.devices or ()),
        )

    def subjects(self, args: DockerInfoArgs) -> tuple[Subject, ...]:
        """The engine."""
        return (ENGINE,)


class _Part(BaseModel):
    model_config = ConfigDict(populate_by_name=True)


class _Program(_Part):
    version: str = Field(alias="Version")
    api_version: str = Field("", alias="ApiVersion")
    arch: str = Field("", alias="Arch")
    os: str = Field("", alias="Os")


class _Version(_Part):
    client: _Program = Field(alias="Client")
    server: _Program = Field(alias="Server")


class _Info(_Part):
    cpus: int = Field(alias="NCPU")
    memory: int = Field(alias="MemTotal")
    driver: str = Field(alias="Driver")
    data_root: str = Field(alias="DockerRootDir")
    runtimes: dict[str, Any] | None = Field(None, alias="Runtimes")
    default_runtime: str = Field("", alias="DefaultRuntime")
    cdi_dirs: list[str] | None = Field(None, alias="CDISpecDirs")
    devices: list[dict[str, Any]] | None = Field(None, alias="DiscoveredDevices")
