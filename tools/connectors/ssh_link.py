"""The way to one host: its connection, opened when it is needed and anew when it was lost.

A connection is opened anew only for a command that has not begun. It is tried some times with
growing waits, and the host has to show the key that it had before.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

from tools.connectors import ssh_config, ssh_dial
from tools.connectors.host_keys import HostKey
from tools.connectors.ssh_config import Address, SshSettings
from tools.connectors.ssh_connection import (
    CONNECT_S,
    Connection,
    Stream,
    Unreached,
    check,
    enter,
    greet,
    presented,
    shut,
)
from tools.connectors.ssh_key_files import Keyring
from tools.connectors.ssh_transport import Transport
from tools.errors import ConnectionFailed

MAX_HOPS = 8
"""How many hosts there may be on the way to another one."""
REOPEN_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Waits before further attempts to open a connection anew that was lost."""
AGAIN_S = (0.2, 0.5, 1.0)
"""Likewise for a host that hangs up on a first connection, as busy ones do (MaxStartups)."""


class Link:
    """The connection to a host that all its commands share, hosts on the way included."""

    def __init__(
        self,
        name: str,
        address: Address,
        config_file: str | None = None,
        alive_s: float | None = None,
        keyring: Keyring | None = None,
        hops: tuple[str, ...] | None = None,
        depth: int = 0,
    ) -> None:
        """Take the address; nothing is connected yet.

        Args:
            name: the target's name, for people.
            address: the host.
            config_file: see ``ssh_config.resolve``.
            alive_s: how often the host has to answer; ``None`` takes it from the configuration.
            keyring: reads keys; ``None`` asks nobody for a passphrase.
            hops: hosts on the way, instead of what the configuration says.
            depth: how many hosts this one is on the way of.
        """
        self.name = name
        self._address, self._config_file = address, config_file
        self._alive_s, self._hops, self._depth = alive_s, hops, depth
        self._keyring = keyring or Keyring()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._connection: Connection | None = None
        self._way: Link | None = None
        self._entered: HostKey | None = None
        self._until: float | None = None
        self._news: list[str] = []

    def greet(self) -> tuple[SshSettings, Transport]:
        """Begin a connection up to where the host has proved that it holds its host key.

        Raises:
            ConnectionFailed: it cannot be reached.
        """
        settings = ssh_config.resolve(self._address, self._config_file)
        kind = self._entered.kind if self._entered else ""
        return settings, greet(self.name, settings, lambda: self._dial(settings), kind)

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
            settings, key, self._connection = self._persist(None)
            return settings, key, self._connection is not None

    def connect(self) -> Connection:
        """Open a connection of its own, checked and logged in, in one attempt.

        Raises:
            ConnectionFailed: as ``look``; or the host's key is not known.
        """
        return self._known(*self._open())

    def connection(self, until: float | None = None) -> Connection:
        """Return the shared connection; a lost one is opened anew.

        Args:
            until: when nobody waits for it any more, by the monotonic clock.

        Raises:
            ConnectionFailed: see ``connect``.
        """
        with self._lock:
            if self._connection is not None and not self._connection.active:
                self._news.append(f"the connection was lost: {self._connection.why_lost}")
                self._connection.close()
                self._connection = None
            if self._connection is None:
                self._connection = self._known(*self._persist(until))
            return self._connection

    def trusted(self) -> None:
        """Take it that a person has trusted another key of the host, which it may have from now."""
        self._entered = None

    def news(self) -> Iterator[str]:
        """Yield what happened to the connection since the last time, for people."""
        while self._news:
            yield self._news.pop(0)

    def close(self) -> None:
        """Close the connection, and those to the hosts on the way."""
        self._closing.set()
        with self._lock:
            self._closing.clear()
            connection, self._connection = self._connection, None
            way, self._way = self._way, None
        if connection is not None:
            connection.close()
        if way is not None:
            way.close()

    def _persist(self, until: float | None) -> tuple[SshSettings, HostKey, Connection | None]:
        """Open a connection in as many attempts as make sense."""
        before, self._until = self._entered, until
        waits = (*(AGAIN_S if before is None else REOPEN_S), None)
        begun = time.monotonic()
        for number, wait in enumerate(waits, 1):
            try:
                opened = self._open()
                break
            except Unreached as error:
                wait_s = wait and wait * random.uniform(0.75, 1.25)  # noqa: S311 - not a secret
                if wait_s is None or not self._worth_it(error, wait_s, until):
                    if number == 1:
                        raise
                    took = f"(tried {number} times in {time.monotonic() - begun:.0f} s)"
                    raise Unreached(self.name, f"{error.reason} {took}") from error
        if before is not None:
            tries = f"{number} attempts" if number > 1 else "one attempt"
            seconds = time.monotonic() - begun
            self._news.append(f"connected to the same host again, {tries}, {seconds:.1f} s")
        return opened

    def _worth_it(self, error: Unreached, wait_s: float, until: float | None) -> bool:
        """Wait, unless another attempt would make no sense, or nobody would wait for it."""
        if self._entered is None and not error.hung_up:
            return False
        if until is not None and time.monotonic() + wait_s > until:
            return False
        return not self._closing.wait(wait_s)

    def _open(self) -> tuple[SshSettings, HostKey, Connection | None]:
        settings, transport = self.greet()
        try:
            key = presented(transport)
            known = check(self.name, settings, key)
            self._need_same(key)
        except ConnectionFailed:
            shut(transport)
            raise
        if not known:
            shut(transport)
            return settings, key, None
        connection = enter(self.name, settings, transport, self._alive_s, self._keyring)
        self._entered = key
        return settings, key, connection

    def _need_same(self, key: HostKey) -> None:
        if self._entered not in (None, key):
            before = self._entered.fingerprint if self._entered else ""
            raise ConnectionFailed(
                self.name,
                f"IT IS NOT THE HOST OF BEFORE: it presents {key.kind} {key.fingerprint}, and had "
                f"{before} when this run connected to it. Find out which host answers there",
            )

    def _known(
        self, settings: SshSettings, key: HostKey, connection: Connection | None
    ) -> Connection:
        if connection is None:
            raise ConnectionFailed(
                self.name,
                f"the host key of {settings.host} port {settings.port} is not known: "
                f"{key.kind} {key.fingerprint}. Compare it with what the host's owner says "
                "(there: ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub), then trust it",
            )
        return connection

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
            self._way = Link(
                self.name,
                address,
                self._config_file,
                self._alive_s,
                self._keyring,
                hops[:-1] or None,
                self._depth + 1,
            )
        try:
            transport = self._way.connection(self._until).transport
        except ConnectionFailed as error:  # it has been tried often enough
            reason = f"by way of {hops[-1]}: {error.reason}"
            raise ConnectionFailed(self.name, reason) from error
        place = (settings.host, settings.port)
        return transport.open_channel("direct-tcpip", place, ("127.0.0.1", 0), timeout=limit_s)
