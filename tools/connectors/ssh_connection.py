"""One ssh connection to a host: opened, checked, logged in, and watched while it is open."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import paramiko
from paramiko.common import MSG_CHANNEL_REQUEST

from tools.connectors.host_keys import HostKey, HostKeyRefused, is_known, preferred, read_known
from tools.connectors.ssh_config import SshSettings
from tools.connectors.ssh_keys import LoginRefused, log_in
from tools.errors import ConnectionFailed

CONNECT_S = 15.0
"""Limit for each step of connecting: TCP, greeting, key exchange, login."""
ALIVE_S = 10.0
"""How often a host has to answer, where the configuration says nothing."""

# Without a handler Python prints paramiko's tracebacks to people's terminals.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

BROKEN = (paramiko.SSHException, EOFError, OSError)
"""What paramiko raises when a connection breaks."""


class Stream(Protocol):
    """What a transport talks through: a socket, a channel of another connection, a program."""

    def close(self) -> object:
        """Let go of it."""
        ...


_HANDLERS: dict[int, Callable[..., None]] = vars(paramiko.Transport)["_channel_handler_table"]
"""What paramiko does with messages about a channel; it has no public way to add to it."""


def _read_request(channel: paramiko.Channel, message: paramiko.Message) -> None:
    transport = channel.get_transport()
    if isinstance(transport, Transport):
        transport.read_request(channel, message)


class Transport(paramiko.Transport):
    """A transport that also reads which signal ended a command (RFC 4254, 6.10).

    paramiko ignores that message. A command's exit code is then missing, and the signal's name is
    in ``signals`` under the channel's id.
    """

    _channel_handler_table: ClassVar[dict[int, Callable[..., None]]] = {
        **_HANDLERS,
        MSG_CHANNEL_REQUEST: _read_request,
    }

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.signals: dict[int, str] = {}

    def read_request(self, channel: paramiko.Channel, message: paramiko.Message) -> None:
        """Take the name of a signal; everything else is paramiko's."""
        start = message.packet.tell()
        if message.get_text() == "exit-signal":
            message.get_boolean()
            self.signals[channel.chanid] = f"SIG{message.get_text()}"
            channel.status_event.set()
        else:
            message.packet.seek(start)
            _HANDLERS[MSG_CHANNEL_REQUEST](channel, message)


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
        self._opening = threading.Lock()
        """paramiko keeps one error a transport: at once, two refusals would be taken for one."""
        threading.Thread(target=self._watch, name="ssh-alive", daemon=True).start()

    @property
    def active(self) -> bool:
        """Whether it can be used, as far as is known."""
        return self.transport.is_active()

    @property
    def why_lost(self) -> str:
        """Why it can no longer be used, for people."""
        error = self.transport.get_exception()
        return self.lost or (str(error) if error else "the host closed the connection")

    def session(self, limit_s: float) -> paramiko.Channel:
        """Open a channel for a command.

        Raises:
            paramiko.ChannelException: the host refuses it.
            paramiko.SSHException: the connection is broken.
            EOFError: likewise.
            OSError: likewise.
        """
        with self._opening:
            return self.transport.open_session(timeout=limit_s)

    def close(self) -> None:
        """Close it; it may be called twice."""
        self._closing.set()
        shut(self.transport)

    def _watch(self) -> None:
        """Ask for an answer again and again; hosts answer in order, so silence means all hang."""
        while not self._closing.wait(self._alive_s) and self.active:
            timer = threading.Timer(self._silent_s, self._give_up)
            timer.daemon = True
            timer.start()
            try:
                self.transport.global_request("keepalive@openssh.com", wait=True)
            except BROKEN:
                self.transport.close()
            finally:
                timer.cancel()

    def _give_up(self) -> None:
        self.lost = f"the host has been silent for {self._alive_s + self._silent_s:.0f} s"
        shut(self.transport)


def greet(name: str, settings: SshSettings, dial: Callable[[], Stream]) -> Transport:
    """Begin a connection up to where the host has proved that it holds its host key.

    Args:
        name: the target, for errors.
        settings: which host; its known keys decide which of its keys it is asked for.
        dial: opens the way to it.

    Raises:
        ConnectionFailed: there is no ssh server, or none we have a common language with.
    """
    where = f"{settings.host} port {settings.port}"
    try:
        stream = dial()
    except (OSError, paramiko.SSHException) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConnectionFailed(name, f"cannot connect to {where}: {reason}") from error
    try:
        transport = Transport(stream)
        limit_s = settings.connect_timeout_s or CONNECT_S
        transport.banner_timeout = transport.handshake_timeout = limit_s
        transport.auth_timeout = limit_s
        options = transport.get_security_options()
        known = read_known((*settings.known_hosts, *settings.global_known_hosts))
        options.key_types = preferred(options.key_types, settings.known_as, known)
        transport.start_client(timeout=3 * limit_s)  # the other two limits come before this one
        if not transport.initial_kex_done:
            raise paramiko.SSHException("it does not finish the key exchange")
    except BROKEN as error:
        shut(transport)
        stream.close()
        reason = str(error) or "it closed the connection"
        raise ConnectionFailed(name, f"no ssh server answers at {where}: {reason}") from error
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
    name: str, settings: SshSettings, transport: Transport, alive_s: float | None = None
) -> Connection:
    """Log in on a host whose key was checked; the transport is closed where that fails.

    Raises:
        ConnectionFailed: the host does not let us in.
    """
    try:
        log_in(transport, settings)
    except (LoginRefused, *BROKEN) as error:
        shut(transport)
        reason = str(error) or "it closed the connection"
        raise ConnectionFailed(
            name, f"{settings.user}@{settings.host} does not let us in: {reason}"
        ) from error
    interval = alive_s or settings.alive_interval_s or ALIVE_S
    silent_s = interval * max(1, settings.alive_count - 1)
    return Connection(transport, settings, interval, silent_s)


def shut(transport: paramiko.Transport) -> None:
    """Close a transport and what it talks through, whatever state it is in."""
    transport.close()
    transport.sock.close()
