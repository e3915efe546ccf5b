"""The docker SDK's client over any stream: the engine's socket, or a channel of our own ssh.

The SDK could open ssh connections itself, but that would be a second handshake, with settings of
its own. All requests of a client end at one deadline, whatever the SDK would wait.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import Any, Protocol

import requests
import urllib3
from docker import APIClient
from docker.context import ContextAPI
from docker.errors import DockerException
from requests.adapters import HTTPAdapter

DIAL = ("docker", "system", "dial-stdio")
"""Joins its standard streams to the engine that the target's own docker program uses."""
SAID_BYTES = 4096
SAID_WAIT_S = 1.0
MIN_WAIT_S = 0.01


class Stream(Protocol):
    """What a socket and an ssh channel have in common."""

    def settimeout(self, timeout: float | None) -> None:
        """Bound every further read and write."""

    def sendall(self, data: bytes) -> Any:
        """Write it all."""

    def close(self) -> None:
        """Give it back."""


OpenStream = Callable[[float], Stream]
"""Opens a stream to an engine within so many seconds."""
ClientFactory = Callable[[], "EngineClient"]


class Unreachable(OSError):
    """The engine cannot be reached; the message says where and why."""

    def __init__(self, reason: str, code: int | None = None) -> None:
        super().__init__(reason)
        self.code = code
        """Exit code of the program that should have joined us to the engine."""


class EngineClient(APIClient):
    """The SDK's low-level client, over streams that it is given, with one deadline for all."""

    def __init__(self, open_stream: OpenStream, timeout_s: float) -> None:
        """Connect, and agree on a version of the API.

        Args:
            open_stream: opens a stream to the engine.
            timeout_s: after so many seconds from now every request fails.

        Raises:
            Unreachable: there is no engine, it may not be used, does not answer in time, or answers
                with an error.
        """
        self._streams = _Adapter(open_stream, time.monotonic() + timeout_s)
        self._streams.connect()
        try:
            super().__init__(base_url="http://engine:80", version="auto")
        except DockerException as error:
            code, words = self._streams.said()
            self._streams.close()
            raise Unreachable(words or str(error), code) from error
        self.trust_env = False

    def get_adapter(self, url: str) -> HTTPAdapter:
        """Return our adapter, for every address."""
        return self._streams

    @property
    def left_s(self) -> float:
        """Seconds until the deadline."""
        return self._streams.left_s

    def bound(self) -> None:
        """Let the next read wait until the deadline at most."""
        self._streams.bound()

    def close(self) -> None:
        """Close all streams."""
        self._streams.close()


class _Adapter(HTTPAdapter):
    """Sends requests over streams; each is used again for the next request."""

    def __init__(self, open_stream: OpenStream, deadline: float) -> None:
        self._open = open_stream
        self._deadline = deadline
        self._all: list[Stream] = []
        self._ready: list[Stream] = []
        self._pool = _Pool(self)
        super().__init__()

    @property
    def left_s(self) -> float:
        return max(MIN_WAIT_S, self._deadline - time.monotonic())

    def connect(self) -> None:
        """Open a stream for the first request."""
        self._ready.append(self.stream())

    def stream(self) -> Stream:
        """Return the stream that is ready, or a new one."""
        if self._ready:
            return self._ready.pop()
        stream = self._open(self.left_s)
        self._all.append(stream)
        stream.settimeout(self.left_s)
        return stream

    def bound(self) -> None:
        for stream in self._all:
            stream.settimeout(self.left_s)

    def said(self) -> tuple[int | None, str]:
        """Ask the last stream, if it is a channel of ssh."""
        channel: Any = self._all[-1] if self._all else None
        if not hasattr(channel, "recv_stderr"):
            return None, ""
        channel.settimeout(SAID_WAIT_S)
        words = b""
        try:
            while len(words) < SAID_BYTES and (piece := channel.recv_stderr(SAID_BYTES)):
                words += piece
        except TimeoutError:
            return None, words.decode("utf-8", "replace").strip()
        ended = channel.status_event.wait(SAID_WAIT_S) and channel.exit_status >= 0
        code = channel.exit_status if ended else None
        return code, words.decode("utf-8", "replace").strip()

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        """Send a request that ends at the deadline, whatever limit the SDK has in mind."""
        return super().send(request, *args, **{**kwargs, "timeout": self.left_s})

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        """Return the one pool, whatever the address says."""
        return self._pool

    def request_url(self, request: requests.PreparedRequest, proxies: Any) -> str:
        """Return the path alone: no proxy is between us and the engine."""
        return request.path_url

    def close(self) -> None:
        super().close()
        self._pool.close()
        for stream in self._all:
            stream.close()


