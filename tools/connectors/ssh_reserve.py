"""Session channels that are opened ahead of their use, so that a command takes one round trip."""

from __future__ import annotations

import threading
import time

from tools.connectors.ssh_transport import Opening, Transport

MOST = 2
"""How many there are at most on a connection."""
IDLE_S = 60.0
"""They are closed when no command came for so long: a host may count who is there."""


class Reserve:
    """Channels of one connection on which nothing was asked yet; each is given out once.

    Nothing runs on the host for them. A host that refuses one is asked for fewer from then on.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        self._openings: list[Opening] = []
        self._most = MOST
        self._used_at = time.monotonic()

    def take(self) -> Opening | None:
        """Return a channel that nobody has closed; the host may not have answered for it yet."""
        with self._lock:
            self._used_at = time.monotonic()
            self._sift()
            return self._openings.pop(0) if self._openings else None

    def fill(self, places: int) -> None:
        """Ask for what is missing, and do not wait for it.

        Args:
            places: how many channels there may be.

        Raises:
            paramiko.SSHException: the connection is lost.
        """
        with self._lock:
            self._sift()
            while len(self._openings) < min(self._most, places):
                self._openings.append(self._transport.ask_open())

    def close_idle(self) -> None:
        """Close what was not needed for long."""
        with self._lock:
            self._sift()
            if time.monotonic() - self._used_at < IDLE_S:
                return
            done = [opening for opening in self._openings if opening.answered.is_set()]
            self._openings = [opening for opening in self._openings if opening not in done]
        for opening in done:
            opening.channel.close()

    def __len__(self) -> int:
        with self._lock:
            self._sift()
            return len(self._openings)

    def _sift(self) -> None:
        """Forget what was refused or closed."""
        refused = sum(opening.refusal is not None for opening in self._openings)
        self._most = max(0, self._most - refused)
        self._openings = [opening for opening in self._openings if opening.usable]
