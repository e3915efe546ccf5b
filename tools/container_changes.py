"""Change containers: run a command in one, stop, start and remove it."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field

from tools.base import Args, CallContext, Observation, Risk, Subject, Tool
from tools.command import Command, Ending, Result
from tools.containers import ContainerArgs
from tools.docker import (
    CONTAINERS,
    ContainerName,
    EnvironmentName,
    container_subject,
    docker,
    failure,
    is_missing,
    service_subject,
)
from tools.docker_run import CLIENT_GRACE_S, LIMIT_GRACE_S, env_words, limited, ran
from tools.files import TargetPath, Word
from tools.logs import steady
from tools.memory import MEMORY
from tools.network import Port, port_subject


class ExecInContainerArgs(Args):
    """What to run, and in which container."""

    name: ContainerName = Field(description="The container's name or id.")
    argv: tuple[Word, ...] = Field(min_length=1, description="No shell reads it.")
    env: dict[EnvironmentName, Word] = Field(default_factory=dict)
    workdir: TargetPath | None = None
    """A folder in the container."""
    timeout_s: float = Field(
        default=60.0, ge=1, le=1800, description="Ended in the container when so long has passed."
    )


class ContainerOutput(Observation):
    """What a command in a container wrote and how it ended; a failing command is an answer too."""

    ending: Ending
    code: int | None
    out: str
    err: str

    def unmoved(self, before: Self) -> bool:
        """Whether it came to the same; what a failure says may differ in pids, times and ports."""
        if self.code == 0:
            return super().unmoved(before)
        same = (self.ending, self.code) == (before.ending, before.code)
        return same and steady(self.out + self.err) == steady(before.out + before.err)

    def headline(self) -> str:
        """How it ended, and the last line."""
        last = (self.err.strip() or self.out.strip()).rpartition("\n")[2]
        how = self.ending if self.code is None else f"exit {self.code}"
        return f"{how}: {last}"[:200] if last else f"{how}"


class ExecInContainer(Tool[ExecInContainerArgs, ContainerOutput]):
    """Run a command inside a running container; what it changes lasts as long as the container."""

    risk = Risk.CHANGE

    def command(self, args: ExecInContainerArgs, call: CallContext) -> Command:
        """Return ``docker exec``, with the time limit inside the container."""
        words, carried = env_words(args.env)
        where = ("--workdir", args.workdir) if args.workdir else ()
        argv = limited(args.argv, args.timeout_s)
        limit_s = args.timeout_s + LIMIT_GRACE_S + CLIENT_GRACE_S
        return docker("exec", *words, *where, args.name, *argv, env=carried, timeout_s=limit_s)

    def parse(
        self, args: ExecInContainerArgs, call: CallContext, result: Result
    ) -> ContainerOutput:
        """Read what it wrote.

        Raises:
            ToolFailed: docker cannot be used, the container does not run, or has no ``timeout``.
        """
        seen = ran("docker exec", result, args.timeout_s)
        return ContainerOutput(ending=seen.ending, code=seen.code, out=seen.stdout, err=seen.stderr)

    def subjects(self, args: ExecInContainerArgs) -> tuple[Subject, ...]:
        """The container."""
        return (container_subject(args.name),)

    def undo_text(self, args: ExecInContainerArgs) -> str:
        """Only the container's own files can have changed, and what is mounted into it."""
        return "files of the container go with it; what the command did to mounts stays"


class StopContainerArgs(ContainerArgs):
    """Which container, and how patiently."""

    grace_s: Annotated[int, Field(ge=0, le=300)] = Field(
        default=30, description="Seconds between SIGTERM and SIGKILL."
    )
    ports: tuple[Port, ...] = Field(default=(), description="That it holds.\n\nAs far as is known.")


class ContainerStopped(Observation):
    """A container that does not run any more."""

    name: str
    stopped: bool
    restart: str
    """The command that brings it back as it was."""
    was_there: bool = True

    def headline(self) -> str:
        """That it stopped, and how to bring it back."""
        if not self.was_there:
            return f"there is no container {self.name}"
        return f"{self.name} stopped; back with `{self.restart}`"


