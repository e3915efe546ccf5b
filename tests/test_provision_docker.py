"""A real Docker daemon on a host that bringup has made ready; NVIDIA's programs are imitated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.undo import undo
from tests.lab.bare import Bare, bare
from tests.lab.runs import driven
from tests.provision_desk import Answers, command, provision, report_of

pytestmark = pytest.mark.lab
MAY_START = r"sed -i 's/^\(\s*\)ulimit .*/\1:/' /etc/init.d/docker"
"""In a container the init script may not raise limits; what it is for works without."""
KEEPER = (
    "apt-get -qq -y install busybox-static >/dev/null 2>&1; tar -C / -c bin/busybox"
    " | docker import - busy; docker run -d --name keeper --network none busy"
    " /bin/busybox sleep 900"
)
NVIDIA = {
    "nvidia-smi": "GPU 0: NVIDIA GB10 (UUID: GPU-00000000-0000-0000-0000-000000000000)",
    "nvidia-ctk": "NVIDIA Container Toolkit CLI version 1.17.8",
}
"""What they say where there is such a GPU, as far as bringup reads it."""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    with bare(tmp_path_factory.mktemp("able"), able=True) as machine:
        machine.root("mount -o remount,rw /proc/sys")
        yield machine


def test_docker_after_an_operator_has_started_it(host: Bare, tmp_path: Path) -> None:
    bringup = command(host, tmp_path)
    parked = bringup("provision", "worker", "--with", "docker", "--yes")
    assert parked.code == 3, parked.err
    assert "sudo service docker start" in parked.err
    host.root(MAY_START)
    host.root("service docker start")
    host.root("until docker version >/dev/null 2>&1; do sleep 0.2; done")
    done = bringup("resume", "last")
    assert done.code == 0, done.err
    assert "docker_usable: Docker 2" in done.err


def test_nvidia_runtime_is_merged_and_taken_back(
    host: Bare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRINGUP_SSH_CONFIG", str(host.config))
    for name, says in NVIDIA.items():
        host.root(
            f"printf '#!/bin/sh\\necho \"{says}\"\\n' >/usr/bin/{name}; chmod +x /usr/bin/{name}"
        )
    host.root("""echo '{"log-driver": "json-file"}' >/etc/docker/daemon.json""")
    host.root(KEEPER)
    said = Answers()
    goal = provision("worker", "docker", "nvidia")
    with driven(goal, tmp_path, mode="auto", yes=True, answers=said) as done:
        assert report_of(done)["outcome"] == "ready"
        title = "Add NVIDIA's runtime to daemon.json and restart Docker; these stop: keeper."
        assert said.titles == [title], "a flag does not answer it"
        merged = json.loads(host.root("cat /etc/docker/daemon.json"))
        assert merged["log-driver"] == "json-file"
        assert merged["runtimes"]["nvidia"]["path"] == "nvidia-container-runtime"
        assert undo(done.run).left == []
    assert json.loads(host.root("cat /etc/docker/daemon.json")) == {"log-driver": "json-file"}
    assert "nvidia" not in host.root("docker info --format '{{json .Runtimes}}'")
