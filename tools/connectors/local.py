"""Runs commands on this machine; the only module that starts processes."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import signal
import subprocess
import time
from pathlib import Path

from tools.command import Command, Ending, OnOutput, Result
from tools.connectors import processes
from tools.connectors.base import Aside, Capture
from tools.connectors.streams import END_S, Pipes
from tools.errors import ToolFailed

GRACE_S = 0.5
"""How long a process group may take to end after SIGTERM, before SIGKILL."""
DRAIN_S = 0.2
"""How long output is still read after the command itself has ended."""
POLL_S = 0.05
"""How often it is looked whether the command has ended, while its pipes are silent."""

PLAIN = {
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_PAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
"""Variables that keep programs from colours, pagers and questions."""
COLOURED = ("FORCE_COLOR", "CLICOLOR_FORCE")
"""Variables that would bring colours back."""


class Local:
    """This machine."""

    name = "local"

    def __init__(self, aside: Aside | None = None) -> None:
        """Take what keeps the whole of long outputs; without it only head and tail are kept."""
        self._aside = aside

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        """Run a command in a session of its own; see ``Connector.run``.

        Output is read in the caller's thread. When the command itself has ended, what it left
        running in the background is not waited for. An exception that comes while it runs, such
        as ``KeyboardInterrupt``, ends its whole process group first.
        """
        if command.via == "engine":
            return _by_engine(command, on_output)
        if command.via == "connection":
            return _of_itself(command)
        begun = time.monotonic()
        try:
            run = _Run(command, on_output, self._aside)
        except (OSError, ValueError) as error:
            code, reason = _not_started(command, error)
            return Result(Ending.EXITED, code=code, stderr=reason + "\n")
        try:
            in_time = run.wait(begun + command.timeout_s)
            family = {} if in_time else processes.family(run.process.pid)
            if not in_time:
                run.end()
            run.drain(time.monotonic() + DRAIN_S)
            survivors = run.survivors(family)
        except BaseException:
            run.drop()
            raise
        finally:
            run.close()
        return run.result(in_time, time.monotonic() - begun, survivors)

    def open_stream(self, argv: tuple[str, ...]) -> Pipes:
        """Start a program whose streams are bytes; see ``Streaming``."""
        try:
            return _piped(argv)
        except (OSError, ValueError) as error:
            raise ToolFailed(_not_started(Command(argv), error)[1]) from error

    def close(self) -> None:
        """Nothing is held."""


class _Run:
    """One running command: feeds and drains its pipes, and ends it."""

    def __init__(self, command: Command, on_output: OnOutput | None, aside: Aside | None) -> None:
        text = command.stdin
        self._input = memoryview((text or "").encode("utf-8", "surrogatepass"))
        self._on_output = on_output
        self.process = subprocess.Popen(
            command.argv,
            stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=command.cwd,
            env=_environment(command),
            start_new_session=True,
            bufsize=0,
        )
        self._captures = {name: Capture(aside=aside) for name in ("stdout", "stderr")}
        self._selector = selectors.DefaultSelector()
        self._pipes = {"stdout": self.process.stdout, "stderr": self.process.stderr}
        for stream, pipe in self._pipes.items():
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, selectors.EVENT_READ, stream)
        if self.process.stdin is not None:
            os.set_blocking(self.process.stdin.fileno(), False)
            self._selector.register(self.process.stdin, selectors.EVENT_WRITE, "stdin")

    def wait(self, deadline: float) -> bool:
        """Feed and drain until the command itself ends; ``False`` when the deadline comes first."""
        while self.process.poll() is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._turn(min(left, POLL_S))
        return True

    def drain(self, deadline: float) -> None:
        """Read what is left in the pipes, and what comes until the deadline."""
        self._close_input()
        while self._selector.get_map() and (left := deadline - time.monotonic()) > 0:
            self._turn(min(left, POLL_S))

    def end(self) -> None:
        """End the process group: SIGTERM, a short grace, SIGKILL."""
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while processes.group_runs(self.process.pid) and time.monotonic() < deadline:
            self._turn(POLL_S / 2)
        self._signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(DRAIN_S)

    def survivors(self, family: dict[int, str]) -> tuple[str, ...]:
        """Name what still runs, of a family of processes and of those that hold our pipes."""
        if not family and not self._selector.get_map():
            return ()
        inodes = [os.fstat(pipe.fileno()).st_ino for pipe in self._pipes.values() if pipe]
        alive = {pid for pid, start in family.items() if processes.is_running(pid, start)}
        alive |= processes.holders(inodes) - {os.getpid()}
        return tuple(f"{pid} {processes.command_of(pid)}" for pid in sorted(alive))

    def drop(self) -> None:
        """Forget the whole of long outputs."""
        for capture in self._captures.values():
            capture.drop()

    def close(self) -> None:
        """Let go of the pipes; end the group if the command has not ended."""
        self._on_output = None
        if self.process.returncode is None:
            self.end()
        self._selector.close()
        for pipe in (self.process.stdin, *self._pipes.values()):
            if pipe is not None:
                pipe.close()

    def result(self, in_time: bool, duration_s: float, survivors: tuple[str, ...]) -> Result:
        """Put together what came back."""
        code = self.process.returncode
        ending, name = Ending.EXITED, None
        if not in_time:
            ending, code = Ending.TIMED_OUT, None
        elif code < 0:
            ending, name, code = Ending.SIGNALED, _signal_name(-code), None
        out, err = self._captures["stdout"], self._captures["stderr"]
        out_kept, err_kept = out.keep(), err.keep()
        return Result(
            ending,
            code=code,
            signal=name,
            stdout=out.text,
            stderr=err.text,
            stdout_omitted=out.omitted,
            stderr_omitted=err.omitted,
            duration_s=duration_s,
            survivors=survivors,
            stdout_kept=out_kept,
            stderr_kept=err_kept,
        )

    def _turn(self, wait_s: float) -> None:
        """Wait for the pipes, at most so many seconds, and move what can be moved."""
        if not self._selector.get_map():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(wait_s)
            return
        for key, _ in self._selector.select(wait_s):
            if key.data == "stdin":
                self._write(key.fd)
            else:
                self._read(key)

    def _read(self, key: selectors.SelectorKey) -> None:
        data = os.read(key.fd, 65536)
        text = self._captures[key.data].feed(data, final=not data)
        if not data:
            self._selector.unregister(key.fileobj)
        if text and self._on_output is not None:
            self._on_output(key.data, text)

    def _write(self, fd: int) -> None:
        try:
            self._input = self._input[os.write(fd, self._input[:65536]) :]
        except BrokenPipeError:
            self._input = memoryview(b"")
        if not self._input:
            self._close_input()

    def _close_input(self) -> None:
        pipe = self.process.stdin
        if pipe is not None and not pipe.closed:
            self._selector.unregister(pipe)
            pipe.close()

    def _signal(self, number: int) -> None:
        """Send a signal to what is left of the group, as far as we may."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


