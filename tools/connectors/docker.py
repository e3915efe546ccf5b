"""Runs commands inside a running container of another target."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

from tools.command import Command, Ending, OnOutput, Result
from tools.connectors import inside
from tools.connectors.base import Connector
from tools.connectors.inside import Behind, Limit
from tools.connectors.ssh_start import START, new_marker, start_line
from tools.connectors.streams import ByteStream, streaming
from tools.docker import docker, failure
from tools.docker_run import (
    CLIENT_GRACE_S,
    EXEC_FAILED,
    LIMIT_GRACE_S,
    env_words,
    limited,
    overran,
)
from tools.errors import ConnectionFailed
from tools.script import script_text

END_S = 10.0
"""Limit for ending a command inside the container."""

_GONE_WORDS = (
    r"(Error response from daemon: |Error: )(No such container|Container \S+ is (not running"
    r"|restarting|paused)|container \S+ is not running).*"
)
_GONE = re.compile(rf"^{_GONE_WORDS}", re.M | re.I)
_NO_SHELL = re.compile(rf'^{EXEC_FAILED}.*exec: "sh": ', re.M)
_CLIENT_SAYS = re.compile(
    rf"(WARNING: .*\n)*({_GONE_WORDS}|{EXEC_FAILED}|Cannot connect to the Docker daemon"
    r"|failed to connect to the docker API|(Got )?permission denied while trying to connect"
    r"|error during connect|(.*\bexec: (line \d+: )?)?docker: not found)",
    re.I,
)


class Docker:
    """A container, reached through the target that its engine runs on."""

    def __init__(self, container: str, via: Connector) -> None:
        """Take the container's name or id, and the connector of its host."""
        self._container, self._via = container, via

    @property
    def name(self) -> str:
        """The host's name and the container's."""
        return f"{self._via.name}/{self._container}"

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        """Run a command in the container; see ``Connector.run``.

        Words, variables and folder travel on standard input, as they do over ssh. When its time is
        over, the command is ended in the container with its process group, and what is left of its
        family there is named. ``timeout`` (coreutils or busybox), which the container needs besides
        ``sh``, ends it where we no longer can.

        Raises:
            ConnectionFailed: the host cannot be reached, or the container does not run.
        """
        if command.via == "connection":
            return inside.connection(self._via, self.run, command)
        if command.via != "process":
            return inside.not_possible(command)
        marker = new_marker()
        bounded = replace(command, argv=limited(command.argv, command.timeout_s + CLIENT_GRACE_S))
        try:
            line = start_line(bounded, marker).decode()
        except ValueError as error:
            reason = f"{command.argv[0]}: cannot be started: {error}\n"
            return Result(Ending.EXITED, code=126, stderr=reason)
        behind = Behind(marker, on_output)
        client = self._client(line + (command.stdin or ""), command.timeout_s + CLIENT_GRACE_S)
        with Limit(command.timeout_s, lambda: self._end(behind.pid)) as limit:
            try:
                result = behind.own(self._via.run(client, behind.feed))
            except BaseException:
                limit.cancel()
                self._end(behind.pid)
                raise
        if result.ending is Ending.LOST:
            return result
        if limit.reached:
            return self._late(result, behind.pid, limit.found)
        if behind.pid is None:
            raise ConnectionFailed(self.name, _not_begun(result))
        return inside.stopped(result) if inside.has_stopped(result, self._runs) else result

    def _client(self, stdin: str, limit_s: float) -> Command:
        """Run ``START`` there; the engine gives a program a session of its own."""
        shell = shlex.split(START.removeprefix("exec "))
        words = ("exec", "--interactive", self._container, *shell)
        return docker(*words, stdin=stdin, timeout_s=limit_s)

    def _runs(self) -> bool:
        words = ("inspect", "--format", "{{.State.Running}}", self._container)
        return self._via.run(docker(*words)).stdout.strip() == "true"

    def _end(self, pid: int | None) -> tuple[str, ...] | None:
        """End a command in the container and name what is left; ``None`` if that failed."""
        if pid is None:
            return None
        words = ("exec", "--interactive", self._container, "sh", "-s", "--", str(pid), "end")
        script = script_text("end_command")
        try:
            done = self._via.run(docker(*words, stdin=script, timeout_s=END_S))
        except ConnectionFailed:
            return None
        return tuple(map(str.strip, done.stdout.splitlines())) if done.ok else None

    def _late(self, result: Result, pid: int | None, found: tuple[str, ...] | None) -> Result:
        """Tell of a command whose time was over, and whether it was ended."""
        if found is not None:
            return replace(result, ending=Ending.TIMED_OUT, code=None, survivors=found)
        reason = "its time was over, and it could not be ended in the container"
        if pid is None:
            reason = "the container has not started it in time; it may still do so"
        words = f"{result.stderr}{reason}\n"
        return replace(result, ending=Ending.LOST, code=None, signal=None, stderr=words)

    def open_stream(self, argv: tuple[str, ...]) -> ByteStream:
        """Start a program in the container whose streams are bytes; see ``Streaming``."""
        words = docker("exec", "--interactive", self._container, *argv).argv
        return streaming(self._via).open_stream(words)

    def close(self) -> None:
        """Close the way to the host."""
        self._via.close()


def _not_begun(result: Result) -> str:
    """Say why the container was not entered, in docker's own words."""
    if gone := _GONE.search(result.stderr):
        return gone.group()
    if _NO_SHELL.search(result.stdout + result.stderr):
        return "the container has no `sh` that could be started"
    return str(failure("docker exec", result))


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


def exec_result(command: Command, result: Result) -> Result:
    """Return what came of a command of ``exec_command``: it may have ended by its limit there."""
    limit_s = command.timeout_s - LIMIT_GRACE_S - CLIENT_GRACE_S
    if overran(result, limit_s):
        return replace(result, ending=Ending.TIMED_OUT, code=None)
    return result


def require_begun(container: str, result: Result) -> None:
    """Refuse docker's own failure in the place of what came of a command of ``exec_command``.

    No marker tells the two apart there, so the words do, where nothing else was written.

    Raises:
        ToolFailed: docker did not start the command.
    """
    if result.ok or result.ending is not Ending.EXITED or (result.stdout and result.stderr):
        return
    said = _CLIENT_SAYS.match(result.stdout + result.stderr)
    other = re.search(r"No such container: (\S+)", result.stderr)
    if said and (other is None or other[1] == container):
        raise failure(f"docker exec {container}", result)
