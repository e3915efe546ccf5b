"""Runs commands inside a running container of another target."""

from __future__ import annotations

import re
from dataclasses import replace

from tools.command import Command, Ending, OnOutput, Result
from tools.connectors.base import Connector
from tools.docker import docker
from tools.docker_run import CLIENT_GRACE_S, LIMIT_GRACE_S, env_words, limited, overran
from tools.errors import ConnectionFailed

_GONE = re.compile(
    r"^(Error response from daemon: |Error: )(No such container|Container \S+ is (not running"
    r"|restarting|paused)|container \S+ is not running).*",
    re.M | re.I,
)


class Docker:
    """A container, reached through the target that its engine runs on."""

    def __init__(self, container: str, via: Connector) -> None:
        """Take the container's name or id, and the connector of its host, which stays open."""
        self._container, self._via = container, via

    @property
    def name(self) -> str:
        """The host's name and the container's."""
        return f"{self._via.name}/{self._container}"

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        """Run a command in the container; see ``Connector.run``.

        The container needs ``timeout`` (coreutils or busybox): it ends the command's process group
        there when its time is over. What has left that group by itself is not found.

        Raises:
            ConnectionFailed: the host cannot be reached, or the container does not run.
        """
        if command.via != "process":
            reason = f"{command.argv[0]}: via {command.via} is not possible in a container\n"
            return Result(Ending.EXITED, code=126, stderr=reason)
        result = self._via.run(exec_command(self._container, command), on_output)
        if overran(result, command.timeout_s):
            return replace(result, ending=Ending.TIMED_OUT, code=None)
        gone = _GONE.search(result.stderr) if result.code == 1 else None
        if gone:
            raise ConnectionFailed(self.name, gone.group())
        return result

    def close(self) -> None:
        """Nothing is held."""


def exec_command(container: str, command: Command) -> Command:
    """Return the command that runs another one in a container, with a time limit inside it.

    Variables travel as the client's own (``--env NAME``), so that their values are in no argument
    list.
    """
    set_words, carried = env_words(command.env)
    words = ["exec", *(["--interactive"] if command.stdin is not None else []), *set_words]
    if command.cwd is not None:
        words += ["--workdir", command.cwd]
    return docker(
        *words,
        container,
        *limited(command.argv, command.timeout_s),
        stdin=command.stdin,
        env=carried,
        timeout_s=command.timeout_s + LIMIT_GRACE_S + CLIENT_GRACE_S,
    )
