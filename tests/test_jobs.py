"""Starting jobs, against real processes."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.job_host import LOCAL, Host, is_alive, spare, wait_for
from tools.command import Command
from tools.errors import ToolFailed
from tools.job_start import StartJob, StartJobArgs
from tools.jobs import JobStatusArgs


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "host dir")
    yield host
    host.clear()


# --- starting


def test_a_job_runs_apart_and_tells_its_end(host: Host, tmp_path: Path) -> None:
    awkward = ["a b", "'", "$(touch pwned)", "; touch pwned", "\n", "", "é"]
    script = 'printf "[%s]" "$@"; echo "$COLOUR; $start" >&2; pwd; cat; sleep 0.4; exit 7'
    begun = time.monotonic()
    job = host.start(
        "sh",
        "-c",
        script,
        "sh",
        *awkward,
        env={"COLOUR": "blue $x", "start": "s"},
        cwd=str(tmp_path),
    )
    assert time.monotonic() - begun < 1
    assert not job.already
    state = host.status(job.job)
    assert (state.state, state.code, state.pid) == ("running", None, job.pid)
    assert os.getsid(job.pid) != os.getsid(0)
    state = host.ended(job.job)
    assert (state.state, state.code) == ("exited", 7)
    assert host.logs(job.job, stream="out").text == (
        "".join(f"[{word}]" for word in awkward) + f"{tmp_path}\n"
    )
    assert host.logs(job.job).text == "blue $x; s\n"
    assert state.tail.endswith("blue $x; s")
    assert not list(tmp_path.rglob("pwned"))
    assert oct(host.path(job.job).stat().st_mode)[-3:] == "700"


def test_a_job_gets_an_ordinary_umask_and_its_pid_is_the_programs(host: Host) -> None:
    job = host.start("sh", "-c", "umask; echo $$")
    assert host.ended(job.job).code == 0
    mask = os.umask(0)
    os.umask(mask)
    assert host.logs(job.job, stream="out").text == f"{mask:04o}\n{job.pid}\n"


def test_the_same_call_never_starts_twice(host: Host, tmp_path: Path) -> None:
    count = tmp_path / "count"
    argv = ("sh", "-c", f"echo x >> '{count}'; sleep 30")
    first = host.start(*argv, call_id="c1")
    again = host.start(*argv, call_id="c1")
    assert again == first.model_copy(update={"already": True})
    assert host.stop(first.job) == "stopped"
    assert host.start(*argv, call_id="c1").already
    assert count.read_text() == "x\n"


def test_many_requests_at_once_start_one(host: Host, tmp_path: Path) -> None:
    call = host.context("c1")
    args = StartJobArgs.model_validate(
        {"argv": ("sh", "-c", f"echo x >> '{tmp_path}/count'; sleep 30")}
    )
    command = StartJob().command(args, call)
    race = 'for i in 1 2 3 4 5 6; do printf "%s" "$SCRIPT" | "$@" & done; wait'
    result = LOCAL.run(
        Command.of("sh", "-c", race, "sh", *command.argv, env={"SCRIPT": command.stdin or ""})
    )
    assert result.stdout.count("already=0") == 1
    assert result.stdout.count("already=1") == 5
    assert (tmp_path / "count").read_text() == "x\n"


def test_a_claim_that_came_to_nothing_is_told(host: Host, monkeypatch: Any) -> None:
    host.path("run-c1").mkdir(parents=True)
    host.change = lambda command: replace(
        command, stdin=(command.stdin or "").replace("+ 1500", "+ 10")
    )
    with pytest.raises(ToolFailed, match="run-c1: its folder is there, but it never came to life"):
        host.start("true", call_id="c1")
    assert host.status("run-c1").note == "it was claimed and not started"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"cwd": "/no/such/folder"}, "there is no folder /no/such/folder to run in"),
        ({"cwd": "(", "env": {"A": "b"}}, r"there is no folder \( to run in"),
    ],
)
def test_a_wrong_folder_starts_nothing(host: Host, args: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolFailed, match=words):
        host.start("true", **args)
    assert list((host.folder / "jobs").rglob("*")) == []


def test_a_folder_for_jobs_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    host = Host(tmp_path / "file")
    spare(host, tmp_path / "file")
    with pytest.raises(ToolFailed, match=r"cannot make the folder for jobs: .*Not a directory"):
        host.start("true")


def test_a_missing_program_is_an_exit_code(host: Host) -> None:
    job = host.start("no-such-program-here")
    state = host.ended(job.job)
    assert (state.state, state.code) == ("exited", 127)
    assert "no-such-program-here" in state.tail


@pytest.mark.parametrize("job", ["", "../x", "a/b", "a..b", ".a", "-a", "a\n", "a b"])
def test_a_job_name_is_one_folder(job: str) -> None:
    with pytest.raises(ValidationError):
        JobStatusArgs.model_validate({"job": job})
    for name in ("run-c1", "20250102T030405-7.c2_1"):
        JobStatusArgs.model_validate({"job": name})


def tools_only(folder: Path, *programs: str) -> str:
    """Make a folder of links to nothing but these programs."""
    folder.mkdir()
    for program in programs:
        # Python itself, and not a script of some version manager.
        found = os.path.realpath(sys.executable) if program == "python3" else shutil.which(program)
        assert found, program
        (folder / program).symlink_to(found)
    return str(folder)


COREUTILS = ("mkdir", "uname", "mv", "sleep", "tr", "wc", "tail", "head", "cat", "rm")


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize("more", [("setsid",), ("perl",), ("python3",)])
def test_a_job_has_its_own_group_whatever_the_host_has(
    host: Host, tmp_path: Path, shell: str, more: tuple[str, ...]
) -> None:
    path = tools_only(tmp_path / "bin", *COREUTILS, *more)
    (tmp_path / "bin" / "sh").symlink_to(shutil.which(shell) or "")
    host.change = lambda command: replace(command, env={**command.env, "PATH": path})
    job = host.start("sh", "-c", "sleep 60 & echo $!; wait")
    wait_for(lambda: host.logs(job.job, stream="out").text)
    child = int(host.logs(job.job, stream="out").text)
    assert os.getpgid(job.pid) not in (os.getpgid(0), os.getsid(0))
    assert host.status(job.job).processes == 2
    assert host.stop(job.job) == "stopped"
    assert not is_alive(job.pid)
    assert not is_alive(child)
    state = host.status(job.job)
    assert (state.state, state.code) == ("exited", 143)


def test_a_host_without_any_way_is_told_what_to_do(host: Host, tmp_path: Path) -> None:
    path = tools_only(tmp_path / "bin", "dash", *COREUTILS)
    (tmp_path / "bin" / "sh").symlink_to(shutil.which("dash") or "")
    host.change = lambda command: replace(command, env={"PATH": path})
    with pytest.raises(ToolFailed, match="install setsid"):
        host.start("true")
    assert list((host.folder / "jobs").rglob("*")) == []


def test_a_host_without_proc(host: Host) -> None:
    host.change = lambda command: replace(
        command, stdin=(command.stdin or "").replace("/proc/", "/no-proc/")
    )
    job = host.start("sh", "-c", "while :; do :; done")
    assert "_" in job.start_time
    wait_for(lambda: host.status(job.job).cpu_s >= 1)
    state = host.status(job.job)
    assert (state.state, state.processes) == ("running", 1)
    assert state.rss_mib > 0.1
    assert host.stop(job.job) == "stopped"
    assert host.status(job.job).code == 143


@pytest.mark.skipif(not shutil.which("busybox"), reason="busybox is missing")
def test_a_host_that_has_nothing_but_busybox(host: Host, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    busybox = shutil.which("busybox") or ""
    names = LOCAL.run(Command.of(busybox, "--list")).stdout.split()
    for name in names:
        (folder / name).symlink_to(busybox)
    host.change = lambda command: replace(command, env={**command.env, "PATH": str(folder)})
    job = host.start("sh", "-c", "echo one two; sleep 60 & echo $!; wait")
    wait_for(lambda: host.logs(job.job, stream="out").text.count("\n") == 2)
    child = int(host.logs(job.job, stream="out").text.split()[-1])
    state = host.status(job.job)
    assert (state.state, state.processes) == ("running", 2)
    assert host.logs(job.job, stream="out", limit_bytes=7).text == "one "
    assert host.stop(job.job) == "stopped"
    assert not is_alive(child)
    assert host.status(job.job).code == 143


# --- a login manager that ends what a user leaves running; both programs are ours


def logind(host: Host, folder: Path, *, kills: str, lingers: str, spares: str = "") -> Path:
    """Put login programs on the host that say so; return the file that a scope is noted in."""
    folder.mkdir()
    says = f"""#!/bin/sh
