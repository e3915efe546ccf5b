"""Runs commands on a host over ssh: one connection, at most eight commands at once."""

from __future__ import annotations

import contextlib
import time

import paramiko

from tools.command import Command, Ending, OnOutput, Result
from tools.connectors import ssh_answers, ssh_config
from tools.connectors.base import Aside
from tools.connectors.ssh_command import DRAIN_AT_MOST_S, RemoteRun
from tools.connectors.ssh_connection import BROKEN, Connection
from tools.connectors.ssh_key_files import Keyring
from tools.connectors.ssh_link import Link
from tools.connectors.ssh_pool import Pool
from tools.connectors.ssh_start import new_marker, start
from tools.connectors.ssh_stream import OPEN_S, Remote
from tools.errors import ConnectionFailed
from tools.script import script_text

END_S = 8.0
"""Limit for ending a command's process group, or for naming what it left running."""


SOMETHING = "? a process that left the command's session holds its output open"
"""Said of a survivor that has no visible tie to the command."""


class Ssh:
    """A host that is reached over ssh, as the person's ssh configuration says."""

    def __init__(
        self,
        address: str,
        *,
        name: str,
        config_file: str | None = None,
        alive_s: float | None = None,
        keyring: Keyring | None = None,
        aside: Aside | None = None,
    ) -> None:
        """Take the address; nothing is connected yet.

        Args:
            address: see ``ssh_config.parse_address``.
            name: the target's name, for people and events.
            config_file: see ``ssh_config.resolve``.
            alive_s: how often the host has to answer; ``None`` takes it from the configuration.
            keyring: reads keys; ``None`` asks nobody for a passphrase.
            aside: keeps the whole of long outputs; without it only head and tail are kept.

        Raises:
            ValueError: the address has another form.
        """
        self.name, self._aside = name, aside
        place = ssh_config.parse_address(address)
        self._link = Link(name, place, config_file, alive_s, keyring)
        self._pool = Pool(self._link)

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        """Run a command; see ``Connector.run``.

        Variables of ``command.env`` travel on the channel's standard input; they are in no argument
        list on the host. A command is sent at most once: a connection that was lost before is
        opened anew, one that is lost later makes the result ``LOST``. What the host's start-up
        files print is no part of the output. An exception that comes while it runs, such as
        ``KeyboardInterrupt``, ends its process group first.

        Raises:
            ConnectionFailed: the host cannot be reached, is not known or does not let us in, or its
                login shell starts nothing.
        """
        if command.via == "connection":
            return ssh_answers.answer(self._link, self.run, command)
        if command.via == "engine":
            from tools.connectors import engine

            client = engine.over(self.open_channel, command.timeout_s)
            return engine.perform(client, command, on_output)
        marker = new_marker()
        try:
            begin = start(command, marker)
        except ValueError as error:
            reason = f"{command.argv[0]}: cannot be started: {error}\n"
            return Result(Ending.EXITED, code=126, stderr=reason)
        channel, connection = self._pool.begin(begin, command.timeout_s)
        try:
            run = RemoteRun(channel, command, marker, on_output, self._aside)
            return self._follow(run, connection)
        finally:
            channel.close()
            connection.transport.forget(channel)
            self._pool.freed()

    def open_channel(self, argv: tuple[str, ...], timeout_s: float) -> paramiko.Channel:
        """Start a program and return its streams: what it prints is next to be received.

        The channel counts among the connection's eight until the caller closes it; its timeout is
        ``timeout_s``.

        Raises:
            ConnectionFailed: the host cannot be reached, or its login shell starts nothing.
            ValueError: a word cannot be passed on.
        """
        marker = new_marker()
        begin = start(Command(argv), marker, on_stderr=False)
        channel, _ = self._pool.begin(begin, timeout_s)
        channel.settimeout(timeout_s)
        deadline = time.monotonic() + timeout_s
        seen = b""
        try:
            while not (marker.encode() in seen and seen.endswith(b"\n")):
                channel.settimeout(max(0.0, deadline - time.monotonic()))
                byte = channel.recv(1)
                if not byte:
                    raise EOFError("the login shell ended")
                seen = seen[-4096:] + byte
        except BROKEN as error:
            channel.close()
            reason = str(error) or "no answer in time"
            raise ConnectionFailed(self.name, f"cannot start `{argv[0]}`: {reason}") from error
        channel.settimeout(timeout_s)
        return channel

    def open_stream(self, argv: tuple[str, ...]) -> Remote:
        """Start a program whose streams are bytes; see ``Streaming``."""
        return Remote(self.open_channel(argv, OPEN_S), self._pool.freed)

    def close(self) -> None:
        """Close the connection, and those to the hosts on the way."""
        self._link.close()

    def _follow(self, run: RemoteRun, connection: Connection) -> Result:
        """Stay with a command until it has ended, or until its time is over."""
        begun = time.monotonic()
        survivors: tuple[str, ...] | None = ()
        try:
            run.tell(self._link.news())
            in_time = run.wait(begun + run.command.timeout_s)
            if not in_time:
                survivors = self._look_after(connection, run, "end")
            run.drain(time.monotonic() + DRAIN_AT_MOST_S)
            if in_time and run.held:
                survivors = self._look_after(connection, run, "list") or (SOMETHING,)
        except BaseException:
            run.drop()
            if not run.ended:
                self._look_after(connection, run, "end")
            raise
        finally:
            run.close()
        duration_s = time.monotonic() - begun
        if in_time:
            return self._ended(run, connection, duration_s, survivors or ())
        if run.pid is None:
            reason = "the host's login shell has not started it; it may still do so"
        elif survivors is None:
            reason = f"its time was over, and it could not be ended: {connection.why_lost}"
        else:
            return run.result(Ending.TIMED_OUT, duration_s, survivors=survivors)
        return run.result(Ending.LOST, duration_s, reason=reason)

    def _ended(
        self, run: RemoteRun, connection: Connection, duration_s: float, survivors: tuple[str, ...]
    ) -> Result:
        """Tell how a command ended that we did not end."""
        signal = connection.transport.signals.get(run.channel.chanid)
        code = run.channel.exit_status
        if run.channel.chanid in connection.transport.refused:
            raise ConnectionFailed(self.name, "the host starts no command: it refuses to")
        if code < 0 and signal is None:
            reason = f"connection lost: {connection.why_lost}"
            return run.result(Ending.LOST, duration_s, reason=reason)
        if run.pid is None:
            how = f"signal {signal}" if signal else f"exit {code}"
            said = f": {run.noise}" if run.noise else ""
            raise ConnectionFailed(
                self.name, f"the login shell there ends without starting anything ({how}){said}"
            )
        if signal is not None:
            return run.result(Ending.SIGNALED, duration_s, signal=signal, survivors=survivors)
        return run.result(Ending.EXITED, duration_s, code=code, survivors=survivors)

    def _look_after(
        self, connection: Connection, run: RemoteRun, what: str
    ) -> tuple[str, ...] | None:
        """End a command's process group, and name what runs on; ``None`` where that failed.

        Args:
            connection: that of the command; where it has no channel left, a second one is opened.
            run: the command.
            what: ``end``, or ``list`` for a command that has ended by itself.
        """
        if run.pid is None:
            return None
        script = script_text("end_command")
        command = Command.of("sh", "-s", "--", str(run.pid), what, stdin=script, timeout_s=END_S)
        marker = new_marker()
        begin = start(command, marker)
        second: Connection | None = None
        try:
            try:
                channel = connection.begin(begin, END_S)
            except paramiko.ChannelException:
                second = self._link.connect()
                channel = second.begin(begin, END_S)
            helper = RemoteRun(channel, command, marker, None)
            with contextlib.closing(helper):
                done = helper.wait(time.monotonic() + END_S)
                helper.drain(time.monotonic() + END_S)
                found = helper.result(Ending.EXITED, 0.0, code=channel.exit_status)
        except (ConnectionFailed, *BROKEN):
            return None
        finally:
            if second is not None:
                second.close()
        return (
            tuple(line.strip() for line in found.stdout.splitlines()) if done and found.ok else None
        )
