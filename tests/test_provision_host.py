"""A bare Debian host is made ready by real packages, and is afterwards as it was before."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.engine import carry_out
from agent.runs import RunFolder
from agent.session import take_up
from agent.undo import undo
from agent.values import CallStatus, Outcome, Purpose
from tests.lab.bare import Bare, bare
from tests.lab.command import BRINGUP
from tests.lab.runs import driven
from tests.lab.world_runs import Says, call
from tests.provision_desk import (
    Answers,
    changed,
    command,
    provision,
    report_of,
    yes_unless_by_hand,
)

pytestmark = pytest.mark.lab
VENV = "python3-venv python3.11-venv python3-pip-whl python3-setuptools-whl"
STARTS_DOCKER = "needs operator: run there, then answer yes: sudo service docker start"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    with bare(tmp_path_factory.mktemp("bare")) as host:
        yield host


@pytest.fixture
def host(machine: Bare, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bare]:
    """The machine, and the promise that nothing of a test is left on it."""
    monkeypatch.setenv("BRINGUP_SSH_CONFIG", str(machine.config))
    before = machine.packages()
    yield machine
    assert machine.packages() == before
    assert machine.root("ls /home/*/ /etc/security/limits.d | grep -v :").split() == []
    assert "docker" not in machine.root("id worker").split("groups=")[1]


def test_python_and_docker_each_asked_and_taken_back(host: Bare, tmp_path: Path) -> None:
    said = Answers(no="needs operator")
    with driven(
        provision("worker", "python", "docker"), tmp_path, mode="supervised", answers=said
    ) as done:
        report = report_of(done)
        assert changed(done) == [
            "install_packages",
            "make_environment",
            "install_packages",
            "add_to_group",
        ]
        assert said.titles == [
            "Install python3, python3-venv as root, with what they need.",
            "Make a Python environment in ~/bringup-env.",
            "Install docker.io as root, with what they need.",
            "Add the user to the group docker. Its members can become root.",
            STARTS_DOCKER,
        ]
        assert "the Docker daemon does not answer: Cannot connect" in report["cause"]
        assert "It was refused (person said no: not on this host)" in report["advice"]
        assert host.root("su worker -c '~/bringup-env/bin/python -m pip --version'")
        undone = undo(done.run)
        assert undone.left == []
        kinds = [item.partition(":")[0] for item in undone.taken_back]
        assert kinds == ["group", "packages", "environment", "packages"]
        assert undo(done.run).taken_back == [], "nothing is taken back twice"


def test_a_no_to_each_step_ends_with_the_refusal(host: Bare, tmp_path: Path) -> None:
    made: list[str] = []
    for title in ("Install python3", "Make a Python", "Install docker.io", "Add the user"):
        goal = provision("worker", "python", "docker")
        with driven(goal, tmp_path, mode="supervised", answers=Answers(no=title)) as done:
            report = report_of(done)
            assert report["outcome"] == "not_reached"
            assert report["cause"].endswith("was refused: person said no: not on this host")
            made += changed(done)
            if title == "Add the user":
                assert "docker" not in host.root("id worker").split("groups=")[1]
    assert made == ["install_packages", "make_environment", "install_packages"]
    for folder in reversed(sorted((tmp_path / "runs").iterdir())):
        taken = take_up(RunFolder(folder, folder.name), environ={})
        assert undo(taken.run).left == []
        taken.close()


def test_without_sudo_it_waits_for_a_person_and_goes_on(host: Bare, tmp_path: Path) -> None:
    bringup = command(host, tmp_path)
    parked = bringup("provision", "typist", "--with", "python", "--yes")
    assert parked.code == 3
    assert "sudo apt-get install --no-install-recommends python3 python3-venv" in parked.err
    assert "sudo wants a password from typist" in parked.err
    still = bringup("resume", "last")
    assert still.code == 3, "it was not done, so it waits again"
    host.root("apt-get -qq update && apt-get -qq -y install --no-install-recommends python3-venv")
    done = bringup("resume", "last")
    assert done.code == 0, done.err
    assert bringup("undo", "last").code == 0
    host.root(f"apt-get -qq -y remove {VENV}")


def test_killed_in_the_middle_of_apt(host: Bare, tmp_path: Path) -> None:
    bringup = command(host, tmp_path)
    words = [str(BRINGUP), "provision", "worker", "--with", "docker", "--yes"]
    env = {**os.environ, "HOME": str(tmp_path), "BRINGUP_SSH_CONFIG": str(host.config)}
    env = {name: value for name, value in env.items() if not name.startswith("XDG_")}
    with subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL, cwd=tmp_path) as process:
        end = time.monotonic() + 60
        while "docker.io" not in host.root("dpkg -l | grep -v ^rc || true"):
            assert time.monotonic() < end, "apt never began"
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    parked = bringup("resume", "last")
    assert parked.code == 3, parked.err
    assert STARTS_DOCKER in parked.err, "it went on to the daemon, which does not run there"
    assert "containerd" in parked.err.split("install packages (")[1], "also what came before"
    undone = bringup("undo", "last")
    assert undone.code == 0, undone.err
    assert "docker.io" in undone.out


def test_limits_reach_the_next_login_and_never_lock_one_out(host: Bare, tmp_path: Path) -> None:
    site = "/etc/security/limits.d/50-site.conf"
    host.root(f"printf '* hard memlock 64\\n* hard nofile 1024\\n' > {site}")
    try:
        with driven(provision("worker", "limits"), tmp_path, mode="auto", yes=True) as done:
            assert "not even root may raise memlock" in report_of(done)["cause"]
            assert host.root("ls /etc/security/limits.d") == "50-site.conf\n"
        goal = provision("worker", "limits", memlock="1024", nofile="900")
        with driven(goal, tmp_path, mode="supervised", yes=True) as done:
            assert report_of(done)["outcome"] == Outcome.READY
            kept = host.root("cat /etc/security/limits.d/90-bringup.conf")
            assert "* hard memlock 1024" in kept
            assert "* hard nofile 1024" in kept, "what is higher already stays"
            assert undo(done.run).left == []
    finally:
        host.root(f"rm {site}")


def test_any_brain_does_it_with_the_same_tools(host: Bare, tmp_path: Path) -> None:
    def advance(check: str) -> Purpose:
        return Purpose(kind="advance", ref=check, postcondition=check)

    brain = Says(
        [call("plan_packages", target="worker", packages=["python3-venv"])],
        [
            call(
                "install_packages",
                advance("python_installed"),
                "worker",
                packages=["python3-venv"],
            ),
            call(
                "make_environment",
                advance("python_ready"),
                "worker",
                environment="~/bringup-env",
            ),
        ],
        [call("claim_ready")],
    )
    said = Answers()
    with driven(
        provision("worker", "python"), tmp_path, mode="supervised", brain=brain, answers=said
    ) as done:
        assert report_of(done)["outcome"] == Outcome.READY, report_of(done)
        assert len(said.titles) == 2, "a model's changes are asked about like all others"
        installed = done.run.view.changes[0].call
        other = {"what": "packages", "call": installed.id, "names": ["sudo"]}
        purpose = Purpose(kind="recover", ref=installed.id)
        refused = call("take_back", purpose, "worker", **other)
        assert carry_out(done.run, refused) is CallStatus.FAILED, "sudo was there before"
        assert undo(done.run).left == []


def test_the_next_connection_has_the_group(host: Bare, tmp_path: Path) -> None:
    host.root("groupadd --force docker && touch /usr/bin/dockerd && chmod +x /usr/bin/dockerd")
    host.root(
        "printf '#!/bin/sh\\nid -nG >&2; exit 1\\n' > /usr/bin/docker; chmod +x /usr/bin/docker"
    )
    try:
        with driven(
            provision("worker", "docker"), tmp_path, mode="supervised", answers=yes_unless_by_hand
        ) as done:
            assert changed(done) == ["add_to_group"]
            cause = next(iter(done.run.view.diagnoses.values())).cause
            assert cause == "the Docker daemon does not answer: worker docker"
            assert undo(done.run).left == []
    finally:
        host.root("rm /usr/bin/docker /usr/bin/dockerd")
