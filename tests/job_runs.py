"""Runs whose jobs are real and whose other questions a simulated host answers, for tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.session import Session
from agent.values import Purpose, ToolCall
from tests.lab.world_runs import Says, begin, call
from tests.lab.worlds import World
from tools.command import Command, OnOutput, Result
from tools.connectors.base import Connector


class Mixed:
    """The scripts about jobs go to a real host, and all else to a simulated one."""

    name = "local"

    def __init__(self, world: World, host: Connector) -> None:
        self.world, self.host = world, host
        self.sent = 0
        self.begins: Callable[[], None] = lambda: None

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        if command.argv[:3] != ("sh", "-s", "--"):
            return self.world.run(command, on_output)
        self.sent += 1
        self.begins()
        return self.host.run(command, on_output)

    def close(self) -> None:
        self.host.close()


WORK = Purpose(kind="advance", ref="process_up", postcondition="process_up")


def counted(folder: Path, then: str) -> ToolCall:
    """Return a call that starts a job: it notes in a file that it was begun."""
    script = f"echo begun >> '{folder}/count'; {then}"
    return call("start_job", WORK, argv=["sh", "-c", script], name="load")


def begun_on(host: Connector, folder: Path, brain: Says, world: World) -> tuple[Session, Mixed]:
    """Begin a run whose jobs are real; waits are short."""
    begun = begin(folder, world, brain=brain, mode="supervised", yes=True)
    return begun, settled(begun, host, world)


def settled(begun: Session, host: Connector, world: World) -> Mixed:
    mixed = Mixed(world, host)
    begun.run.connectors = {"local": mixed}

    def sleep(seconds: float) -> None:
        world.sleep(seconds)
        time.sleep(min(seconds, 0.2))

    begun.run.sleep = sleep
    return mixed


def watched(view: Any) -> list[ToolCall]:
    return [call("watch_job", job=f"{view.header.run_id}-t1.1")]
