"""Carries out ``copy`` commands between the targets of a run, and this machine."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from tools.command import Command, Ending, OnOutput, Result
from tools.connectors.base import Connector
from tools.connectors.docker import Docker
from tools.connectors.local import Local
from tools.connectors.streams import ByteStream, streaming
from tools.errors import ToolFailed
from tools.transfer import HERE
from tools.transfer_session import Copy, copy
from tools.transfer_side import OutOfTime, Place


class Carrying:
    """A target of a run that files can be copied to and from; all else is its connector's."""

    def __init__(self, inner: Connector, targets: Mapping[str, Connector]) -> None:
        """Take the target's own connector, and those of all targets by their names."""
        self._inner, self._targets = inner, targets

    @property
    def name(self) -> str:
        """The target's name."""
        return self._inner.name

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        """Run a command; see ``Connector.run``.

        Raises:
            ConnectionFailed: a target cannot be reached, or is lost.
        """
        if command.via == "transfer":
            return perform(command, self._targets, on_output)
        return self._inner.run(command, on_output)

    def open_stream(self, argv: tuple[str, ...]) -> ByteStream:
        """Start a program whose streams are bytes; see ``Streaming``."""
        return streaming(self._inner).open_stream(argv)

    def close(self) -> None:
        """Close the connector."""
        self._inner.close()


def carrying(targets: Mapping[str, Connector]) -> dict[str, Connector]:
    """Return connectors that also carry files between each other."""
    return {name: Carrying(connector, targets) for name, connector in targets.items()}


def perform(
    command: Command, targets: Mapping[str, Connector], on_output: OnOutput | None
) -> Result:
    """Carry out a copy; its answer is the last line of the output.

    Raises:
        ConnectionFailed: a target cannot be reached, or is lost.
    """
    begun = time.monotonic()

    def tell(text: str) -> None:
        if on_output is not None:
            on_output("stdout", text)

    try:
        wish = _wish(json.loads(command.stdin or "{}"), targets)
        done = copy(replace(wish, until=begun + command.timeout_s), tell)
    except OutOfTime as error:
        lasted = time.monotonic() - begun
        return Result(Ending.TIMED_OUT, stderr=f"{error}\n", duration_s=lasted)
    except ToolFailed as error:
        lasted = time.monotonic() - begun
        return Result(Ending.EXITED, code=1, stderr=f"{error}\n", duration_s=lasted)
    answer = json.dumps(asdict(done)) + "\n"
    lasted = time.monotonic() - begun
    return Result(Ending.EXITED, code=0, stdout=answer, duration_s=lasted)


def _wish(told: Mapping[str, Any], targets: Mapping[str, Connector]) -> Copy:
    return Copy(
        place(told["source"], targets),
        place(told["to"], targets),
        replace=told.get("replace", False),
        direct=told.get("direct", ""),
        tag=told.get("tag", "copy"),
    )


def place(text: str, targets: Mapping[str, Connector]) -> Place:
    """Return the place that ``HOST:/path`` names.

    Raises:
        ToolFailed: there is no such host.
    """
    target, _, path = text.partition(":")
    host, _, container = target.partition("/")
    if host == HERE and host not in targets:
        return Place(Local(), path, sys.executable)
    if host not in targets:
        known = ", ".join((HERE, *sorted(targets)))
        raise ToolFailed(f"there is no host {host}; known: {known}")
    reached = targets[host]
    return Place(Docker(container, reached) if container else reached, path)
