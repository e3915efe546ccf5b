"""Runs that break off or fail half-way on a host: what is there is named, found again, and removed.

Servers that end at once, a full disk, an image that goes, a name that is taken, Ctrl-C, kill -9.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.command import BRINGUP, Desk, wait_for
from tests.lab.engine import docker_run
from tests.lab.images import image
from tests.remote_desk import (
    derived_image,
    docker_desk,
    ends,
    look_only,
    of_image,
    own,
    to_serve,
    told,
    under_way,
)

pytestmark = pytest.mark.lab
PATIENT = "import signal, time; signal.signal(15, lambda *_: exit()); time.sleep(300)"
"""A server that never answers, and ends when it is asked to."""
FULL = "ENV TMPDIR=/dev/shm PIP_TARGET=/dev/shm/packages"
"""What an install in a build writes goes to a disk of 64 MB."""


@pytest.fixture
def here(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with docker_desk(tmp_path, tmp_path_factory.getbasetemp() / "kept-desk") as made:
        yield made


def test_a_disk_that_is_full_during_a_build_that_was_killed_before(here: Desk) -> None:
    with derived_image(FULL) as ref:
        goal = look_only(here, candidates=[of_image(ref, "x")])
        with under_way(here, goal, "begins: build image") as process:
            process.kill()
            process.wait(10)
        done = here.bringup("resume", "last", "--json")
    builds = [row for row in done.events if row["type"] == "call_queued"]
    assert [row["call"]["tool"] for row in builds].count("build_image") == 1, "tried once"
    assert (done.code, own(here)) == (1, [])
    assert "the disk was full while bringup." in told(done)["cause"]
    assert "docker system df" in told(done)["advice"]


def test_ctrl_c_during_a_build(here: Desk) -> None:
    with derived_image("ENV OF=us") as ref:
        goal = look_only(here, candidates=[of_image(ref, "x")])
        with under_way(here, goal, "begins: build image") as process:
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=20)[1]
        assert process.returncode == 130
        assert "build_image was cut off: image bringup." in said
        assert "nothing was left to undo" in here.bringup("undo", "last").out


def test_a_name_that_is_taken(here: Desk) -> None:
    name = f"bringup-test-{time.time_ns()}"
    docker_run("run", "--detach", "--init", "--name", name, image("base"), "sleep", "300")
    try:
        goal = to_serve(here, of_image(image("transformers-4"), "true"), called=name)
        report = ends(here, 1, "deploy", goal, "--mode", "auto")
        there = f"a container named {name} is there already"
        assert report["cause"] == f"{there}, and it is not this run's"
        assert "docker rm" not in report["advice"], "it may be anybody's"
        assert "nothing was left running" in here.bringup("stop", "last").out
        assert "nothing was left to undo" in here.bringup("undo", "last").out
        assert docker_run("inspect", "--format", "{{.State.Running}}", name).strip() == "true"
    finally:
        docker_run("rm", "--force", name)


def test_servers_that_end_at_once(here: Desk) -> None:
    root = "try:\n  {}['first cause']\nexcept KeyError as e:\n  raise RuntimeError('later') from e"
    two = [
        of_image(image("transformers-4"), "python3", "-c", root),
        of_image(image("engine-old"), "python3", "-c", "raise OSError('no such device')"),
    ]
    done = here.bringup("deploy", to_serve(here, *two), "--mode", "auto", "--json")
    report = told(done)
    assert done.code == 1
    (first,) = report["rejected"]
    assert "KeyError: 'first cause'" in first["reason"], "the earliest error of its log"
    assert "OSError: no such device" in report["cause"]
    assert (report["running"], len(own(here))) == ([], 2)
    assert all(name in json.dumps(report) for name in own(here)), "what is left there is named"
    assert "nothing was left running" in here.bringup("stop", "last").out
    assert here.bringup("undo", "last").out.count("removed the container") == 2
    assert own(here) == []
    assert "nothing was left to undo" in here.bringup("undo", "last").out


def test_an_image_that_vanished(here: Desk) -> None:
    with derived_image("ENV OF=us") as ref:
        assert here.bringup("deploy", to_serve(here, of_image(ref, "true"))).code == 3
    done = here.bringup("approve", "last", "--json")
    assert (done.code, own(here)) == (1, [])
    assert told(done)["cause"] == f"the image is not on the host any more: {ref}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("after", ["begins: start service", "change: start service"])
def test_a_run_that_ends_while_its_server_starts(
    here: Desk, number: signal.Signals, after: str
) -> None:
    goal = to_serve(here, of_image(image("transformers-4"), "python3", "-c", PATIENT))
    with under_way(here, goal, after) as process:
        process.send_signal(number)
        said = process.communicate(timeout=20)[1]
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert all(f"still runs: {name}" in said for name in own(here))
    else:
        before = samples(here)
        with here.running("resume", "last", until="bringup:") as process:
            end = time.monotonic() + 20
            while samples(here) < before + 3:
                assert time.monotonic() < end, "it does not watch its server"
                time.sleep(0.1)
            assert len(own(here)) == 1, "no second server"
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 130
    left = own(here)
    if left:
        assert f"left: container {left[0]} " in here.bringup("clean", "local").out
    undone = here.bringup("undo", "last", "--json")
    assert (undone.code, undone.data["left"], undone.data["removed"]) == (0, [], left)
    assert own(here) == []
    assert "nothing was left to undo" in here.bringup("undo", "last").out


def samples(here: Desk) -> int:
    """Return how often the one run has had an answer of its host."""
    (path,) = here.runs.glob("2*")
    return (path / "transcript.jsonl").read_text().count('"type":"call_sampled"')


def test_two_runs_on_one_host_at_once(here: Desk) -> None:
    goal = to_serve(here, of_image(image("transformers-4"), "python3", "-c", PATIENT))
    words = [str(BRINGUP), "deploy", goal, "--mode", "auto"]
    env = here.environment({})
    with contextlib.ExitStack() as stack:
        both = [
            stack.enter_context(
                subprocess.Popen(words, cwd=here.folder, env=env, stderr=subprocess.PIPE, text=True)
            )
            for _ in range(2)
        ]
        for process in both:
            wait_for(process.stderr or sys.stdin, "change: start service")
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
    assert [process.returncode for process in both] == [130, 130]
    assert len(own(here)) == 2
    for path in here.runs.glob("2*"):
        assert here.bringup("undo", path.name).code == 0
    assert own(here) == []
