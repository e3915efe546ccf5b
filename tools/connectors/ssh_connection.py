"""One ssh connection to a host: opened, checked, logged in, and watched while it is open."""

from __future__ import annotations

import logging
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Protocol

import paramiko

from tools.connectors.host_keys import HostKey, HostKeyRefused, is_known, preferred, read_known
from tools.connectors.ssh_config import SshSettings
from tools.connectors.ssh_key_files import Keyring
from tools.connectors.ssh_keys import ALONE, LoginRefused, log_in
from tools.connectors.ssh_reserve import Reserve
from tools.connectors.ssh_start import Start
from tools.connectors.ssh_transport import Transport
from tools.errors import ConnectionFailed

CONNECT_S = 15.0
"""Limit for each step of connecting: TCP, greeting, key exchange, login."""
ALIVE_S = 10.0
"""How often a host has to answer, where the configuration says nothing."""
FRESH_S = 2.0
"""A host that answered so lately is taken to be there; else it is asked before a command goes."""

# Without a handler Python prints paramiko's tracebacks to people's terminals.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

BROKEN = (paramiko.SSHException, EOFError, OSError)
"""What paramiko raises when a connection breaks."""


class Unreached(ConnectionFailed):
    """Nobody has answered, or the host has hung up: another attempt may go well."""

    def __init__(self, target: str, reason: str, *, hung_up: bool = False) -> None:
        """Say why, and whether a host was there and has hung up."""
        super().__init__(target, reason)
        self.hung_up = hung_up


class Stream(Protocol):
    """What a transport talks through: a socket, a channel of another connection, a program."""

    def close(self) -> object:
        """Let go of it."""
        ...


class Connection:
    """A connection whose host key is known and that is logged in."""

    def __init__(
        self, transport: Transport, settings: SshSettings, alive_s: float, silent_s: float
    ) -> None:
        """Watch over a transport.

        Args:
            transport: logged in.
            settings: by which it was opened.
            alive_s: how often the host has to answer.
            silent_s: how long an answer may take; then the connection is given up.
        """
        self.transport, self.settings = transport, settings
        self.lost = ""
        """Why it was given up."""
        self._alive_s, self._silent_s = alive_s, silent_s
        self._closing = threading.Event()
        self.reserve = Reserve(transport)
        threading.Thread(target=self._watch, name="ssh-alive", daemon=True).start()

    @property
    def active(self) -> bool:
        """Whether it can be used, as far as is known."""
        return self.transport.is_active() and not hung_up(self.transport)

    @property
    def why_lost(self) -> str:
        """Why it can no longer be used, for people."""
        error = self.transport.get_exception()
        return self.lost or (str(error) if error else "the host closed the connection")

    def begin(self, start: Start, limit_s: float, places: int = 0) -> paramiko.Channel:
        """Send a command on a channel of its own; what raises was not sent to its end, and not run.

        A bare command is sent without waiting for anything where a channel is in reserve. A host
        that was not heard of lately has to open a new channel first, which shows that it is there.

        Args:
            start: the command.
            limit_s: limit in seconds for each answer of the host.
            places: how many channels may be in reserve afterwards.

        Raises:
            paramiko.ChannelException: the host refuses a channel.
            paramiko.SSHException: the connection is broken, or the host starts nothing.
            EOFError: likewise.
            OSError: likewise.
        """
        channel = self._channel(limit_s)
        try:
            self.transport.ask_start(channel, start.request)
            if start.line:
                self.transport.await_start(channel, limit_s)
                channel.settimeout(limit_s)
                channel.sendall(start.line)
        except BaseException:
            channel.close()
            raise
        self._reserve(places)
        return channel

    def close(self) -> None:
        """Close it; it may be called twice."""
        self._closing.set()
        shut(self.transport)

    def _channel(self, limit_s: float) -> paramiko.Channel:
        heard_s = time.monotonic() - self.transport.heard_at
        opening = self.reserve.take() if heard_s < FRESH_S else None
        try:
            return self.transport.await_open(opening or self.transport.ask_open(), limit_s)
        except paramiko.ChannelException:  # so it is there
            opening = self.reserve.take()
            if opening is None:
                raise
            return self.transport.await_open(opening, limit_s)

    def _reserve(self, places: int) -> None:
        """Ask for channels that later commands will need; a connection that is lost shows there."""
        try:
            self.reserve.fill(places)
        except BROKEN:
            return

    def _watch(self) -> None:
        """Ask for an answer again and again; hosts answer in order, so silence means all hang."""
        while not self._closing.wait(self._alive_s) and self.active:
            self.reserve.close_idle()
            timer = threading.Timer(self._silent_s, self._give_up)
            timer.daemon = True
            timer.start()
            try:
                self.transport.global_request("keepalive@openssh.com", wait=True)
                self.transport.heard_at = time.monotonic()
            except BROKEN:
                self.transport.close()
            finally:
                timer.cancel()

    def _give_up(self) -> None:
        self.lost = f"the host has been silent for {self._alive_s + self._silent_s:.0f} s"
        shut(self.transport)


