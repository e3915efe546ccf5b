"""Runs commands inside a running LXC container of another target, also on a Proxmox host."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from tools.command import Command, Ending, OnOutput, Result
from tools.connectors import inside
from tools.connectors.base import Connector
from tools.connectors.inside import Behind, Limit
from tools.connectors.ssh_start import START, new_marker, start_line
from tools.connectors.streams import ByteStream, streaming
from tools.errors import ConnectionFailed
from tools.script import script_text

Program = Literal["lxc", "pct"]
"""Who enters the container: ``lxc-attach``, or Proxmox's ``pct exec``."""

ENTER: dict[Program, tuple[str, ...]] = {
    "lxc": ("lxc-attach", "--name", "{}", "--clear-env", "--"),
    "pct": ("pct", "exec", "{}", "--"),
}
STATE: dict[Program, tuple[str, ...]] = {
    "lxc": ("lxc-info", "--name", "{}", "--state"),
    "pct": ("pct", "status", "{}"),
}
"""What is asked about a container that cannot be entered."""

END_S = 10.0
"""Limit for ending a command inside the container, or for asking what is the matter with it."""
LATE_S = 15.0
"""How much longer than the command its client on the host may take, until that is ended."""

OWN = (
    *("env", "-i", "container=lxc", "HOME=/root", "LANG=C.UTF-8"),
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
)
"""The container's own environment: that of the host, which may get through, means nothing there."""

IN_SESSION = 'command -v setsid >/dev/null 2>&1 && exec setsid sh -c "$1"; exec sh -c "$1"'
"""Gives the command a process group of its own; that of its client is not seen from inside."""

_DENIED = re.compile(r"permission denied|lack access|failed to create lock|run as root")


class Lxc:
    """A container of LXC, reached through the target that it runs on."""

    def __init__(self, container: str, via: Connector, by: Program = "lxc") -> None:
        """Take the container, and the connector of its host.

        Args:
            container: its name; with ``pct`` its number.
            via: reaches the host, as a user who may enter the container: mostly root.
            by: the program that enters it.
        """
        self._container, self._via, self._by = container, via, by

    @property
    def name(self) -> str:
        """The host's name and the container's."""
        return f"{self._via.name}/{self._container}"

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        """Run a command in the container; see ``Connector.run``.

        Words, variables and folder travel on standard input, as they do over ssh: no value is in an
        argument list. The command has begun when it has told its process id, so what the client
        says before is never taken for the command's own. When its time is over, it is ended inside
        the container with its process group, and what is left of its family is named.

        Raises:
            ConnectionFailed: the host cannot be reached, or the container not be entered.
        """
        if command.via == "connection":
            return inside.connection(self._via, self.run, command)
        if command.via != "process":
            return inside.not_possible(command)
        marker = new_marker()
        try:
            line = start_line(command, marker).decode()
        except ValueError as error:
            reason = f"{command.argv[0]}: cannot be started: {error}\n"
            return Result(Ending.EXITED, code=126, stderr=reason)
        behind = Behind(marker, on_output)
        with Limit(command.timeout_s, lambda: self._end(behind.pid)) as limit:
            try:
                client = self._client(line + (command.stdin or ""), command.timeout_s + LATE_S)
                result = behind.own(self._via.run(client, behind.feed))
            except BaseException:
                limit.cancel()
                self._end(behind.pid)
                raise
        if behind.pid is None:
            return self._not_begun(result)
        return self._ended(result, limit)

    def open_stream(self, argv: tuple[str, ...]) -> ByteStream:
        """Start a program in the container whose streams are bytes; see ``Streaming``."""
        words = (word.format(self._container) for word in ENTER[self._by])
        return streaming(self._via).open_stream((*words, *OWN, *argv))

    def close(self) -> None:
        """Close the way to the host."""
        self._via.close()

    def _client(self, stdin: str, limit_s: float) -> Command:
        words = (word.format(self._container) for word in ENTER[self._by])
        shell = ("sh", "-c", IN_SESSION, "sh", START)
        return Command((*words, *OWN, *shell), stdin, timeout_s=limit_s)

    def _end(self, pid: int | None) -> tuple[str, ...] | None:
        """End a command inside the container and name what is left; ``None`` if that failed."""
        if pid is None:
            return None
        marker = new_marker()
        asked = Command.of("sh", "-s", "--", str(pid), "end", stdin=script_text("end_command"))
        line = start_line(asked, marker).decode()
        behind = Behind(marker, None)
        try:
            client = self._client(f"{line}{asked.stdin}", END_S)
            done = behind.own(self._via.run(client, behind.feed))
        except ConnectionFailed:
            return None
        return tuple(map(str.strip, done.stdout.splitlines())) if done.ok else None

    def _ended(self, result: Result, limit: Limit) -> Result:
        """Tell how a command ended that had begun."""
        if result.ending is Ending.LOST:
            return result
        if limit.reached and limit.found is not None:
            return replace(result, ending=Ending.TIMED_OUT, code=None, survivors=limit.found)
        if limit.reached:
            reason = "its time was over, and it could not be ended in the container"
            words = f"{result.stderr}{reason}\n"
            return replace(result, ending=Ending.LOST, code=None, signal=None, stderr=words)
        if inside.has_stopped(result, lambda: "running" in self._state()):
            return inside.stopped(result)
        return result

    def _not_begun(self, result: Result) -> Result:
        """Say why the container was not entered; what it does later is not known.

        Raises:
            ConnectionFailed: it does not run, is not there, or may not be entered.
        """
        if result.ending in (Ending.TIMED_OUT, Ending.LOST):
            reason = "the container has not started it in time (is it frozen?); it may still do so"
            words = result.stderr if result.ending is Ending.LOST else f"{reason}\n"
            return replace(result, ending=Ending.LOST, code=None, stderr=words)
        said = " ".join(result.tail.split()) or result.how
        raise ConnectionFailed(self.name, f"{self._trouble(said, result.code)}: {said[-400:]}")

    def _trouble(self, said: str, code: int | None) -> str:
        """Ask the host what is the matter with the container."""
        program = ENTER[self._by][0]
        if "Failed to exec" in said:
            return "the container has no `env` and `sh` that could be started"
        if code in (126, 127):
            return f"`{program}` cannot be used on {self._via.name}; is it a host of LXC?"
        answer = self._state()
        if _DENIED.search(answer + said.lower()):
            return f"this user may not enter the container; log in to {self._via.name} as root"
        if "not exist" in answer or "doesn't exist" in answer:
            seen = "that this user sees (root's are seen by root only)"
            return f"there is no container {self._container} on {self._via.name} {seen}"
        if "stopped" in answer:
            start = "pct start" if self._by == "pct" else "lxc-start"
            return f"the container is not running; `{start} {self._container}` starts it"
        return "the container cannot be entered"

    def _state(self) -> str:
        """Return what the host says of the container, in lower case."""
        words = tuple(word.format(self._container) for word in STATE[self._by])
        asked = self._via.run(Command(words, timeout_s=END_S))
        return f"{asked.stdout}\n{asked.stderr}".lower()
