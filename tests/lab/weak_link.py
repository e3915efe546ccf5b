"""A TCP proxy on loopback that counts bytes, and breaks or freezes when so many have passed."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class WeakLink:
    """Where to connect, what has passed, and when it fails."""

    port: int = 0
    up: int = 0
    """Bytes from the client so far."""
    down: int = 0
    """Bytes to the client so far."""
    breaks_at: int = 0
    """Both directions end when so many bytes have passed in one of them; 0: never."""
    freezes_at: int = 0
    """Nothing moves any more from so many bytes on, and nothing is closed; 0: never."""
    broken: threading.Event = field(default_factory=threading.Event)
    _sockets: list[socket.socket] = field(default_factory=list)

    def mend(self) -> None:
        """Let new connections work, and count from zero."""
        self.breaks_at = self.freezes_at = self.up = self.down = 0
        self.broken.clear()

    def carry(self, source: socket.socket, to: socket.socket, way: str) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                passed = getattr(self, way) + len(data)
                setattr(self, way, passed)
                if self.breaks_at and passed >= self.breaks_at:
                    self.cut()
                if self.freezes_at and passed >= self.freezes_at:
                    self.broken.set()
                    return
                to.sendall(data)
        if not self.freezes_at:
            with contextlib.suppress(OSError):
                to.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """End all connections."""
        self.broken.set()
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def serve(self, door: socket.socket, port: int) -> None:
        with contextlib.suppress(OSError):
            while True:
                near = door.accept()[0]
                far = socket.create_connection(("127.0.0.1", port))
                self._sockets += [near, far]
                for ends in ((near, far, "up"), (far, near, "down")):
                    threading.Thread(target=self.carry, args=ends, daemon=True).start()


@contextmanager
def weak_link(port: int) -> Iterator[WeakLink]:
    """Stand before a port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        link = WeakLink(door.getsockname()[1])
        server = threading.Thread(target=link.serve, args=(door, port), daemon=True)
        server.start()
        try:
            yield link
        finally:
            door.shutdown(socket.SHUT_RDWR)
            link.cut()
            for one in link._sockets:
                one.close()
            server.join(5)
