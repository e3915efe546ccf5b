"""The places for commands on the one connection to a host."""

from __future__ import annotations

import threading
import time

import paramiko

from tools.connectors.ssh_connection import BROKEN, CONNECT_S, Connection
from tools.connectors.ssh_link import Link
from tools.connectors.ssh_start import Start
from tools.errors import ConnectionFailed

CHANNELS = 8
"""Commands at once on a connection; sshd allows ten, and two are for ending commands."""
POLL_S = 0.05
"""How often it is looked whether a channel that someone else holds was closed."""

REFUSED_S = 1.0
"""How long a host may refuse channels while we have none; it counts one that was just closed."""


class Pool:
    """Gives each command a channel of its own, and makes those wait for whom there is no place."""

    def __init__(self, link: Link) -> None:
        """Take the connection, which is opened when it is first needed."""
        self.name, self.link = link.name, link
        self._changed = threading.Condition()
        self._reserved = 0
        self._held: list[paramiko.Channel] = []

    def begin(self, start: Start, wait_s: float) -> tuple[paramiko.Channel, Connection]:
        """Send a command and return its channel; nothing of its standard input is sent.

        A connection that is found to be lost before the command was sent is opened anew, once. The
        channel gives its place back by being closed.

        Args:
            start: the command.
            wait_s: how long to wait for a place, and for a host that allows fewer channels.

        Raises:
            ConnectionFailed: see ``Link.connect``; or no channel can be had.
        """
        deadline = time.monotonic() + wait_s
        channel = None
        self._reserve(deadline)
        try:
            try:
                channel, connection = self._start(start, deadline)
            except BROKEN:
                channel, connection = self._start(start, deadline)
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

    def _start(self, start: Start, deadline: float) -> tuple[paramiko.Channel, Connection]:
        connection = self.link.connection(deadline)
        idle_since = time.monotonic()
        while True:
            asked = time.monotonic()
            try:
                places = CHANNELS - self.in_use
                return connection.begin(start, CONNECT_S, places), connection
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

    @property
    def in_use(self) -> int:
        """How many channels are used, or about to be."""
        with self._changed:
            return self._reserved + self._in_use()

    def _in_use(self) -> int:
        self._held = [channel for channel in self._held if not channel.closed]
        return len(self._held)
