"""One command on an ssh host while it runs: the moving of its streams, until it has ended."""

from __future__ import annotations

import re
import selectors
import time
from collections.abc import Iterable

import paramiko

from tools.command import Command, Ending, OnOutput, Result
from tools.connectors.base import Aside, Capture

DRAIN_S = 0.4
"""How long it must be silent after the command itself has ended, until its output is complete."""
DRAIN_AT_MOST_S = 10.0
"""How long output is read at most after the command itself has ended."""
POLL_S = 0.05
"""How often it is looked whether the command has ended, while its streams are silent."""
_PID = re.compile(rb" (\d+)\r?\n")
NOISE_BYTES = 16 * 1024
"""How much of what start-up files print is kept."""


class Stream:
    """One stream of a command, behind what start-up files of the host print before it."""

    def __init__(self, marker: str, aside: Aside | None = None) -> None:
        self._marker = marker.encode()
        self._noise = b""
        self.pid: int | None = None
        """The command's process id, once its shell has told it."""
        self.capture = Capture(aside=aside)

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Take bytes as they come and return the text of the command's own."""
        if self.pid is None:
            self._noise += data
            found = self._beginning()
            if found is None:
                self._noise = self._noise[-NOISE_BYTES:]
                return ""
            self.pid = int(found[1])
            data = self._noise[found.end() :]
        return self.capture.feed(data, final=final)

    def _beginning(self) -> re.Match[bytes] | None:
        """Find the line that tells the process id; start-up files may print the marker too."""
        at = -1
        while (at := self._noise.find(self._marker, at + 1)) >= 0:
            if found := _PID.match(self._noise, at + len(self._marker)):
                return found
        return None

    @property
    def noise(self) -> str:
        """What came before the command's own output, its end at most."""
        return self._noise.decode(errors="replace").strip()


class RemoteRun:
    """One running command: feeds and drains its channel."""

    def __init__(
        self,
        channel: paramiko.Channel,
        command: Command,
        marker: str,
        on_output: OnOutput | None,
        aside: Aside | None = None,
    ) -> None:
        text = command.stdin or ""
        self.channel = channel
        self.command = command
        self._input = memoryview(text.encode("utf-8", "surrogatepass"))
        self._on_output = on_output
        self._streams = {name: Stream(marker, aside) for name in ("stdout", "stderr")}
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel.fileno(), selectors.EVENT_READ)
        channel.settimeout(0.0)
        if not self._input:
            self._send()

    @property
    def pid(self) -> int | None:
        """The command's process id on the host, once it is known."""
        return self._streams["stdout"].pid or self._streams["stderr"].pid

    @property
    def ended(self) -> bool:
        """Whether the command itself has ended, or nothing more can be heard of it."""
        return self.channel.exit_status_ready()

    @property
    def held(self) -> bool:
        """Whether something else still holds the command's output open."""
        return not (self.channel.eof_received or self.channel.closed)

    @property
    def noise(self) -> str:
        """What the host printed where the command's shell did not even begin."""
        return "\n".join(it.noise for it in self._streams.values() if it.noise)

    def tell(self, lines: Iterable[str]) -> None:
        """Pass on what happened to the connection before."""
        for line in lines:
            if self._on_output is not None:
                self._on_output("connection", f"{line}\n")

    def wait(self, deadline: float) -> bool:
        """Feed and drain until the command itself ends; ``False`` when the deadline comes first."""
        while not self.ended:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._turn(min(left, POLL_S))
        return True

    def drain(self, deadline: float) -> None:
        """Read what is left until the end of the streams, a silence, or the deadline."""
        self._input = memoryview(b"")
        quiet_at = time.monotonic() + DRAIN_S
        while (now := time.monotonic()) < min(quiet_at, deadline):
            if self._turn(min(quiet_at - now, POLL_S)):
                quiet_at = time.monotonic() + DRAIN_S
            elif not self.held:
                break
        for name in self._streams:
            self._take(name, b"", final=True)

    def drop(self) -> None:
        """Forget the whole of long outputs."""
        for stream in self._streams.values():
            stream.capture.drop()

    def close(self) -> None:
        """Let go of the channel."""
        self._on_output = None
        self._selector.close()
        self.channel.close()

    def result(
        self,
        ending: Ending,
        duration_s: float,
        code: int | None = None,
        signal: str | None = None,
        survivors: tuple[str, ...] = (),
        reason: str = "",
    ) -> Result:
        """Put together what came back; ``reason`` is added to ``stderr``."""
        out, err = (self._streams[name].capture for name in ("stdout", "stderr"))
        out_kept, err_kept = out.keep(), err.keep()
        gap = "\n" if err.text and not err.text.endswith("\n") else ""
        return Result(
            ending,
            code=code,
            signal=signal,
            stdout=out.text,
            stderr=err.text + (f"{gap}{reason}\n" if reason else ""),
            stdout_omitted=out.omitted,
            stderr_omitted=err.omitted,
            duration_s=duration_s,
            survivors=survivors,
            stdout_kept=out_kept,
            stderr_kept=err_kept,
        )

    def _turn(self, wait_s: float) -> bool:
        """Move what can be moved, waiting for it at most so many seconds; tell if output came."""
        if self._input:
            self._send()
            wait_s = min(wait_s, POLL_S / 5) if self._input else wait_s
        if self.held:
            self._selector.select(wait_s)
        elif not self.channel.recv_ready() and not self.channel.recv_stderr_ready():
            self.channel.status_event.wait(wait_s)
        moved = False
        if self.channel.recv_ready():
            moved = self._take("stdout", self.channel.recv(65536))
        if self.channel.recv_stderr_ready():
            moved = self._take("stderr", self.channel.recv_stderr(65536)) or moved
        return moved

    def _take(self, name: str, data: bytes, *, final: bool = False) -> bool:
        text = self._streams[name].feed(data, final=final)
        if text and self._on_output is not None:
            self._on_output(name, text)
        return bool(data)

    def _send(self) -> None:
        try:
            if self._input:
                self._input = self._input[self.channel.send(bytes(self._input[:32768])) :]
            if not self._input:
                self.channel.shutdown_write()
        except TimeoutError:
            return
        except OSError:
            self._input = memoryview(b"")
