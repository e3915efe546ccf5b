"""The place of story A: an ssh host with Docker, a hub, candidate images, a service in the way."""

from __future__ import annotations

import contextlib
import fcntl
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agent.goal import Goal, load_goal
from tests.lab.engine import LAB, docker_run
from tests.lab.hub import Hub, hub
from tests.lab.images import image
from tests.lab.moe_checkpoint import moe_checkpoint
from tests.lab.runs import free_port
from tests.lab.spark import Spark, spark

MODEL = "Qwen/Qwen3.5-tiny-MoE"
SERVICE = "glm-flash"
HELD_MIB = 2048
"""What the service in the way holds."""
STORY = ("engine-old", "engine-ready", "engine-other")
"""The candidates of the story: too old, ready but for its config parser, of another engine."""


RUN_ID = re.compile(r" 2\d{7}-\d{6}-[0-9a-f]+$")
"""The label of what a run has made; that of a tool's own test is another."""


@dataclass(frozen=True)
class Story:
    """A place that a goal can be brought up in."""

    spark: Spark
    hub: Hub
    port: int
    path: Path
    """The goal's file."""

    @property
    def goal(self) -> Goal:
        """The goal as `deploy` reads it."""
        return load_goal(self.path)

    @property
    def variables(self) -> dict[str, str]:
        """What `bringup` needs in its environment to find the host."""
        return {"BRINGUP_SSH_CONFIG": str(self.spark.config)}


@contextlib.contextmanager
def story(
    folder: Path,
    *,
    candidates: Sequence[str] = STORY,
    foreign: bool = True,
    known: bool = True,
    port: int = 0,
    **more: Any,
) -> Iterator[Story]:
    """Prepare the place while the block runs, and take away what runs have left.

    Args:
        folder: An empty folder.
        candidates: Names of the lab's images, in order.
        foreign: Whether somebody else's service holds port and memory.
        known: Whether the host's key is known.
        port: The port that the server is to have; 0 for any that is free.
        more: Replaces keys of the goal.
    """
    named = [image(name) for name in candidates]
    port = port or free_port()
    with contextlib.ExitStack() as stack:
        stack.enter_context(alone())
        host = stack.enter_context(spark(folder / "host", known=known))
        server = stack.enter_context(hub({MODEL: moe_checkpoint()}))
        if foreign:
            stack.enter_context(service(port))
        needs = available_mib() + (HELD_MIB // 4 if foreign else -HELD_MIB)
        goal = {
            "model": MODEL,
            "hub": server.url,
            "hosts": [{"address": host.name, "models": str(host.models)}],
            "candidates": [
                {"image": ref, "engine": "vllm" if "vllm" in ref else "sglang"} for ref in named
            ],
            "port": port,
            "needs": {"memory_mib": needs},
            "allow": {"stop": [SERVICE]},
            "limits": {"steps": 60, "minutes": 20},
            "on_interrupt": "stop",
        }
        path = folder / "goal.yaml"
        path.write_text(yaml.safe_dump(goal | more, sort_keys=False), encoding="utf-8")
        yield Story(host, server, port, path)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Hold the engine for one story at a time: the service in the way has one name."""
    LAB.mkdir(parents=True, exist_ok=True)
    with (LAB / "story.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def service(port: int, name: str = SERVICE) -> Iterator[str]:
    """Run somebody else's service while the block runs; it holds a port and memory."""
    docker_run("rm", "--force", name)
    words = ("--detach", "--name", name, "--network", "host", "--restart", "unless-stopped")
    held = ("--env", f"HOLD_MIB={HELD_MIB}", image("glm"))
    serve = ("vllm", "serve", "/models/glm-4.7-flash", "--served-model-name", "glm-4.7-flash")
    docker_run("run", *words, *held, *serve, "--port", str(port))
    try:
        wait_for_port(port)
        yield name
    finally:
        docker_run("rm", "--force", name)


def wait_for_port(port: int, seconds: float = 20.0) -> None:
    """Wait until somebody listens there.

    Raises:
        TimeoutError: Nobody did in time.
    """
    import socket
    import time

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nobody listens on port {port}")


def available_mib() -> int:
    """Return the memory that this machine has available."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    raise RuntimeError("this system does not say how much memory is available")


def derived_images() -> list[str]:
    """Return the images that runs have derived on the lab's engine."""
    words = ("--filter", "label=bringup.run", "--format", "{{.Repository}}")
    return [name for name in docker_run("images", *words).split() if name.startswith("bringup.")]


def forget_derived() -> None:
    """Remove what runs have left on the lab's engine: their containers and images."""
    form = '{{.ID}} {{.Label "bringup.run"}}'
    rows = docker_run("ps", "--all", "--filter", "label=bringup.run", "--format", form)
    left = [row.split()[0] for row in rows.splitlines() if RUN_ID.search(row)]
    for name in left:
        with contextlib.suppress(RuntimeError):  # it is going away by itself
            docker_run("rm", "--force", name)
    images = derived_images()
    if images:
        docker_run("rmi", "--force", *images)


class Yes(dict[str, Any]):
    """Answers every question with yes."""

    def __bool__(self) -> bool:
        """It has answers, even if none is kept."""
        return True

    def get(self, key: str, default: Any = None) -> Any:
        """Return yes, whatever is asked, but for what is kept."""
        if key in self:
            return self[key]
        return {"answer": "yes", "by": "person", "note": ""}
