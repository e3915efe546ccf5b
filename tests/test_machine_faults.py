"""The facts of a machine where something is wrong: hidden, missing, silent, hanging, cut off."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agent.doctor.findings import findings
from tests.job_host import is_alive
from tests.lab.engine import engine
from tests.lab.need import need
from tests.machines import MARKER, agree, ask, codes, look, nics, path_without, program, recorded
from tests.ssh_host import ME
from tools.command import Ending
from tools.connectors.local import Local
from tools.machine import MachineFacts, machine_command, read_machine

GPU = Path(__file__).parent / "lab" / "gpu"


def kind(facts: MachineFacts, part: str) -> str:
    """Why a part is not known; empty where it is."""
    problem = facts.problem(part)
    return problem.kind if problem else ""


@contextmanager
def namespace(tmp_path: Path, *mounts: str) -> Iterator[list[str]]:
    """Give the words that run a shell with other mounts."""
    need(os.geteuid() == 0 and shutil.which("unshare") is not None, "mounts need root and unshare")
    file = tmp_path / "enter"
    file.write_text("\n".join([*(f"mount -t tmpfs {it}" for it in mounts), 'exec sh "$@"', ""]))
    yield ["unshare", "--mount", "sh", str(file)]


@pytest.mark.lab
def test_with_proc_hidden(tmp_path: Path) -> None:
    with namespace(tmp_path, "none /proc") as words:
        facts = look(*words)
    assert facts.memory is None
    assert {"memory", "processes"} <= {problem.part for problem in facts.problems}
    assert facts.disks
    assert nics(facts)
    assert "facts_missing" in codes(facts)


@pytest.mark.lab
def test_with_no_place_to_write_to(tmp_path: Path) -> None:
    # The last one hides the script that is being read; the shell has it open.
    places = [f"-o ro none {place}" for place in ("/dev/shm", "/var/tmp", "/tmp")]  # noqa: S108
    with namespace(tmp_path, *places) as words:
        facts = look(*words, HOME="/proc", TMPDIR="/proc")
    assert agree(facts, look())
    assert facts.disks
    assert "disk_read_only" in codes(facts)


@pytest.mark.lab
def test_an_engine_that_is_not_there(tmp_path: Path) -> None:
    need(shutil.which("docker") is not None, "docker is missing (apt-get install docker.io)")
    facts = look(DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    assert facts.docker is not None
    assert "docker_down" in codes(facts)


@pytest.mark.lab
def test_an_engine_that_this_user_may_not_use() -> None:
    need(os.geteuid() == 0 and shutil.which("setpriv") is not None, "another user needs root")
    nobody = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "sh")
    facts = look(*nobody, DOCKER_HOST=engine(), HOME="/nonexistent")
    assert facts.system is not None
    assert facts.system.uid == 65534
    assert kind(facts, "docker") == "denied"
    denied = next(it for it in findings(facts) if it.code == "docker_denied")
    assert facts.docker is not None
    assert facts.docker.socket.startswith("root:")
    assert facts.docker.socket in denied.text
    assert agree(facts, look())


@pytest.mark.lab
def test_an_engine_that_is_silent(tmp_path: Path) -> None:
    need(shutil.which("docker") is not None, "docker is missing (apt-get install docker.io)")
    path = str(tmp_path / "silent.sock")
    held = []
    with closing(socket.socket(socket.AF_UNIX)) as silent:
        silent.bind(path)
        silent.listen()
        silent.settimeout(20)
        threading.Thread(target=lambda: held.append(silent.accept()), daemon=True).start()
        result = ask(env={"DOCKER_HOST": f"unix://{path}"}, slow_s=1)
    for link, _ in held:
        link.close()
    facts = read_machine(result, MARKER)
    assert kind(facts, "docker") == "timed out"
    assert facts.disks
    assert "docker_hangs" in codes(facts)


REPLAY = f"""case "$*" in
  "-q -x") sed "s:<pid>928<:<pid>$OWNER<:" {GPU}/h200_busy.xml ;;
  --query-gpu*) echo "0, 9.0" ;;
  "topo -m") cat {GPU}/h200_topo.txt ;;
  *) echo "unknown option" >&2; exit 2 ;;
esac"""
"""A program in the place of ``nvidia-smi``: what it prints was recorded."""


def test_gpus_and_who_holds_them(tmp_path: Path) -> None:
    path = program(tmp_path / "bin", "nvidia-smi", REPLAY)
    facts = look(PATH=path, OWNER=str(os.getpid()))
    real = recorded("h200_busy")
    assert facts.gpus is not None
    assert real.gpus is not None
    gpu, was = facts.gpus.gpus[0], real.gpus.gpus[0]
    changes = {"holders", "power_w", "uuid"}
    assert gpu.model_dump(exclude=changes) == was.model_dump(exclude=changes)
    holder = gpu.holders[0]
    assert (holder.pid, holder.user, holder.mib) == (os.getpid(), ME, 4102)
    assert "pytest" in holder.command
    assert "gpu_memory_held" in codes(facts)


@pytest.mark.parametrize("programs", ["all", "without timeout"])
def test_a_driver_that_hangs(tmp_path: Path, programs: str) -> None:
    rest = path_without(tmp_path / "some", "timeout") if programs != "all" else os.environ["PATH"]
    text = f"echo $$ >>{tmp_path}/pids; exec sleep 60"
    path = program(tmp_path / "bin", "nvidia-smi", text, rest)
    result = ask(env={"PATH": path}, slow_s=1)
    facts = read_machine(result, MARKER)
    assert result.ok
    assert kind(facts, "gpus") == "timed out"
    assert "gpu_driver_hangs" in codes(facts)
    assert agree(facts, look())
    assert facts.disks
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert not any(is_alive(pid) for pid in pids)


def test_what_keeps_its_output_open_is_not_waited_for(tmp_path: Path) -> None:
    text = f"sleep 60 & echo $! >>{tmp_path}/pids; wait"
    path = program(tmp_path / "bin", "nvidia-smi", text)
    result = ask(env={"PATH": path}, slow_s=1)
    for pid in (tmp_path / "pids").read_text().split():
        if is_alive(int(pid)):
            os.kill(int(pid), 9)
    assert result.ok
    assert kind(read_machine(result, MARKER), "gpus") == "timed out"


def test_a_failing_driver_is_quoted(tmp_path: Path) -> None:
    words = "Failed to initialize NVML: Driver/library version mismatch"
    path = program(tmp_path / "bin", "nvidia-smi", f"echo {words!r}; exit 18")
    facts = look(PATH=path)
    problem = facts.problem("gpus")
    assert problem is not None
    assert (problem.kind, problem.note) == ("failed", words)
    assert codes(facts) & {"gpu_driver_mismatch", "gpu_guest_mismatch"}


def test_what_came_before_it_was_ended_is_kept(tmp_path: Path) -> None:
    path = program(tmp_path / "bin", "nvidia-smi", "exec sleep 60")
    env = {"PATH": path, "TMPDIR": str(tmp_path)}
    result = Local().run(replace(machine_command(MARKER, limit_s=3.0, slow_s=30), env=env))
    assert result.ending is Ending.TIMED_OUT
    facts = read_machine(result, MARKER)
    assert facts.memory is not None
    assert kind(facts, "disks") == "cut off"
    assert "docker_missing" not in codes(facts)
    assert not list(tmp_path.glob(".bringup-*"))