class StopContainer(Tool[StopContainerArgs, ContainerStopped]):
    """Stop a running container; it stays there and can be started again as it was."""

    risk = Risk.CHANGE

    def title(self, args: StopContainerArgs) -> str:
        """Name it."""
        return f"Stop the container {args.name}; it stays there and can be started again."

    def command(self, args: StopContainerArgs, call: CallContext) -> Command:
        """Return ``docker stop``."""
        words = ("-t", str(args.grace_s), args.name)
        return docker("stop", *words, timeout_s=args.grace_s + 30.0)

    def parse(self, args: StopContainerArgs, call: CallContext, result: Result) -> ContainerStopped:
        """Read that it stopped; one that did not run, or is not there, is none that runs.

        Raises:
            ToolFailed: docker cannot be used, or there is no such container.
        """
        missing = is_missing(result)
        if not result.ok and not missing:
            raise failure("docker stop", result)
        restart = "" if missing else f"docker start {args.name}"
        return ContainerStopped(
            name=args.name, stopped=True, restart=restart, was_there=not missing
        )

    def subjects(self, args: StopContainerArgs) -> tuple[Subject, ...]:
        """The service that it is for whoever uses it, and the container."""
        ports = map(port_subject, args.ports)
        own = (service_subject(args.name), container_subject(args.name))
        return (*own, *ports, CONTAINERS, MEMORY)

    def undo_text(self, args: StopContainerArgs) -> str:
        """A stopped container is started again."""
        return f"docker start {args.name} (start_container)"


class ContainerStarted(Observation):
    """A container that was started again."""

    name: str

    def headline(self) -> str:
        """That it was started."""
        return f"{self.name} started"


class StartContainer(Tool[ContainerArgs, ContainerStarted]):
    """Start a stopped container again, as it was made."""

    risk = Risk.CHANGE

    def title(self, args: ContainerArgs) -> str:
        """Name it."""
        return f"Start the container {args.name} again."

    def command(self, args: ContainerArgs, call: CallContext) -> Command:
        """Return ``docker start``."""
        return docker("start", args.name, timeout_s=60.0)

    def parse(self, args: ContainerArgs, call: CallContext, result: Result) -> ContainerStarted:
        """Read that it started.

        Raises:
            ToolFailed: docker cannot be used, there is no such container, or it does not start.
        """
        if not result.ok:
            raise failure("docker start", result)
        return ContainerStarted(name=args.name)

    def subjects(self, args: ContainerArgs) -> tuple[Subject, ...]:
        """The container, and the service that it is."""
        return (service_subject(args.name), container_subject(args.name), CONTAINERS, MEMORY)

    def undo_text(self, args: ContainerArgs) -> str:
        """A started container is stopped."""
        return f"docker stop {args.name} (stop_container)"


class RemoveContainerArgs(ContainerArgs):
    """Which container."""

    force: bool = Field(default=False, description="Also when it runs: it is killed first.")


class ContainerRemoved(Observation):
    """A container that is gone."""

    name: str
    was_there: bool

    def headline(self) -> str:
        """Whether it was there at all."""
        return f"{self.name} removed" if self.was_there else f"there was no container {self.name}"


class RemoveContainer(Tool[RemoveContainerArgs, ContainerRemoved]):
    """Remove a container for good, with all it has written outside of mounts."""

    risk = Risk.DESTROY

    def command(self, args: RemoveContainerArgs, call: CallContext) -> Command:
        """Return ``docker rm``."""
        return docker("rm", *(["--force"] if args.force else []), args.name, timeout_s=60.0)

    def parse(
        self, args: RemoveContainerArgs, call: CallContext, result: Result
    ) -> ContainerRemoved:
        """Read that it is gone.

        Raises:
            ToolFailed: docker cannot be used, or the container runs and ``force`` is not set.
        """
        missing = is_missing(result) or "No such container" in result.stderr
        if not result.ok and not missing:
            raise failure("docker rm", result)
        return ContainerRemoved(name=args.name, was_there=not missing)

    def subjects(self, args: RemoveContainerArgs) -> tuple[Subject, ...]:
        """The container."""
        return (container_subject(args.name),)
