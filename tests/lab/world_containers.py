"""A simulated host that also has one container, asked through the docker program."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.lab.world_packages import exited
from tests.lab.worlds import World
from tools.command import Command, Ending, Result

NAME = "engine"


@dataclass
class ContainerWorld(World):
    """The container writes the same line for ever; whether it works can be seen otherwise."""

    works: bool = True
    """Whether it computes."""
    ended: bool = False
    restarts: bool = False
    """Whether the engine starts it again each time that it is looked at."""
    words: str = "compiling"
    starts: int = 0

    def _recognise(self, command: Command) -> tuple[str, Callable[[Command], Result]]:
        words = command.argv
        self.now += 0.9  # a brain takes its time, and seconds are what docker tells
        if words[:2] == ("docker", "stats"):
            return "docker stats", lambda _: exited("" if self.ended else self._stats())
        if words[:3] == ("docker", "container", "inspect"):
            return "docker inspect", lambda _: exited(self._inspect())
        if words[:2] == ("sh", "-c"):
            return "docker logs", self._logs
        return super()._recognise(command)

    def _stats(self) -> str:
        cpu = f"{99.5 if self.works else 0.2 + self.now % 1:.2f}%"
        use = {"name": NAME, "memory": f"{512 + self.now % 0.5:.2f}MiB / 8GiB", "cpu": cpu}
        return json.dumps(use | {"pids": "9"})

    def _logs(self, command: Command) -> Result:
        marker = command.argv[4]
        seconds = "" if self.ended else str(int(self.now) if self.works else 7)
        logs = f"2026-11-30T12:00:00.000000001Z {self.words}\n"
        return Result(Ending.EXITED, 0, stdout=f"{logs}\n{marker} cpu_s={seconds}\n")

    def _inspect(self) -> str:
        self.starts += self.restarts
        state = {
            "Status": "exited" if self.ended else "running",
            "ExitCode": 1 if self.ended else 0,
            "OOMKilled": False,
            "Error": "",
            "StartedAt": f"2026-11-30T12:00:{self.starts:02}Z",
            "FinishedAt": "0001-01-01T00:00:00Z",
            "Pid": 0 if self.ended else 4000 + self.starts,
        }
        row = {
            "id": "5" * 64,
            "name": f"/{NAME}",
            "image": "lab/engine:1",
            "image_id": "sha256:" + "a" * 64,
            "state": state,
            "created": "2026-11-30T11:59:00Z",
            "restart_count": self.starts,
            "host": "host",
            "restart": {"Name": "no"},
            "memory": 0,
            "auto_remove": False,
            "ports": {},
            "mounts": [],
            "entrypoint": ["serve"],
            "cmd": [],
            "user": "",
            "labels": {},
            "env": [],
        }
        return json.dumps(row)
