"""Jobs inside real containers: a restart, and another container under the same name, say so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.job_host import Host
from tests.lab.engine import docker_command, docker_run
from tests.lab.images import image
from tools.command import Command
from tools.errors import ToolFailed

pytestmark = pytest.mark.lab


class Place:
    """A container whose folder for jobs lies on this machine."""

    def __init__(self, folder: Path) -> None:
        self.name, self.folder = f"bringup-test-jobs-{time.time_ns()}", folder
        self.container = ""
        self.host = Host(Path("/jobs"))
        self.host.change = self.within

    def within(self, command: Command) -> Command:
        env = [word for name, value in command.env.items() for word in ("--env", f"{name}={value}")]
        words = docker_command("exec", "--interactive", *env, self.name)
        return replace(command, argv=(*words, *command.argv), env={})

    def make(self) -> None:
        """Make a container of this name."""
        options = ("--detach", "--init", "--hostname", "spark-1", "--label", "bringup.test=jobs")
        mount = ("--volume", f"{self.folder}:/jobs")
        words = ("run", *options, *mount, "--name", self.name, image("base"), "sleep", "300")
        self.container = docker_run(*words).strip()[:12]

    def remove(self) -> None:
        docker_run("rm", "--force", self.name)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    made.make()
    yield made
    made.remove()


def test_a_container_that_was_restarted(place: Place) -> None:
    job = place.host.start("sleep", "60").job
    assert place.host.status(job).state == "running"
    done = place.host.start("sh", "-c", "exit 3").job
    assert place.host.ended(done).code == 3
    docker_run("restart", "--time", "0", place.name)
    seen = place.host.status(job)
    assert (seen.state, seen.code) == ("lost", None)
    assert seen.note == "the container was started anew since it was started"
    assert place.host.stop(job) == "was_not_running"
    assert place.host.status(done).code == 3


def test_another_container_under_the_same_name(place: Place) -> None:
    before = place.container
    job = place.host.start("sleep", "60").job
    assert place.host.stop(job) == "stopped"
    job = place.host.start("sleep", "60", call_id="c7").job
    place.remove()
    place.make()
    here = f"this is in the container {place.container}"
    words = f"it was started in the container {before}, and {here}"
    seen = place.host.status(job)
    assert seen.state == "unknown"
    assert seen.note.startswith(words)
    with pytest.raises(ToolFailed, match=words):
        place.host.stop(job)
    again = place.host.start("sleep", "60", call_id="c7")
    assert again.already
    assert words in (again.note or "")
