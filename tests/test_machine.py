"""All facts of a machine in one round trip, from real shells, hosts, containers and an engine."""

from __future__ import annotations

import os
import platform
import resource
import shutil
from pathlib import Path

import pytest

from tests.docker_host import container, use_engine
from tests.lab import lxc
from tests.lab.sshd import server
from tests.machines import MARKER, agree, applets, ask, codes, look, nics
from tests.ssh_host import ME, connector
from tools.connectors.docker import Docker
from tools.connectors.local import Local
from tools.connectors.lxc import Lxc
from tools.machine import read_machine


def test_what_is_told_of_this_machine_is_true() -> None:
    facts = look()
    system, memory, limits = facts.system, facts.memory, facts.limits
    assert system is not None
    assert (system.system, system.arch, system.kernel) == (
        platform.system(),
        platform.machine(),
        platform.release(),
    )
    assert (system.user, system.uid, system.name) == (ME, os.getuid(), platform.node())
    assert system.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert memory is not None
    assert memory.total_mib == int(Path("/proc/meminfo").read_text().split()[1]) // 1024
    assert memory.available_mib is not None
    assert 0 < memory.available_mib <= memory.total_mib
    assert facts.cpu is not None
    assert facts.cpu.cores == len(os.sched_getaffinity(0))
    assert limits is not None
    assert limits.nofile == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    root = next(disk for disk in facts.disks if "root" in disk.paths)
    assert root.total_mib == shutil.disk_usage("/").total // 2**20
    assert all(Path("/sys/class/net", nic.name).exists() for nic in nics(facts))
    assert any(nic.addresses for nic in nics(facts))


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    assert look(TMPDIR=str(tmp_path)).disks
    assert list(tmp_path.iterdir()) == []


def test_the_clock_of_this_machine_is_its_own() -> None:
    clock = look().clock
    assert clock is not None
    assert clock.skew_s is not None
    assert clock.within_s is not None
    assert abs(clock.skew_s) <= clock.within_s + 0.001


@pytest.mark.lab
def test_over_ssh(tmp_path: Path) -> None:
    with server(tmp_path) as sshd:
        host = connector(sshd)
        facts = look(host=host)
        host.close()
    assert agree(facts, look())
    assert facts.problem("processes") is None


def test_noise_around_it_does_not_matter() -> None:
    noise = 'echo "Welcome! m-0000 system=no"; printf "\\033[1mMOTD\\n" >&2; "$@"; echo bye'
    result = ask("sh", "-c", noise, "sh", "sh")
    assert (result.ok, result.stderr) == (True, "\033[1mMOTD\n")
    assert agree(read_machine(result, MARKER), look())


@pytest.mark.parametrize("shell", ["dash", "bash --posix", "busybox sh", "ksh"])
def test_other_shells(shell: str) -> None:
    words = shell.split()
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed here")
    facts = look(*words)
    assert agree(facts, look())
    assert (facts.python is None) == (look().python is None)


@pytest.mark.lab
def test_with_the_programs_of_busybox_alone(tmp_path: Path) -> None:
    folder = applets(tmp_path / "applets")
    facts = look(f"{folder}/sh", PATH=folder)
    assert agree(facts, look())
    assert facts.disks[0].total_mib == look().disks[0].total_mib
    assert [nic.addresses for nic in nics(facts)] == [nic.addresses for nic in nics(look())]
    assert facts.clock is not None
    assert facts.clock.skew_s is not None
    assert abs(facts.clock.skew_s) <= (facts.clock.within_s or 0) + 0.001
    assert codes(facts) >= {"python_missing", "docker_missing"}


def test_without_a_single_program(tmp_path: Path) -> None:
    facts = look("/bin/sh", PATH=str(tmp_path))
    assert facts.memory is not None
    assert facts.memory.total_mib == look().memory.total_mib  # type: ignore[union-attr]
    assert {(problem.part, problem.kind) for problem in facts.problems} >= {
        ("disks", "missing"),
        ("python", "missing"),
    }
    assert facts.clock is None


@pytest.mark.lab
def test_in_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    use_engine(monkeypatch)
    with container("sleep", "600") as name:
        facts = look(host=Docker(name, Local()))
    assert facts.system is not None
    assert facts.system.inside == "docker"
    assert facts.passthrough is not None
    assert facts.limits is not None
    assert facts.limits.shm_mib == 64
    assert codes(facts) >= {"shm_tiny", "docker_missing"}
    other = look().system
    assert other is not None
    assert facts.system.boot_id == other.boot_id


@pytest.mark.lab
def test_in_an_lxc_container(tmp_path: Path) -> None:
    with lxc.container(tmp_path) as name:
        facts = look(host=Lxc(name, Local()))
    assert facts.system is not None
    assert (facts.system.inside, facts.system.name) == ("lxc", "guest")
    assert facts.passthrough is not None
    assert facts.passthrough.unprivileged is False
    assert facts.memory is not None
    assert facts.disks
    assert codes(facts) >= {"python_missing", "docker_missing"}


@pytest.mark.lab
def test_an_engine_and_its_services(monkeypatch: pytest.MonkeyPatch) -> None:
    use_engine(monkeypatch)
    with container("sleep", "600") as name:
        docker = look().docker
    assert docker is not None
    assert docker.server
    assert docker.root
    assert "runc" in docker.runtimes
    service = next(it for it in docker.services if it.name == name)
    assert service.status.startswith("Up")
    assert service.mib is not None
    assert (docker.images or 0) > 0
