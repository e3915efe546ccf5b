"""What the tests of the Docker tools share: this machine with the lab's engine, and calls to it."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.engine import docker_command, engine
from tests.lab.images import image
from tools.base import CallContext, Tool, Watch
from tools.command import OnOutput, Result
from tools.connectors.local import Local

LABEL = f"bringup.run=test-{os.getpid()}"
CALL = CallContext(
    run_id=LABEL.partition("=")[2], call_id="call-1", marker="m-4f1c2a", host_dir="/nonexistent"
)
_numbers = itertools.count()


def use_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let docker programs and our client of this process ask the lab's engine."""
    monkeypatch.setenv("DOCKER_HOST", engine())


def base() -> str:
    """Return the image that most tests run: Debian with Python and coreutils."""
    return image("base")


def new_name() -> str:
    """Return a name for a container or an image that no other test has."""
    return f"bringup-test-{os.getpid()}-{next(_numbers)}"


def run(tool: Tool[Any, Any], on_output: OnOutput | None = None, **args: object) -> Result:
    """Run a tool's command on this machine."""
    return Local().run(tool.command(tool.args_type.model_validate(args), CALL), on_output)


def use(tool: Tool[Any, Any], on_output: OnOutput | None = None, **args: object) -> Any:
    """Run a tool on this machine and return its observation."""
    result = run(tool, on_output, **args)
    return tool.parse(tool.args_type.model_validate(args), CALL, result)


def watch(tool: Watch[Any, Any], samples: int, **args: object) -> Any:
    """Take samples until it is decided, at most so many, and return the last observation."""
    checked = tool.args_type.model_validate(args)
    results: list[Result] = []
    for _ in range(samples):
        results.append(Local().run(tool.command(checked, CALL)))
        seen = tool.parse_all(checked, CALL, results)
        if tool.finished(checked, seen):
            break
    return seen


@contextlib.contextmanager
def container(*words: str) -> Iterator[str]:
    """Give a running container of the base image, and remove it."""
    name = new_name()
    argv = docker_command("run", "--detach", "--name", name, base(), *words)
    try:
        subprocess.run(argv, check=True, capture_output=True)
        yield name
    finally:
        remove(name)


def remove(name: str) -> None:
    """Remove a container, if it is there."""
    argv = docker_command("rm", "--force", "--volumes", name)
    subprocess.run(argv, check=False, capture_output=True)


def remove_image(reference: str) -> None:
    """Remove an image, if it is there."""
    argv = docker_command("image", "rm", reference)
    subprocess.run(argv, check=False, capture_output=True)
