"""One command on an ssh host: the line that starts it there, and the moving of its streams.

The host's login shell, whatever it is, only reads a constant line without any value of ours. That
line starts ``sh``, which reads one line from its standard input: our words, variables and folder,
quoted for ``sh``. So nothing depends on the login shell's quoting, values of variables are in no
process's argument list, and a line that a broken connection cuts short is not run. ``sh`` then
becomes the command: its process id is the command's, and of the group that sshd made for it.
"""

from __future__ import annotations

import re
import secrets
import selectors
import shlex
import time

import paramiko

from tools.command import Command, Ending, OnOutput, Result
from tools.connectors.base import Capture
from tools.connectors.local import COLOURED, PLAIN

START = "exec sh -c 'read -r bringup_line && eval \"$bringup_line\"'"
"""What the login shell is asked to do; POSIX shells, fish and csh read it alike."""
DRAIN_S = 0.4
"""How long it must be silent after the command itself has ended, until its output is complete."""
DRAIN_AT_MOST_S = 10.0
"""How long output is read at most after the command itself has ended."""
POLL_S = 0.05
"""How often it is looked whether the command has ended, while its streams are silent."""
NOISE_BYTES = 16 * 1024
"""How much of what start-up files print is kept."""

_LINE_BREAK = "bringup_n=$(printf '\\nx'); bringup_n=${bringup_n%x}"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def new_marker() -> str:
    """Return the word after which output is the command's own."""
    return f"bringup-{secrets.token_hex(8)}"


def start_line(command: Command, marker: str, *, on_stderr: bool = True) -> bytes:
    """Return the line that ``START`` reads: it prints marker and process id, then is the command.

    Raises:
        ValueError: a word or a variable cannot be passed on.
    """
    if command.argv[0].startswith("-"):
        raise ValueError("a program's name may not begin with a dash")
    parts = [f"echo {marker} $$"] + ([f"echo {marker} $$ >&2"] if on_stderr else [])
    if any("\n" in word for word in (*command.argv, *command.env.values(), command.cwd or "")):
        parts.append(_LINE_BREAK)
    parts.append(f"unset {' '.join(COLOURED)}")
    for name, value in {**PLAIN, **command.env}.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a variable")
        parts.append(f"export {name}={_quoted(value)}")
    if command.cwd is not None:
        folder = command.cwd if command.cwd.startswith("/") else f"./{command.cwd}"
        trouble = _quoted(f"{command.cwd}: cannot be used as working folder")
        parts.append(
            f"CDPATH= cd {_quoted(folder)} || {{ printf '%s\\n' {trouble} >&2; exit 126; }}"
        )
    parts.append("exec " + " ".join(_quoted(word) for word in command.argv))
    return "; ".join(parts).encode("utf-8", "surrogateescape") + b"\n"


def _quoted(word: str) -> str:
    """Quote a word for ``sh`` without a line break in it."""
    if "\0" in word:
        raise ValueError("a null byte cannot be passed to a program")
    return '"$bringup_n"'.join(shlex.quote(part) for part in word.split("\n"))


class Stream:
    """One stream of a command, behind what start-up files of the host print before it."""

    def __init__(self, marker: str) -> None:
        self._start = re.compile(rb"%b (\d+)\r?\n" % marker.encode())
        self._noise = b""
        self.pid: int | None = None
        """The command's process id, once its shell has told it."""
        self.capture = Capture()

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Take bytes as they come and return the text of the command's own."""
        if self.pid is None:
            self._noise += data
            found = self._start.search(self._noise)
            if found is None:
                self._noise = self._noise[-NOISE_BYTES:]
                return ""
            self.pid = int(found[1])
            data = self._noise[found.end() :]
        return self.capture.feed(data, final=final)

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
        line: bytes,
        marker: str,
        on_output: OnOutput | None,
    ) -> None:
        text = command.stdin or ""
        self.channel = channel
        self.command = command
        self._input = memoryview(line + text.encode("utf-8", "surrogatepass"))
        self._on_output = on_output
        self._streams = {"stdout": Stream(marker), "stderr": Stream(marker)}
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel.fileno(), selectors.EVENT_READ)
        channel.settimeout(0.0)

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
            sent = self.channel.send(bytes(self._input[:32768]))
        except TimeoutError:
            return
        except OSError:
            self._input = memoryview(b"")
            return
        self._input = self._input[sent:]
        if not self._input:
            self.channel.shutdown_write()
