"""A TCP proxy on loopback that behaves as bad networks do: late, frozen, cut, or dead from afar."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

CHUNK = 65536
TURN_S = 0.05


class Wire:
    """Carries connections to one port; both directions alike."""

    def __init__(self, port: int, *, delay_s: float = 0.0) -> None:
        """Listen on a free port of loopback.

        Args:
            port: where the connections go to, on loopback.
            delay_s: how much later each byte arrives, each way; a round trip takes twice that.
        """
        self.target, self._delay_s = port, delay_s
        self.hang_ups = 0
        """How many of the next connections are closed at once, as a busy server does."""
        self._over = threading.Event()
        self._flowing = threading.Event()
        self._flowing.set()
        self._streams: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._server.getsockname()[1]
        self._spawn(self._accept)

    def freeze(self) -> None:
        """Carry nothing any more, and close nothing: the other end is silent."""
        self._flowing.clear()

    def thaw(self) -> None:
        """Carry on."""
        self._flowing.set()

    def drop(self) -> None:
        """Cut all connections; new ones are carried."""
        streams, self._streams = self._streams, []
        for stream in streams:
            _shut(stream)

    def close(self) -> None:
        """Cut all, and listen no more."""
        self._over.set()
        self._server.close()
        self.drop()

    def _spawn(self, work: object, *args: object) -> None:
        threading.Thread(target=work, args=args, daemon=True).start()  # type: ignore[arg-type]

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            self._spawn(self._join, near)

    def _join(self, near: socket.socket) -> None:
        """Carry one connection; its beginning is as late as all else."""
        try:
            if self.hang_ups > 0:
                self.hang_ups -= 1
                raise ConnectionAbortedError
            far = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            _shut(near)
            return
        for stream in (near, far):
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._streams += [near, far]
        for source, target in ((near, far), (far, near)):
            line: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
            self._spawn(self._take, source, line)
            self._spawn(self._give, line, target)

    def _take(self, source: socket.socket, line: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        while True:
            try:
                data = source.recv(CHUNK)
            except OSError:
                data = b""
            line.put((time.monotonic() + self._delay_s, data))
            if not data:
                return

    def _give(self, line: queue.SimpleQueue[tuple[float, bytes]], target: socket.socket) -> None:
        while not self._over.is_set():
            with contextlib.suppress(queue.Empty):
                due, data = line.get(timeout=TURN_S)
                time.sleep(max(0.0, due - time.monotonic()))
                while not self._flowing.wait(TURN_S):
                    if self._over.is_set():
                        return
                if not data:
                    _shut(target)
                    return
                try:
                    target.sendall(data)
                except OSError:
                    return


def _shut(stream: socket.socket) -> None:
    with contextlib.suppress(OSError):
        stream.shutdown(socket.SHUT_RDWR)
    stream.close()


@contextmanager
def wire(port: int, *, delay_s: float = 0.0) -> Iterator[Wire]:
    """Run a proxy while the block runs; see ``Wire``."""
    made = Wire(port, delay_s=delay_s)
    try:
        yield made
    finally:
        made.close()