def _piped(argv: tuple[str, ...]) -> Pipes:
    pipe = subprocess.PIPE
    env = _environment(Command(argv))
    process = subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, start_new_session=True, bufsize=0
    )

    def end() -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)  # one that hangs in the kernel, on a dead disk, is left to it

    ends = []
    for pipe_end in (process.stdin, process.stdout, process.stderr):
        if pipe_end is not None:
            ends.append(os.dup(pipe_end.fileno()))
            pipe_end.close()
    stdin, stdout, stderr = ends
    return Pipes(stdin, stdout, stderr, end)


def _by_engine(command: Command, on_output: OnOutput | None) -> Result:
    from tools.connectors import engine  # most commands need no docker SDK, which takes its time

    return engine.perform(engine.local(command.timeout_s), command, on_output)


def _of_itself(command: Command) -> Result:
    """Answer ``connect``, as an ssh host does; nothing else is asked of this machine."""
    if command.argv != ("connect",):
        reason = f"local: there is no connection for `{command.text}`\n"
        return Result(Ending.EXITED, code=2, stderr=reason)
    facts = {"kind": "local", "home": str(Path.home()), "shell_ok": True}
    return Result(Ending.EXITED, code=0, stdout=json.dumps(facts) + "\n")


def _environment(command: Command) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in COLOURED}
    return {**inherited, **PLAIN, **command.env}


def _not_started(command: Command, error: OSError | ValueError) -> tuple[int, str]:
    """Return the exit code that a shell would give, and the reason."""
    program = command.argv[0]
    if not isinstance(error, OSError):
        return 126, f"{program}: cannot be started: {error}"
    if command.cwd is not None and error.filename == command.cwd and program != command.cwd:
        return 126, f"{command.cwd}: cannot be used as working folder: {error.strerror}"
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        if Path(program).is_file():
            return 127, f"{program}: its interpreter was not found"
        return 127, f"{program}: not found"
    return 126, f"{program}: cannot be executed: {error.strerror}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