case "$*" in
  "show-session --property=KillUserProcesses --value") echo {kills} ;;
  "show-session --property=KillExcludeUsers --value") echo '{spares}' ;;
  "show-user $(id -un) --property=Linger --value") echo {lingers} ;;
  *) exit 9 ;;
esac
"""
    noted = folder / "noted"
    scope = f"""#!/bin/sh
[ "$1 $2 $3 $4" = "--user --scope --quiet --collect" ] || exit 9
[ "$XDG_RUNTIME_DIR" ] || exit 8
shift 4
echo "$1" >> '{noted}'
exec "$@"
"""
    for name, text in (("loginctl", says), ("systemd-run", scope)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    host.change = lambda command: replace(command, env={**command.env, "PATH": path})
    return noted


def test_a_user_who_lingers_has_the_job_in_a_scope_of_his_own(host: Host, tmp_path: Path) -> None:
    noted = logind(host, tmp_path / "bin", kills="yes", lingers="yes")
    job = host.start("sh", "-c", "exit 3")
    assert job.note is None
    assert host.ended(job.job).code == 3
    assert noted.read_text() == "true\nsh\n"


def test_a_user_who_does_not_linger_is_told_what_ends_the_job(host: Host, tmp_path: Path) -> None:
    noted = logind(host, tmp_path / "bin", kills="yes", lingers="no")
    job = host.start("sh", "-c", "exit 3")
    assert "KillUserProcesses=yes" in (job.note or "")
    assert "loginctl enable-linger" in job.headline()
    assert host.ended(job.job).code == 3
    assert not noted.exists()


@pytest.mark.parametrize("kept", [{"kills": "no"}, {"kills": "yes", "spares": "nobody {me}"}])
def test_where_nobody_is_ended_at_logout_a_job_is_plain(
    host: Host, tmp_path: Path, kept: dict[str, str]
) -> None:
    me = LOCAL.run(Command.of("id", "-un")).stdout.strip()
    said = {key: value.format(me=me) for key, value in kept.items()}
    noted = logind(host, tmp_path / "bin", lingers="yes", **said)
    job = host.start("true")
    assert job.note is None
    assert host.ended(job.job).code == 0
    assert not noted.exists()
