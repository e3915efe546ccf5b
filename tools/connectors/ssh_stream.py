"""A program's streams of bytes, behind a channel of an ssh connection."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import paramiko

from tools.connectors.ssh_connection import BROKEN
from tools.connectors.streams import END_S, SAID_BYTES, StreamBroken

WINDOW = 2 << 20
"""So many bytes are read at once: all that may have come. To take less moves the rest in memory."""
OPEN_S = 30.0
"""How long a host may take to start a program."""


class Remote:
    """A program behind a channel of an ssh connection."""

    def __init__(self, channel: paramiko.Channel, freed: Callable[[], None]) -> None:
        """Take a channel on which the program runs; ``freed`` is called when it is closed."""
        self._channel, self._freed = channel, freed
        self._said = b""

    def read(self, limit_s: float) -> bytes | None:
        """See ``ByteStream``."""
        channel = self._channel
        if channel.recv_stderr_ready():
            self._said = (self._said + channel.recv_stderr(65536))[-SAID_BYTES:]
        if limit_s <= 0 and not channel.recv_ready() and not channel.eof_received:
            self._check()
            return None
        channel.settimeout(limit_s)
        try:
            data = channel.recv(WINDOW)
        except TimeoutError:
            self._check()
            return None
        if not data:
            self._check()
        return data

    def write(self, data: memoryview, limit_s: float) -> int:
        """See ``ByteStream``."""
        self._channel.settimeout(limit_s)
        try:
            return self._channel.send(bytes(data[:32768]))
        except TimeoutError:
            return 0
        except BROKEN as error:
            self._check()
            raise StreamBroken(str(error) or "it takes no more") from error

    def end_input(self) -> None:
        """See ``ByteStream``."""
        with contextlib.suppress(*BROKEN):
            self._channel.shutdown_write()

    def said(self) -> str:
        """See ``ByteStream``."""
        with contextlib.suppress(*BROKEN):
            while self._channel.recv_stderr_ready():
                self._said = (self._said + self._channel.recv_stderr(65536))[-SAID_BYTES:]
        return self._said.decode("utf-8", "replace").strip()

    def close(self) -> None:
        """See ``ByteStream``; the program's input ends, by which it ends by itself."""
        self.end_input()
        end = time.monotonic() + END_S
        with contextlib.suppress(StreamBroken, *BROKEN):
            while not self._channel.exit_status_ready() and time.monotonic() < end:
                if self.read(0.02) == b"":
                    self._channel.status_event.wait(0.02)
        self._channel.close()
        self._freed()

    def _check(self) -> None:
        transport = self._channel.get_transport()
        if not transport.is_active():
            error = transport.get_exception()
            raise StreamBroken(str(error) if error else "the connection is lost")
