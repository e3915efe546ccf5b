"""The one connection to a host that all commands share, and the places on it."""

from __future__ import annotations

import threading
import time

import paramiko

from tools.connectors import ssh_config, ssh_dial
from tools.connectors.host_keys import HostKey
from tools.connectors.ssh_command import START
from tools.connectors.ssh_config import Address, SshSettings
from tools.connectors.ssh_connection import (
    BROKEN,
    CONNECT_S,
    Connection,
    Stream,
    Transport,
    check,
    enter,
    greet,
    presented,
    shut,
)
from tools.errors import ConnectionFailed

CHANNELS = 8
"""Commands at once on a connection; sshd allows ten, and two are for ending commands."""
MAX_HOPS = 8
"""How many hosts there may be on the way to another one."""
POLL_S = 0.05
"""How often it is looked whether a channel that someone else holds was closed."""

REFUSED_S = 1.0
"""How long a host may refuse channels while we have none; it counts one that was just closed."""


class Pool:
    """Opens the connection when it is first needed, and anew when it was lost between commands."""

    def __init__(
        self,
        name: str,
        address: Address,
        config_file: str | None = None,
        alive_s: float | None = None,
        hops: tuple[str, ...] | None = None,
        depth: int = 0,
    ) -> None:
        """Take the address; nothing is connected yet.

        Args:
            name: the target's name, for people.
            address: the host.
            config_file: see ``ssh_config.resolve``.
            alive_s: how often the host has to answer; ``None`` takes it from the configuration.
            hops: hosts on the way, instead of what the configuration says.
            depth: how many hosts this one is on the way of.
        """
        self.name = name
        self._address, self._config_file = address, config_file
        self._alive_s, self._hops, self._depth = alive_s, hops, depth
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._way: Pool | None = None
        self._changed = threading.Condition()
        self._reserved = 0
        self._held: list[paramiko.Channel] = []

    def greet(self) -> tuple[SshSettings, Transport]:
        """Begin a connection up to where the host has proved that it holds its host key.

        Raises:
            ConnectionFailed: it cannot be reached.
        """
        settings = ssh_config.resolve(self._address, self._config_file)
        return settings, greet(self.name, settings, lambda: self._dial(settings))

    def look(self) -> tuple[SshSettings, HostKey, bool]:
        """Return the host's settings, its key, and whether that is known.

        A known host is entered, and the connection is kept for commands.

        Raises:
            ConnectionFailed: it cannot be reached, has another key than it had, or does not let us
                in.
        """
        with self._lock:
            if self._connection is not None and self._connection.active:
                return self._connection.settings, presented(self._connection.transport), True
            settings, key, self._connection = self._open()
            return settings, key, self._connection is not None

    def connect(self) -> Connection:
        """Open a connection of its own, checked and logged in.

        Raises:
            ConnectionFailed: as ``look``; or the host's key is not known.
        """
        settings, key, connection = self._open()
        if connection is None:
            raise ConnectionFailed(
                self.name,
                f"the host key of {settings.host} port {settings.port} is not known: "
                f"{key.kind} {key.fingerprint}. Compare it with what the host's owner says "
                "(there: ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub), then trust it",
            )
        return connection

    def connection(self) -> Connection:
        """Return the shared connection; a lost one is opened anew.

        Raises:
            ConnectionFailed: see ``connect``.
        """
        with self._lock:
            if self._connection is not None and not self._connection.active:
                self._connection.close()
                self._connection = None
            if self._connection is None:
                self._connection = self.connect()
            return self._connection

    def begin(self, wait_s: float) -> tuple[paramiko.Channel, Connection]:
        """Return a channel on which the host's login shell was asked to ``START``.

        Nothing of a command was sent yet, so a connection that turns out to be lost is opened anew,
        once. The channel gives its place back by being closed.

        Args:
            wait_s: how long to wait for a place, and for a host that allows fewer channels.

        Raises:
            ConnectionFailed: see ``connect``; or no channel can be had.
        """
        deadline = time.monotonic() + wait_s
        channel = None
        self._reserve(deadline)
        try:
            try:
                channel, connection = self._start(deadline)
            except BROKEN:
                channel, connection = self._start(deadline)
        except BROKEN as error:
            reason = str(error) or "it closed the connection"
            raise ConnectionFailed(self.name, f"the host starts no command: {reason}") from error
        finally:
            self._fill(channel)
        return channel, connection

    def freed(self) -> None:
        """Let those who wait for a place look again: a channel was closed."""
        with self._changed:
            self._changed.notify()

    def close(self) -> None:
        """Close the connection, and those to the hosts on the way."""
        with self._lock:
            connection, self._connection = self._connection, None
            way, self._way = self._way, None
        if connection is not None:
            connection.close()
        if way is not None:
            way.close()

    def _open(self) -> tuple[SshSettings, HostKey, Connection | None]:
        settings, transport = self.greet()
        try:
            key = presented(transport)
            known = check(self.name, settings, key)
        except ConnectionFailed:
            shut(transport)
            raise
        if known:
            return settings, key, enter(self.name, settings, transport, self._alive_s)
        shut(transport)
        return settings, key, None

    def _start(self, deadline: float) -> tuple[paramiko.Channel, Connection]:
        connection = self.connection()
        idle_since = time.monotonic()
        while True:
            asked = time.monotonic()
            try:
                channel = connection.session(CONNECT_S)
                channel.exec_command(START)
                return channel, connection
            except paramiko.ChannelException:
                now = time.monotonic()
                with self._changed:
                    idle_since = now if self._in_use() else idle_since
                if now > deadline or now > idle_since + REFUSED_S:
                    raise
                time.sleep(POLL_S)
            except BROKEN:
                if time.monotonic() - asked >= CONNECT_S:
                    connection.close()  # no answer at all: the host is gone
                raise

    def _reserve(self, deadline: float) -> None:
        with self._changed:
            while self._reserved + self._in_use() >= CHANNELS:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ConnectionFailed(
                        self.name, f"{CHANNELS} commands run there already; none ended in time"
                    )
                self._changed.wait(min(left, POLL_S))
            self._reserved += 1

    def _fill(self, channel: paramiko.Channel | None) -> None:
        with self._changed:
            self._reserved -= 1
            if channel is not None:
                self._held.append(channel)
            self._changed.notify()

    def _in_use(self) -> int:
        self._held = [channel for channel in self._held if not channel.closed]
        return len(self._held)

    def _dial(self, settings: SshSettings) -> Stream:
        limit_s = settings.connect_timeout_s or CONNECT_S
        hops = settings.proxy_jump if self._hops is None else self._hops
        if hops:
            return self._by_way_of(hops, settings, limit_s)
        if settings.proxy_command and self._hops is None:
            return ssh_dial.ProxyProgram(settings.proxy_command)
        return ssh_dial.tcp(settings, limit_s)

    def _by_way_of(self, hops: tuple[str, ...], settings: SshSettings, limit_s: float) -> Stream:
        if self._depth >= MAX_HOPS:
            raise ConnectionFailed(self.name, f"more than {MAX_HOPS} hosts on the way to it")
        if self._way is None:
            try:
                address = ssh_config.parse_address(hops[-1])
            except ValueError as error:
                raise ConnectionFailed(self.name, f"ProxyJump: {error}") from error
            before = hops[:-1] or None
            self._way = Pool(
                self.name, address, self._config_file, self._alive_s, before, self._depth + 1
            )
        try:
            transport = self._way.connection().transport
        except ConnectionFailed as error:
            reason = f"by way of {hops[-1]}: {error.reason}"
            raise ConnectionFailed(self.name, reason) from error
        place = (settings.host, settings.port)
        return transport.open_channel("direct-tcpip", place, ("127.0.0.1", 0), timeout=limit_s)
