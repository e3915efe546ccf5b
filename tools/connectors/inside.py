"""What connectors share that reach a place inside of another target."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from tools.command import Command, Ending, OnOutput, Result
from tools.connectors.base import Connector
from tools.errors import ConnectionFailed

NOISE_CHARS = 16 * 1024
"""How much of what comes before a command's own output is kept."""
KILLED = (129, 137, 143)
"""Exit codes of what a signal has ended."""
STOP_TURNS, STOP_TURN_S = 5, 0.15
"""How often, and after which waits, it is looked whether a container stops."""
HOME = Command.of("sh", "-c", 'printf %s "$HOME"', timeout_s=20)


def has_stopped(result: Result, runs: Callable[[], bool]) -> bool:
    """Whether a command ended because its container did, and not by itself.

    Args:
        result: how the command ended; all that runs in a container that stops is killed.
        runs: asks whether the container runs; it ends a little after what ran in it.
    """
    if result.code not in KILLED:
        return False
    for _ in range(STOP_TURNS):
        if not runs():
            return True
        time.sleep(STOP_TURN_S)
    return False


def stopped(result: Result) -> Result:
    """Return the result of a command whose container has stopped meanwhile."""
    words = f"{result.stderr}the container has stopped while it ran\n"
    return replace(result, ending=Ending.LOST, code=None, signal=None, stderr=words)


def not_possible(command: Command) -> Result:
    """Return the answer to a command that is for the host's engine, inside of a place there."""
    reason = f"{command.argv[0]}: via {command.via} is not possible in a container\n"
    return Result(Ending.EXITED, code=126, stderr=reason)


def connection(via: Connector, run: Callable[[Command], Result], command: Command) -> Result:
    """Answer a command about the connection: the host's own answer, with the home inside.

    Args:
        via: the host's connector; its host key is what is known or trusted.
        run: runs a command inside.
        command: see ``ssh_answers.answer``.

    Raises:
        ConnectionFailed: the host cannot be reached; or it is, and the place inside is not.
    """
    result = via.run(command)
    if not result.ok or command.argv != ("connect",):
        return result
    facts = json.loads(result.stdout)
    if facts.get("host_key", "known") == "known" and facts["shell_ok"]:
        said = run(HOME)
        facts |= {"home": said.stdout, "shell_ok": said.ok}
    return replace(result, stdout=json.dumps(facts) + "\n")


class Behind:
    """A command's own output, behind whatever its client and start-up files print before it."""

    def __init__(self, marker: str, on_output: OnOutput | None) -> None:
        """Take the marker, and who is told of the command's own output."""
        self._start = re.compile(rf"{marker} (\d+)\r?\n")
        self._on_output = on_output
        self._noise = {"stdout": "", "stderr": ""}
        self._begun: set[str] = set()
        self.pid: int | None = None
        """The command's process id there, once its shell has told it."""

    def feed(self, stream: str, text: str) -> None:
        """Take a piece of output as it comes, and pass on what is the command's own."""
        if stream in self._noise and stream not in self._begun:
            self._noise[stream] += text
            found = self._start.search(self._noise[stream])
            if found is None:
                self._noise[stream] = self._noise[stream][-NOISE_CHARS:]
                return
            self.pid = int(found[1])
            self._begun.add(stream)
            text = self._noise[stream][found.end() :]
        if text and self._on_output is not None:
            self._on_output(stream, text)

    def own(self, result: Result) -> Result:
        """Return a result without what came before the command's own output.

        Where the command has not begun, all is left as it is.
        """
        out, err = self._after(result.stdout), self._after(result.stderr)
        return result if self.pid is None else replace(result, stdout=out, stderr=err)

    def _after(self, text: str) -> str:
        found = self._start.search(text)
        if found is None:
            return text
        self.pid = int(found[1])
        return text[found.end() :]


class Limit:
    """Ends something when its time is over, while its caller waits for it; a context manager."""

    def __init__(self, limit_s: float, end: Callable[[], tuple[str, ...] | None]) -> None:
        """Take the limit, and what ends it and returns what runs on."""
        self._end = end
        self._lock = threading.Lock()
        self._over = False
        self._timer = threading.Timer(limit_s, self._fire)
        self._timer.daemon = True
        self.reached = False
        """Whether the limit came first."""
        self.found: tuple[str, ...] | None = None
        """What runs on; ``None`` where it could not be ended."""

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel()
        self._timer.join()

    def cancel(self) -> None:
        """Let the limit pass from now on."""
        with self._lock:
            self._over = True
        self._timer.cancel()

    def _fire(self) -> None:
        with self._lock:
            if self._over:
                return
            self.reached = True
        try:
            self.found = self._end()
        except ConnectionFailed:
            self.found = None
