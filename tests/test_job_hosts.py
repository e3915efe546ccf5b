"""Where jobs are, and on which host, boot and container: with real namespaces and file systems."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.job_host import LOCAL, Host, is_alive, spare, wait_for
from tests.lab.need import need
from tools.command import Command
from tools.errors import ToolFailed
from tools.job_start import StartJob, StartJobArgs
from tools.job_watch import WatchJob
from tools.jobs import StopJob
from tools.server import WatchServer


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "host dir")
    yield host
    host.clear()


def inside(setup: str, *values: str) -> Callable[[Command], Command]:
    """Return a change that runs a command in namespaces of its own, made ready by a script."""
    need(os.geteuid() == 0 and sys.platform == "linux", "namespaces need root on Linux")
    script = f'{setup}\nshift {len(values)}\nexec "$@"'

    def change(command: Command) -> Command:
        words = ("unshare", "--mount", "--uts", "sh", "-c", script, "sh", *values, *command.argv)
        return replace(command, argv=words)

    return change


def machine(folder: Path, name: str, machine_id: str) -> Callable[[Command], Command]:
    """Return a change that makes this machine look like another one, which shares its files."""
    file = folder / f"machine-id-{machine_id[:4]}"
    file.write_text(f"{machine_id}\n")
    setup = 'mount --bind "$1" /etc/machine-id && hostname "$2" || exit 97'
    return inside(setup, str(file), name)


def test_two_hosts_that_share_a_home_know_their_own_jobs(host: Host, tmp_path: Path) -> None:
    need(Path("/etc/machine-id").exists(), "/etc/machine-id is missing")
    one, two = (machine(tmp_path, f"spark-{n}", f"{n}" * 32) for n in (1, 2))
    host.change = one
    first = host.start("sleep", "60", call_id="c1")
    host.change = two
    second = host.start("sleep", "60", call_id="c2")
    assert host.path(first.job).parent != host.path(second.job).parent
    assert host.status(second.job).state == "running"
    seen = host.status(first.job)
    assert (seen.state, seen.note) == ("unknown", "it was started on another host, spark-1")
    with pytest.raises(ToolFailed, match="on another host, spark-1"):
        host.stop(first.job)
    host.change = one
    assert host.status(first.job).state == "running"
    assert host.stop(first.job) == "stopped"
    assert is_alive(second.pid)
    host.change = two
    assert host.stop(second.job) == "stopped"


def test_a_clone_with_the_same_machine_id_is_another_host(host: Host, tmp_path: Path) -> None:
    need(Path("/etc/machine-id").exists(), "/etc/machine-id is missing")
    host.change = machine(tmp_path, "spark-1", "1" * 32)
    job = host.start("sleep", "60").job
    kept = (host.path(job) / "claim").read_text()
    host.claim(job, boot="of the other host")
    here, host.change = host.change, machine(tmp_path, "spark-2", "1" * 32)
    assert host.status(job).note == "it was started on another host, spark-1"
    (host.path(job) / "claim").write_text(kept)
    host.change = here
    assert host.stop(job) == "stopped"


KEYS = tuple("SHA256:" + letter * 43 for letter in "ab")


@pytest.mark.parametrize("machine_id", ["1" * 32, ""])
def test_a_clone_with_another_ssh_key_is_another_host(
    host: Host, tmp_path: Path, machine_id: str
) -> None:
    need(Path("/etc/machine-id").exists(), "/etc/machine-id is missing")
    host.change, host.key = machine(tmp_path, "spark-1", machine_id), KEYS[0]
    job = host.start("sleep", "60", call_id="c1").job
    kept = (host.path(job) / "claim").read_text()
    host.claim(job, boot="of the other host", init="of the other host")
    host.key = KEYS[1]
    words = f"it was started on another host, whose ssh key is {KEYS[0]}"
    assert (host.status(job).state, host.status(job).note) == ("unknown", words)
    assert host.start("true", call_id="c1").note == words
    for tool, args in (
        (StopJob(), {}),
        (WatchJob(), {}),
        (WatchServer(), {"url": "http://127.0.0.1:1"}),
    ):
        with pytest.raises(ToolFailed, match=re.escape(words)):
            host.use(tool, {"job": job, **args})
    assert host.logs(job).state == "unknown"
    (host.path(job) / "claim").write_text(kept)
    host.key = KEYS[0]
    assert host.stop(job) == "stopped"


def test_a_host_that_shows_another_key_of_its_own_knows_its_jobs(host: Host) -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").exists()
    need(boot and Path("/etc/machine-id").exists(), "no boot id or no machine id")
    host.key = KEYS[0]
    job = host.start("sleep", "60").job
    host.key = KEYS[1]
    assert host.status(job).state == "running"
    assert host.stop(job) == "stopped"


def test_a_host_that_was_renamed_knows_its_jobs(host: Host, tmp_path: Path) -> None:
    need(Path("/etc/machine-id").exists(), "/etc/machine-id is missing")
    host.change = machine(tmp_path, "before", "1" * 32)
    job = host.start("sleep", "60")
    host.change = machine(tmp_path, "after", "1" * 32)
    assert host.status(job.job).state == "running"
    assert host.stop(job.job) == "stopped"


def gone(host: Host, job: str) -> None:
    """Kill a job with all that watches it, as a reboot does."""
    pid, group = ((host.path(job) / name).read_text().split()[0] for name in ("pid", "group"))
    os.killpg(int(group), 9)
    wait_for(lambda: not is_alive(int(pid)))


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("boot", "the host was rebooted since it was started"),
        ("init", "the system was started anew since it was started"),
    ],
)
def test_a_job_that_a_reboot_ended_says_so(host: Host, key: str, words: str) -> None:
    job = host.start("sleep", "60", call_id="c1")
    gone(host, job.job)
    seen = host.status(job.job)
    assert (seen.state, seen.note) == ("lost", "")
    host.claim(job.job, **{key: "another"})
    seen = host.status(job.job)
    assert (seen.state, seen.note, seen.code) == ("lost", words, None)
    assert seen.headline() == f"lost, {words}, 0 bytes of logs"
    again = host.start("sleep", "60", call_id="c1")
    assert (again.already, again.note) == (True, words)
    assert host.stop(job.job) == "was_not_running"


def test_a_job_that_had_ended_before_the_reboot_keeps_its_code(host: Host) -> None:
    job = host.start("sh", "-c", "exit 3").job
    assert host.ended(job).code == 3
    host.claim(job, boot="another")
    assert (host.status(job).state, host.status(job).code) == ("exited", 3)


def test_the_claim_tells_the_host_and_keeps_its_ssh_key(host: Host) -> None:
    key = "SHA256:" + "k" * 43
    for number, (given, kept) in enumerate([(key, key), ("'; touch pwned #", "")]):
        call = replace(host.context(f"c{number}"), host_key=given)
        command = StartJob().command(StartJobArgs(argv=("true",)), call)
        assert given not in command.text
        assert LOCAL.run(command).ok
        rows = (host.path(f"run-c{number}") / "claim").read_text().splitlines()
        claim = dict(row.split("=", 1) for row in rows)
        assert list(claim) == ["host", "machine", "boot", "init", "container", "key"]
        assert (claim["host"], claim["key"]) == (os.uname().nodename, kept)
        boot = Path("/proc/sys/kernel/random/boot_id")
        assert claim["boot"] == (boot.read_text().strip() if boot.exists() else "")


def test_a_job_of_an_older_release_is_found(host: Host) -> None:
    job = host.start("sleep", "60")
    folder = host.path(job.job)
    old = host.folder / "jobs" / job.job
    shutil.copytree(folder, old)
    (old / "claim").unlink()
    (old / "host").write_text(os.uname().nodename + "\n")
    folder.rename(host.folder / "kept")
    assert host.status(job.job).state == "running"
    assert host.stop(job.job) == "stopped"


# --- where the usual folder cannot be written


def test_a_home_that_is_read_only(host: Host, tmp_path: Path) -> None:
    host.folder.mkdir()
    spare(host, tmp_path / "var")
    (tmp_path / "var").mkdir()
    there = host.change
    bind = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 97'
    read_only = inside(bind, str(host.folder))
    host.change = lambda command: read_only(there(command))
    job = host.start("sh", "-c", "echo hello; exit 4", call_id="c1")
    folder = tmp_path / "var" / f"bringup-{os.getuid()}"
    assert f"its folder is in {folder}/" in (job.note or "")
    assert "Read-only file system" in job.headline()
    assert oct(folder.stat().st_mode)[-3:] == "700"
    assert (host.ended(job.job).state, host.ended(job.job).code) == ("exited", 4)
    assert host.logs(job.job, stream="out").text == "hello\n"
    assert host.start("true", call_id="c1").already
    assert list(host.folder.iterdir()) == []


@pytest.mark.parametrize("trap", ["foreign", "open", "link"])
def test_a_folder_that_others_may_use_is_not_taken(host: Host, tmp_path: Path, trap: str) -> None:
    need(os.geteuid() == 0, "another owner needs root")
    host.folder.write_text("not a folder")
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    spare(host, first, second)
    bait = first / f"bringup-{os.getuid()}"
    if trap == "link":
        (tmp_path / "real").mkdir(mode=0o700)
        bait.symlink_to(tmp_path / "real")
    else:
        bait.mkdir(mode=0o777 if trap == "open" else 0o700)
        bait.chmod(0o777 if trap == "open" else 0o700)
    if trap == "foreign":
        os.chown(bait, 65534, 65534)
    job = host.start("true")
    assert f"its folder is in {second}/" in (job.note or "")
    assert list(bait.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    need(os.geteuid() == 0 and sys.platform == "linux", "a small file system needs root on Linux")
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "bringup-test", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_disk_that_is_full(small_disk: Path, tmp_path: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * 256 * 1024)
    host = Host(small_disk)
    spare(host, tmp_path / "none")
    with pytest.raises(ToolFailed, match=r"cannot make the folder for jobs: .*No space left"):
        host.start("true", call_id="c1")
    assert list(small_disk.rglob("run-*")) == []
    (small_disk / "filler").unlink()
    job = host.start("true", call_id="c1")
    assert not job.already
    assert host.ended(job.job).code == 0


def test_a_job_that_fills_the_disk_tells_its_end(small_disk: Path) -> None:
    host = Host(small_disk)
    job = host.start("sh", "-c", "yes full; exit 9")
    state = host.ended(job.job, 10)
    assert (state.state, state.code) == ("exited", 9)
    assert state.out_bytes > 100_000
    assert "No space left" in state.tail or state.tail.startswith("full")
