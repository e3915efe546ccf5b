"""Opens the way to an ssh server: TCP, or a program that the person's configuration names."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import socket
import time

import paramiko

from tools.connectors.ssh_config import SshSettings

END_S = 1.0
"""How long a program on the way may take to end."""


def tcp(settings: SshSettings, limit_s: float) -> socket.socket:
    """Connect over TCP.

    Raises:
        OSError: nobody answers there, or the name is not known.
    """
    stream = socket.create_connection((settings.host, settings.port), limit_s)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


class ProxyProgram(paramiko.ProxyCommand):
    """A program that carries the connection, as ``ProxyCommand`` names it; paramiko starts it."""

    def __init__(self, line: str) -> None:
        """Start the program.

        Args:
            line: for a shell, as OpenSSH reads it.

        Raises:
            OSError: there is no shell.
        """
        super().__init__(shlex.join(["sh", "-c", f"exec {line}"]))

    def recv(self, size: int) -> bytes:
        """Receive what is there; paramiko's own way does not notice the end of the program.

        Raises:
            TimeoutError: nothing came in time.
        """
        pipe = self.process.stdout
        if pipe is None or pipe.closed:
            return b""
        try:
            if not select.select([pipe], [], [], self.timeout)[0]:
                raise TimeoutError
            return os.read(pipe.fileno(), size)
        except ValueError:  # closed by another thread
            return b""

    def close(self) -> None:
        """End the program and wait for it; it may be called twice."""
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]  # all three are pipes
        for end in (self.process.terminate, self.process.kill):
            if self.process.poll() is None:
                end()
            deadline = time.monotonic() + END_S
            while self.process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