class _Connection(urllib3.connection.HTTPConnection):
    """An HTTP connection over a stream."""

    def __init__(self, adapter: _Adapter) -> None:
        super().__init__("localhost")
        self._adapter = adapter

    def connect(self) -> None:
        self.sock: Any = self._adapter.stream()

    def close(self) -> None:
        """Let go of the stream; the adapter closes it, and asks first what was said at its end."""
        self.sock = None
        super().close()

    @property
    def is_connected(self) -> bool:
        """Whether it is open; asking ``poll``, as urllib3 does, would cost a channel two pipes."""
        if self.sock is None or isinstance(self.sock, socket.socket):
            return super().is_connected
        return not self.sock.closed


class _Pool(urllib3.HTTPConnectionPool):
    """Hands out such connections."""

    def __init__(self, adapter: _Adapter) -> None:
        super().__init__("localhost", maxsize=2)
        self._adapter = adapter

    def _new_conn(self) -> Any:
        return _Connection(self._adapter)


def local(timeout_s: float) -> ClientFactory:
    """Return what makes clients of this machine's engine, as the docker program would find it.

    That is ``DOCKER_HOST``, or else the current context, or else the usual socket. Connections
    with TLS or over ssh are not made here: such an engine's machine is a target of its own.
    """
    return lambda: EngineClient(_open_local, timeout_s)


def over(open_channel: Callable[[tuple[str, ...], float], Any], timeout_s: float) -> ClientFactory:
    """Return what makes clients of the engine at the other end of an ssh connection.

    Args:
        open_channel: opens a channel on which a command runs, ``Ssh.open_channel``.
        timeout_s: after so many seconds every request of a client fails.
    """
    return lambda: EngineClient(lambda left_s: open_channel(DIAL, left_s), timeout_s)


def _open_local(left_s: float) -> socket.socket:
    address = _local_address()
    try:
        return _connect(address, left_s)
    except PermissionError as error:
        raise Unreachable(
            f"permission denied while trying to connect to the Docker daemon socket at {address}"
        ) from error
    except (OSError, ValueError) as error:
        raise Unreachable(
            f"Cannot connect to the Docker daemon at {address}. Is the docker daemon running? "
            f"({error})"
        ) from error


def _connect(address: str, left_s: float) -> socket.socket:
    scheme, _, place = address.partition("://")
    if scheme == "tcp":
        host, _, port = place.rpartition(":")
        return socket.create_connection((host, int(port)), left_s)
    stream = socket.socket(socket.AF_UNIX)
    try:
        stream.settimeout(left_s)
        stream.connect(place)
    except OSError:
        stream.close()
        raise
    return stream


def _local_address() -> str:
    address = os.environ.get("DOCKER_HOST") or _context_address()
    if address.startswith("unix://") or (
        address.startswith("tcp://") and not os.environ.get("DOCKER_TLS_VERIFY")
    ):
        return address
    raise Unreachable(
        f"the Docker engine at {address} cannot be used from here: only a socket (unix://) or "
        "plain tcp:// can; for an engine on another machine name that machine as the target"
    )


def _context_address() -> str:
    try:
        context = ContextAPI.get_current_context()
    except (DockerException, OSError, ValueError):
        context = None
    return str(context.Host) if context and context.Host else "unix:///var/run/docker.sock"
