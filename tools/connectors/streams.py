"""Streams of bytes to and from a running program, on this machine or on an ssh host.

A command's output is kept as text, within bounds. What moves files needs bytes, of any number: a
``ByteStream`` keeps nothing, and says at once when nothing moves. Whoever uses one decides how long
a silence may be.
"""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

from tools.errors import ToolFailed

PIECE = 256 * 1024
"""At most so many bytes are read from a pipe at once."""
SAID_BYTES = 4096
"""How much of what a program writes to its stderr is kept."""
END_S = 0.7
"""How long a program may take to end once its input has ended, before it is killed."""
PIPE_SIZE = 1031
"""``F_SETPIPE_SZ`` of Linux, which Python's own module names since 3.10 only."""


class StreamBroken(Exception):
    """The connection, or the program, is gone; the message says why."""


class ByteStream(Protocol):
    """A running program's input and output."""

    def read(self, limit_s: float) -> bytes | None:
        """Return what the program prints; empty at its end, ``None`` if nothing came in time.

        Raises:
            StreamBroken: the connection is gone.
        """
        ...

    def write(self, data: memoryview, limit_s: float) -> int:
        """Give the program bytes; return how many it took in time, which may be none.

        Raises:
            StreamBroken: the program takes no more, or the connection is gone.
        """
        ...

    def end_input(self) -> None:
        """Close the program's input."""
        ...

    def said(self) -> str:
        """Return what the program wrote to its stderr, the end of it at most."""
        ...

    def close(self) -> None:
        """Let go of it, and end it; it may be called twice."""
        ...


class Streaming(Protocol):
    """A connector that can start a program whose streams are bytes."""

    @property
    def name(self) -> str:
        """The target's name."""
        ...

    def open_stream(self, argv: tuple[str, ...]) -> ByteStream:
        """Start a program.

        Raises:
            ConnectionFailed: the target cannot be reached.
            ToolFailed: the program cannot be started.
        """
        ...


def streaming(connector: object) -> Streaming:
    """Return a connector as one that starts programs whose streams are bytes.

    Raises:
        ToolFailed: this kind of connector cannot do that.
    """
    if not hasattr(connector, "open_stream"):
        name = getattr(connector, "name", "this target")
        raise ToolFailed(f"{name}: files cannot be copied to or from a place of this kind")
    return cast(Streaming, connector)


@dataclass
class Pipes:
    """A program on this machine: the ends of its pipes that are ours."""

    stdin: int
    stdout: int
    stderr: int
    end: Callable[[], object]
    """Ends its process group; it may be called twice."""

    def __post_init__(self) -> None:
        self._open = [self.stdin, self.stdout, self.stderr]
        for fd in self._open:
            os.set_blocking(fd, False)
            with contextlib.suppress(ImportError, OSError):
                import fcntl

                fcntl.fcntl(fd, PIPE_SIZE, 1 << 20)

    def read(self, limit_s: float) -> bytes | None:
        """See ``ByteStream``."""
        if not select.select([self.stdout], [], [], limit_s)[0]:
            return None
        try:
            return os.read(self.stdout, PIECE)
        except BlockingIOError:
            return None

    def write(self, data: memoryview, limit_s: float) -> int:
        """See ``ByteStream``."""
        if not select.select([], [self.stdin], [], limit_s)[1]:
            return 0
        try:
            return os.write(self.stdin, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise StreamBroken(error.strerror or str(error)) from error

    def end_input(self) -> None:
        """See ``ByteStream``."""
        self._shut(self.stdin)

    def said(self) -> str:
        """See ``ByteStream``."""
        try:
            data = os.read(self.stderr, 1 << 20) if self.stderr in self._open else b""
        except OSError:
            return ""
        return data[-SAID_BYTES:].decode("utf-8", "replace").strip()

    def close(self) -> None:
        """See ``ByteStream``."""
        for fd in tuple(self._open):
            self._shut(fd)
        self.end()

    def _shut(self, fd: int) -> None:
        if fd in self._open:
            self._open.remove(fd)
            os.close(fd)
