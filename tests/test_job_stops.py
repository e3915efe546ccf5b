"""Ending jobs whose processes do not make it easy: real processes, and an imitated GPU."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.job_host import Host, is_alive, wait_for
from tools.jobs import JobStopped, StopJob

FREEZER = Path("/sys/fs/cgroup/freezer")
"""Cgroups of the first version hold processes where not even SIGKILL reaches them."""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "host dir")
    yield host
    host.clear()


def stop(host: Host, job: str, grace_s: int = 1) -> JobStopped:
    seen = host.use(StopJob(), {"job": job, "grace_s": grace_s})
    assert isinstance(seen, JobStopped)
    return seen


def number_in(host: Host, job: str) -> int:
    wait_for(lambda: host.logs(job, stream="out").text.endswith("\n"))
    return int(host.logs(job, stream="out").text)


ESCAPES = "setsid sh -c 'echo $$; exec sleep 60' & "


def test_a_child_that_left_the_group_is_counted_and_ended(host: Host) -> None:
    job = host.start("sh", "-c", f"{ESCAPES} sleep 60")
    child = number_in(host, job.job)
    assert os.getpgid(child) != os.getpgid(job.pid)
    assert host.status(job.job).processes == 3
    assert stop(host, job.job).headline() == f"{job.job}: stopped"
    assert not is_alive(child)


@pytest.mark.parametrize("whole", [False, True], ids=["the leader", "the whole group"])
def test_what_outlives_a_killed_job_is_found_and_ended(host: Host, whole: bool) -> None:
    job = host.start("sh", "-c", f"{ESCAPES} sleep 60")
    child, group = number_in(host, job.job), os.getpgid(job.pid)
    if whole:
        os.killpg(group, signal.SIGKILL)
    else:
        os.kill(group, signal.SIGKILL)
        assert host.status(job.job).state == "running"
        os.kill(job.pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(job.pid))
    state = host.status(job.job)
    assert (state.state, state.processes) == ("lost", 1 if whole else 2)
    assert stop(host, job.job).outcome == "stopped"
    assert not is_alive(child)
    assert host.status(job.job).processes == 0


def test_the_mark_of_another_job_is_not_its_own(host: Host) -> None:
    script = f"{ESCAPES} sleep 60"
    one, ten = (
        host.start("sh", "-c", script, call_id="c1"),
        host.start("sh", "-c", script, call_id="c10"),
    )
    child = number_in(host, ten.job)
    assert stop(host, one.job).outcome == "stopped"
    assert is_alive(child)
    assert host.status(ten.job).processes == 3


def test_stopping_is_bounded_and_does_not_hang_on_a_long_grace(host: Host) -> None:
    job = host.start("sleep", "60")
    begun = time.monotonic()
    assert stop(host, job.job, 30).outcome == "stopped"
    assert time.monotonic() - begun < 20, "it ends when the job does"


@pytest.fixture
def frozen() -> Iterator[Path]:
    if not os.access(FREEZER / "cgroup.procs", os.W_OK):
        pytest.skip("no freezer of cgroups version 1 here")
    folder = FREEZER / f"bringup-test-{os.getpid()}"
    folder.mkdir()
    yield folder
    (folder / "freezer.state").write_text("THAWED")
    wait_for(lambda: not (folder / "cgroup.procs").read_text())
    folder.rmdir()


def test_a_process_that_cannot_be_killed_needs_the_operator(host: Host, frozen: Path) -> None:
    job = host.start("sh", "-c", "sleep 60 & echo $!; wait")
    child = number_in(host, job.job)
    (frozen / "cgroup.procs").write_text(str(child))
    (frozen / "freezer.state").write_text("FROZEN")
    wait_for(lambda: (frozen / "freezer.state").read_text() == "FROZEN\n")
    begun = time.monotonic()
    seen = stop(host, job.job)
    assert time.monotonic() - begun < 20
    assert (seen.outcome, seen.left) == ("survived", (f"{child} (waits in the kernel) sleep",))
    assert "needs the operator" in seen.headline()
    assert not is_alive(job.pid), "the others are ended"


# --- memory of GPUs, told by an nvidia-smi of our own

SMI = """#!/bin/sh
[ "$*" = "--query-compute-apps=pid,used_memory --format=csv,noheader,nounits" ] || exit 9
cat "{rows}"
"""


def gpu(host: Host, folder: Path, rows: str) -> None:
    """Put an nvidia-smi on the host that lists these processes, in the form of the real one."""
    folder.mkdir(exist_ok=True)
    (folder / "rows").write_text(rows)
    program = folder / "nvidia-smi"
    program.write_text(SMI.format(rows=folder / "rows"))
    program.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    host.change = lambda command: replace(command, env={**command.env, "PATH": path})


def test_memory_that_a_driver_still_holds_is_named(host: Host, tmp_path: Path) -> None:
    other = host.start("sleep", "60")
    job = host.start("sh", "-c", "sleep 60 & echo $!; wait")
    child = number_in(host, job.job)
    rows = f"{other.pid}, 71234\n{child}, 8192\n{job.pid}, [N/A]\n"
    gpu(host, tmp_path / "bin", rows)
    seen = stop(host, job.job)
    assert seen.outcome == "stopped"
    assert seen.left == (
        f"{child} (holds 8192 MiB of GPU memory)",
        f"{job.pid} (holds GPU memory)",
    )
    assert str(other.pid) not in seen.headline()
    assert is_alive(other.pid), "a process of others is never touched"
    (tmp_path / "bin" / "rows").write_text(f"{other.pid}, 71234\n")
    assert stop(host, other.job).left == (f"{other.pid} (holds 71234 MiB of GPU memory)",)
    assert stop(host, job.job).left is None


def test_a_worker_that_keeps_the_gpu_is_ended_with_the_server(host: Host, tmp_path: Path) -> None:
    job = host.start("sh", "-c", f"{ESCAPES} sleep 60")
    worker = number_in(host, job.job)
    gpu(host, tmp_path / "bin", "")
    os.killpg(os.getpgid(job.pid), signal.SIGKILL)
    wait_for(lambda: not is_alive(job.pid))
    assert is_alive(worker)
    assert (stop(host, job.job).outcome, is_alive(worker)) == ("stopped", False)


# --- what little a host may have


def hides_proc(host: Host, *more: str) -> None:
    """Run what follows where /proc is hidden: no program can read it, ps neither."""
    script = 'mount -t tmpfs none /proc || exit 97; exec "$@"'
    words = ("unshare", "--mount", "sh", "-c", script, "sh", *more)
    host.change = lambda command: replace(command, argv=(*words, *command.argv))


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="hiding /proc needs root")
def test_a_job_where_proc_is_hidden(host: Host) -> None:
    hides_proc(host)
    job = host.start("sh", "-c", "trap 'exit 3' TERM; while :; do sleep 0.1; done", call_id="c1")
    assert job.start_time == "pipe"
    assert host.start("true", call_id="c1").model_copy(update={"already": False}) == job
    state = host.status(job.job)
    assert (state.state, state.pid) == ("running", job.pid)
    assert stop(host, job.job, 5).outcome == "stopped"
    assert not is_alive(job.pid)
    state = host.status(job.job)
    assert (state.state, state.code) == ("exited", 3)
    ended = host.start("sh", "-c", "echo hi; exit 5").job
    assert host.ended(ended).code == 5
    lost = host.start("sleep", "60")
    os.killpg(os.getpgid(lost.pid), signal.SIGKILL)
    wait_for(lambda: not is_alive(lost.pid))
    assert host.status(lost.job).state == "lost"
    assert stop(host, lost.job).outcome == "was_not_running"


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="hiding /proc needs root")
def test_where_proc_is_hidden_a_pid_of_others_is_not_touched(host: Host) -> None:
    hides_proc(host)
    other, job = host.start("sleep", "60"), host.start("sleep", "60")
    os.killpg(os.getpgid(job.pid), signal.SIGKILL)
    wait_for(lambda: not is_alive(job.pid))
    group = os.getpgid(other.pid)
    (host.path(job.job) / "pid").write_text(f"{other.pid} pipe\n")
    (host.path(job.job) / "group").write_text(f"{group} pipe\n")
    assert host.status(job.job).state == "lost"
    assert stop(host, job.job).outcome == "was_not_running"
    assert is_alive(other.pid)


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="hidepid needs root")
def test_a_user_who_sees_only_his_own_processes() -> None:
    script = 'mount -t proc -o hidepid=2 proc /proc || exit 97; exec "$@"'
    user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    words = ("unshare", "--mount", "sh", "-c", script, "sh", *user)
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, 65534, 65534)
        host = Host(Path(folder))
        host.change = lambda command: replace(command, argv=(*words, *command.argv))
        job = host.start("sh", "-c", f"{ESCAPES} sleep 60")
        child = number_in(host, job.job)
        assert host.status(job.job).processes == 3
        assert stop(host, job.job).outcome == "stopped"
    assert not is_alive(child)