def greet(
    name: str, settings: SshSettings, dial: Callable[[], Stream], kind: str = ""
) -> Transport:
    """Begin a connection up to where the host has proved that it holds its host key.

    Args:
        name: the target, for errors.
        settings: which host; its known keys decide which of its keys it is asked for.
        dial: opens the way to it.
        kind: of the key that it is to show, where it was connected to before.

    Raises:
        Unreached: there is no ssh server, or none we have a common language with.
    """
    where = f"{settings.host} port {settings.port}"
    try:
        stream = dial()
    except (OSError, paramiko.SSHException) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Unreached(name, f"cannot connect to {where}: {reason}") from error
    begun = time.monotonic()
    limit_s = settings.connect_timeout_s or CONNECT_S
    try:
        transport = Transport(stream)
        transport.banner_timeout = transport.handshake_timeout = limit_s
        transport.auth_timeout = limit_s
        options = transport.get_security_options()
        options.ciphers = sorted(options.ciphers, key=lambda name: "gcm" not in name)  # fastest
        known = read_known((*settings.known_hosts, *settings.global_known_hosts))
        options.key_types = preferred(options.key_types, settings.known_as, known, kind)
        transport.start_client(timeout=3 * limit_s)  # the other two limits come before this one
        if not transport.initial_kex_done:
            raise paramiko.SSHException("it does not finish the key exchange")
    except BROKEN as error:
        shut(transport)
        stream.close()
        reason = str(error) or "it closed the connection"
        raise Unreached(
            name,
            f"no ssh server answers at {where}: {reason}",
            hung_up=time.monotonic() - begun < limit_s / 2,
        ) from error
    return transport


def presented(transport: paramiko.Transport) -> HostKey:
    """Return the key that a host has proved to hold."""
    key = transport.get_remote_server_key()
    return HostKey(key.get_name(), key.asbytes())


def check(name: str, settings: SshSettings, key: HostKey) -> bool:
    """Whether a host key is known; ``False`` for the key of a host that was never seen.

    Raises:
        ConnectionFailed: the key is revoked, or another one than the last time.
    """
    known = read_known((*settings.known_hosts, *settings.global_known_hosts))
    try:
        return is_known(settings.known_as, key, known)
    except HostKeyRefused as error:
        raise ConnectionFailed(name, f"{settings.host}: {error}") from error


def enter(
    name: str,
    settings: SshSettings,
    transport: Transport,
    alive_s: float | None = None,
    keyring: Keyring = ALONE,
) -> Connection:
    """Log in on a host whose key was checked; the transport is closed where that fails.

    Raises:
        ConnectionFailed: the host does not let us in; ``Unreached`` where it has hung up.
    """
    refused = f"{settings.user}@{settings.host} does not let us in"
    try:
        log_in(transport, settings, keyring)
    except LoginRefused as error:
        shut(transport)
        raise ConnectionFailed(name, f"{refused}: {error}") from error
    except BROKEN as error:
        shut(transport)
        reason = str(error) or "it closed the connection"
        raise Unreached(name, f"{refused}: {reason}", hung_up=True) from error
    except BaseException:
        shut(transport)
        raise
    interval = alive_s or settings.alive_interval_s or ALIVE_S
    silent_s = interval * max(1, settings.alive_count - 1)
    return Connection(transport, settings, interval, silent_s)


def hung_up(transport: paramiko.Transport) -> bool:
    """Whether the other end has closed a connection, though nobody has read that yet.

    A host on the way that has hung up counts, too.
    """
    stream: object = transport.sock
    if isinstance(stream, paramiko.Channel):
        ended = bool(stream.closed or stream.eof_received)
        return ended or hung_up(stream.get_transport())
    if not isinstance(stream, socket.socket) or stream.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(stream, getattr(select, "POLLRDHUP", 0))
    return bool(poll.poll(0))


def shut(transport: paramiko.Transport) -> None:
    """Close a transport and what it talks through, whatever state it is in."""
    transport.close()
    transport.sock.close()
