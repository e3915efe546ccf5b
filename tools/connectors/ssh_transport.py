"""An ssh transport that asks for session channels ahead of their use, and waits for no reply.

paramiko opens a channel and starts a program on it with a round trip each. Here both are asked for
without waiting: the answers come while other things are done, and are looked at where they matter.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

import paramiko
from paramiko.common import (
    MSG_CHANNEL_FAILURE,
    MSG_CHANNEL_REQUEST,
    cMSG_CHANNEL_OPEN,
    cMSG_CHANNEL_REQUEST,
)

POLL_S = 0.1
"""How often it is looked whether the connection was lost, while an answer is waited for."""

_HANDLERS: dict[int, Callable[..., None]] = vars(paramiko.Transport)["_channel_handler_table"]
"""What paramiko does with messages about a channel; it has no public way to add to it."""


class Opening:
    """A session channel that the host was asked for."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self.channel = channel
        self.answered = threading.Event()
        self.refusal: paramiko.ChannelException | None = None

    @property
    def usable(self) -> bool:
        """Whether the host has not refused it, and nobody has closed it."""
        return self.refusal is None and not self.channel.closed


def _read_request(channel: paramiko.Channel, message: paramiko.Message) -> None:
    transport = channel.get_transport()
    if isinstance(transport, Transport):
        transport.read_request(channel, message)


def _read_failure(channel: paramiko.Channel, message: paramiko.Message) -> None:
    transport = channel.get_transport()
    if isinstance(transport, Transport):
        transport.refused.add(channel.chanid)
    _HANDLERS[MSG_CHANNEL_FAILURE](channel, message)


class Transport(paramiko.Transport):
    """A transport that also tells what paramiko does not: signals, refusals, when it heard last.

    A command that a signal ended (RFC 4254, 6.10) has no exit code, and the signal's name is in
    ``signals`` under the channel's id. A channel on which the host would not start a program has
    its id in ``refused``.
    """

    _channel_handler_table: ClassVar[dict[int, Callable[..., None]]] = {
        **_HANDLERS,
        MSG_CHANNEL_REQUEST: _read_request,
        MSG_CHANNEL_FAILURE: _read_failure,
    }

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.signals: dict[int, str] = {}
        self.refused: set[int] = set()
        self.heard_at = time.monotonic()
        """When the host last answered something, by the monotonic clock."""
        self._asked: dict[int, Opening] = {}

    def ask_open(self) -> Opening:
        """Ask for a session channel, and do not wait for the answer.

        Raises:
            paramiko.SSHException: the connection is lost.
        """
        inner: Any = self  # paramiko has no public way to ask without waiting
        if not self.is_active():
            raise paramiko.SSHException("the connection is lost")
        with inner.lock:
            number = inner._next_channel()
            window, packet = inner.default_window_size, inner.default_max_packet_size
            made: Any = paramiko.Channel(number)
            inner._channels.put(number, made)
            inner.channels_seen[number] = True
            made._set_transport(self)
            made._set_window(window, packet)
            opening = self._asked[number] = Opening(made)
        message = paramiko.Message()
        message.add_byte(cMSG_CHANNEL_OPEN)
        message.add_string("session")
        for value in (number, window, packet):
            message.add_int(value)
        inner._send_user_message(message)
        return opening

    def await_open(self, opening: Opening, limit_s: float) -> paramiko.Channel:
        """Wait for a channel that was asked for.

        Raises:
            paramiko.ChannelException: the host refuses it.
            paramiko.SSHException: the connection is lost, or the host does not answer in time.
        """
        self._await(opening.answered, limit_s)
        if opening.refusal is not None:
            raise opening.refusal
        return opening.channel

    def ask_start(self, channel: paramiko.Channel, line: str) -> None:
        """Ask for a program on a channel, and do not wait for the answer."""
        inner: Any = channel
        message = paramiko.Message()
        message.add_byte(cMSG_CHANNEL_REQUEST)
        message.add_int(inner.remote_chanid)
        message.add_string("exec")
        message.add_boolean(True)
        message.add_string(line)
        inner._event_pending()
        inner.transport._send_user_message(message)

    def await_start(self, channel: paramiko.Channel, limit_s: float) -> None:
        """Wait until the host says that it starts what it was asked to.

        Raises:
            paramiko.SSHException: it does not, or the connection is lost, or no answer comes.
        """
        inner: Any = channel
        self._await(inner.event, limit_s)
        if not inner.event_ready:
            raise paramiko.SSHException("Channel closed.")

    def read_request(self, channel: paramiko.Channel, message: paramiko.Message) -> None:
        """Take the name of a signal; everything else is paramiko's."""
        self.heard_at = time.monotonic()
        start = message.packet.tell()
        if message.get_text() == "exit-signal":
            message.get_boolean()
            self.signals[channel.chanid] = f"SIG{message.get_text()}"
            channel.status_event.set()
        else:
            message.packet.seek(start)
            _HANDLERS[MSG_CHANNEL_REQUEST](channel, message)

    def forget(self, channel: paramiko.Channel) -> None:
        """Drop what is remembered of a channel that is done with."""
        self.signals.pop(channel.chanid, None)
        self.refused.discard(channel.chanid)

    def _await(self, event: threading.Event, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while not event.wait(POLL_S):
            if not self.is_active():
                raise self.get_exception() or paramiko.SSHException("the connection is lost")
            if time.monotonic() > deadline:
                raise paramiko.SSHException(f"the host does not answer within {limit_s:.0f} s")
        if not self.is_active():
            raise self.get_exception() or paramiko.SSHException("the connection is lost")

    def _parse_channel_open_success(self, message: paramiko.Message) -> None:
        opening = self._take(message)
        inner: Any = super()
        inner._parse_channel_open_success(message)
        if opening is not None:
            opening.answered.set()

    def _parse_channel_open_failure(self, message: paramiko.Message) -> None:
        opening = self._take(message)
        if opening is None:
            inner: Any = super()
            inner._parse_channel_open_failure(message)
            return
        message.get_int()
        reason = message.get_int()
        opening.refusal = paramiko.ChannelException(reason, message.get_text())
        vars(self)["_channels"].delete(opening.channel.chanid)
        opening.answered.set()

    def _take(self, message: paramiko.Message) -> Opening | None:
        """Return the opening that an answer is about, if it is one of ours."""
        self.heard_at = time.monotonic()
        start = message.packet.tell()
        number = message.get_int()
        message.packet.seek(start)
        return self._asked.pop(number, None)
