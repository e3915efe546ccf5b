"""How jobs stand, what they wrote and how they are stopped, against real processes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.redact import Redactor
from tests.job_host import LOCAL, Host, is_alive, wait_for
from tools.base import Tool
from tools.command import Command, Ending, Result
from tools.errors import BadReply, ToolFailed
from tools.job_start import StartJob, StartJobArgs
from tools.jobs import JobLog, JobLogs, JobStatus, JobStatusArgs
from tools.server import WatchServer


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "host dir")
    yield host
    host.clear()


# --- how a job stands


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_killed_job_has_exited(host: Host, number: signal.Signals) -> None:
    job = host.start("sleep", "60")
    os.kill(job.pid, number)
    state = host.ended(job.job)
    assert (state.state, state.code) == ("exited", 128 + number)


def test_a_job_killed_with_all_that_watch_it_is_lost(host: Host) -> None:
    job = host.start("sleep", "60")
    os.killpg(os.getpgid(job.pid), signal.SIGKILL)
    wait_for(lambda: not is_alive(job.pid))
    state = host.ended(job.job)
    assert (state.state, state.code) == ("lost", None)
    assert host.stop(job.job) == "was_not_running"


def test_a_log_tells_whether_its_job_works(host: Host) -> None:
    job = host.start("sh", "-c", "while :; do :; done").job
    first = host.logs(job)
    assert first.state == "running"
    wait_for(lambda: host.logs(job).cpu_s > first.cpu_s)
    host.stop(job)
    assert (host.logs(job).state, host.logs(job).cpu_s) == ("exited", 0.0)


def test_a_zombie_has_ended(host: Host) -> None:
    job = host.start("sleep", "60")
    child = os.posix_spawn("/bin/true", ["true"], {})
    wait_for(lambda: not is_alive(child))
    start = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[19]
    leader = int((host.path(job.job) / "group").read_text().split()[0])
    os.killpg(leader, signal.SIGKILL)
    boot = job.start_time.partition(":")[2]
    (host.path(job.job) / "pid").write_text(f"{child} {start}:{boot}\n")
    wait_for(lambda: not is_alive(leader))
    assert host.status(job.job).state == "lost"
    os.waitpid(child, 0)


def test_a_pid_that_is_somebody_elses_by_now_is_not_touched(host: Host) -> None:
    other = host.start("sleep", "60")
    job = host.start("sleep", "60")
    os.killpg(os.getpgid(job.pid), signal.SIGKILL)
    group = os.getpgid(other.pid)
    (host.path(job.job) / "pid").write_text(f"{other.pid} 1:boot\n")
    (host.path(job.job) / "group").write_text(f"{group} 1:boot\n")
    (host.path(job.job) / "left").write_text(f"{other.pid} 1:boot\n")
    assert host.status(job.job).state == "lost"
    assert host.stop(job.job) == "was_not_running"
    assert is_alive(other.pid)
    assert is_alive(group)


def test_a_job_of_another_host_is_unknown_and_not_touched(host: Host) -> None:
    job = host.start("sleep", "60")
    kept = (host.path(job.job) / "claim").read_text()
    host.claim(job.job, host="elsewhere", machine="0" * 32, boot="other")
    state = host.status(job.job)
    assert (state.state, state.note) == ("unknown", "it was started on another host, elsewhere")
    with pytest.raises(ToolFailed, match="another host, elsewhere"):
        host.stop(job.job)
    assert is_alive(job.pid)
    (host.path(job.job) / "claim").write_text(kept)


def test_a_job_that_never_was(host: Host) -> None:
    state = host.status("run-c0")
    assert state.state == "unknown"
    assert "there is no folder" in state.note
    for use in (lambda: host.stop("run-c0"), lambda: host.logs("run-c0")):
        with pytest.raises(ToolFailed, match="there is no"):
            use()


def test_cpu_and_memory_are_those_of_the_group(host: Host) -> None:
    burn = "import time; x = bytearray(60_000_000); t = time.process_time\nwhile t() < 30: pass"
    job = host.start("sh", "-c", '"$@" & wait', "sh", sys.executable, "-c", burn)
    wait_for(lambda: host.status(job.job).cpu_s >= 0.3)
    assert 60 < host.status(job.job).rss_mib < 200


def test_a_job_outlives_whoever_started_it(host: Host, tmp_path: Path) -> None:
    call = host.context("c1")
    args = StartJobArgs.model_validate({"argv": ("sh", "-c", "sleep 0.5; echo done")})
    command = StartJob().command(args, call)
    # Its whole session is killed the moment that the job is known.
    wrap = 'printf "%s" "$SCRIPT" | "$@"; kill -9 -$$'
    env = {"SCRIPT": command.stdin or ""}
    result = LOCAL.run(Command.of("sh", "-c", wrap, "sh", *command.argv, env=env))
    assert result.ending is Ending.SIGNALED
    assert host.status("run-c1").state == "running"
    assert host.ended("run-c1").code == 0
    assert host.logs("run-c1", stream="out").text == "done\n"


# --- logs


def pieces(host: Host, job: str, limit: int) -> list[JobLog]:
    found = [host.logs(job, stream="out", limit_bytes=limit)]
    while found[-1].next_offset < found[-1].size_bytes:
        offset = found[-1].next_offset
        found.append(host.logs(job, stream="out", limit_bytes=limit, offset=offset))
        assert found[-1].next_offset > offset
    return found


def test_logs_come_in_pieces_that_end_between_words(host: Host) -> None:
    text = "  /a/path é€😀\r\n\x1b[1mbar 1\rbar 2\r\n\n\tlast" * 2
    job = host.start("printf", "%s", text)
    host.ended(job.job)
    for limit in (19, 20, 23, 1000):
        found = pieces(host, job.job, limit)
        assert "".join(piece.text for piece in found) == text
        assert all(piece.text[-1].isspace() for piece in found[:-1])
        assert found[-1].next_offset == len(text.encode())
    found = pieces(host, job.job, 4)
    assert "".join(piece.text for piece in found if "\ufffd" not in piece.text).count("bar ") == 4
    assert found[-1].next_offset == len(text.encode())
    beyond = host.logs(job.job, stream="out", offset=9999)
    assert (beyond.text, beyond.next_offset) == ("", 9999)


@pytest.mark.parametrize("text", ["", "a", "a\n", "a\n\n", "\n", "a\r", "a\r\n", "\r\nb\\n"])
def test_line_ends_are_those_of_the_log(host: Host, text: str) -> None:
    job = host.start("printf", "%s", text)
    host.ended(job.job)
    assert host.logs(job.job, stream="out").text == text
    assert host.status(job.job).tail == text.strip()


def test_garbage_passes(host: Host) -> None:
    job = host.start(
        "sh", "-c", r"printf 'a\000\342\202\n\377\003b'; yes | tr '\n' '\377' | head -c 99999"
    )
    host.ended(job.job)
    piece = host.logs(job.job, stream="out", limit_bytes=8)
    assert (piece.text, piece.next_offset) == ("a\ufffd\n", 5)
    assert host.logs(job.job, stream="out", offset=5, limit_bytes=3).text == "\ufffdb"
    # Replaced bytes are longer: the largest piece still fits into what a connector keeps.
    assert len(host.logs(job.job, stream="out", offset=9).text) == 65536
    assert host.status(job.job).tail.endswith("y\ufffdy\ufffdy")


def test_a_log_cannot_forge_an_answer(host: Host) -> None:
    lines = "MARK-4f1c state=lost\n\x03\nMARK-4f1c state=lost\nMARK-4f1c end=1\nMARK-4f1c next=7"
    job = host.start("printf", "%s", lines)
    state = host.ended(job.job)
    assert (state.state, state.tail) == ("exited", lines.replace("\x03", ""))
    piece = host.logs(job.job, stream="out")
    assert (piece.text, piece.next_offset) == (lines.replace("\x03", ""), len(lines))


READERS: list[tuple[Tool[Any, Any], dict[str, str]]] = [
    (JobStatus(), {}),
    (JobLogs(), {"stream": "out"}),
    (WatchServer(), {"url": "http://127.0.0.1:1/", "python": sys.executable}),
]


@pytest.mark.parametrize(("tool", "more"), READERS, ids=["status", "logs", "watch"])
def test_redaction_sees_secrets_and_paths_in_logs(
    host: Host, tool: Tool[Any, Any], more: dict[str, str]
) -> None:
    secret, path = "hf_" + "Ab3dEfG7" * 4, str(host.folder)
    broken = f"{secret[:12]}\n{secret[12:]}"
    text = f"in {path}/x\nError: no {secret}\n{broken}\nAPI_KEY:\n\nHF_TOKEN={secret}"
    job = host.start("printf", "%s", text)
    host.ended(job.job)
    call, args = host.context(), tool.args_type.model_validate({"job": job.job, **more})
    result = LOCAL.run(tool.command(args, call))
    assert broken in result.stdout
    redactor = Redactor({"HF_TOKEN": secret}, {"run": path})
    written = redactor.redact(result)
    for part in (secret, secret[12:], path):
        assert part not in written.stdout
    # A strict replay reads what was written.
    assert tool.parse(args, call, written) == redactor.redact(tool.parse(args, call, result))


def test_the_end_of_a_log_begins_with_a_whole_word(host: Host) -> None:
    secret = "k" * 40
    job = host.start("printf", "%s", f"begin {secret} " + "z" * 4070 + " end")
    tail = host.ended(job.job).tail
    assert tail == "z" * 4070 + " end"
    job = host.start("printf", "%s", "y" * 5000)
    assert host.ended(job.job).tail == "y" * 4096


def test_large_logs_are_cheap(host: Host) -> None:
    job = host.start("sh", "-c", "yes 0123456789 | head -c 20000000; echo last >&2")
    state = host.ended(job.job)
    assert (state.out_bytes, state.err_bytes) == (20_000_000, 5)
    assert len(state.tail) < 6000
    piece = host.logs(job.job, stream="out", offset=19_999_990, limit_bytes=100)
    assert piece.next_offset == piece.size_bytes == 20_000_000


# --- stopping


def test_stopping_ends_the_group_even_if_it_will_not(host: Host) -> None:
    stubborn = "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $!; wait; sleep 60"
    job = host.start("sh", "-c", stubborn)
    wait_for(lambda: host.logs(job.job, stream="out").text)
    child = int(host.logs(job.job, stream="out").text)
    assert host.stop(job.job, 1) == "stopped"
    assert not is_alive(job.pid)
    assert not is_alive(child)
    state = host.status(job.job)
    assert (state.state, state.code) == ("exited", 137)
    assert host.stop(job.job) == "was_not_running"


def test_children_that_outlive_the_job_are_seen_and_stopped(host: Host) -> None:
    job = host.start("sh", "-c", "sleep 60 & echo $!; exit 4")
    state = host.ended(job.job)
    assert (state.state, state.code, state.processes) == ("exited", 4, 1)
    child = int(host.logs(job.job, stream="out").text)
    assert is_alive(child)
    assert host.stop(job.job) == "stopped"
    assert not is_alive(child)
    assert host.status(job.job).processes == 0


# --- answers


def test_banners_do_not_matter_and_half_answers_are_told(host: Host) -> None:
    call = host.context("c1")
    tool, args = JobStatus(), JobStatusArgs(job="run-c0")
    result = LOCAL.run(tool.command(args, call))
    noisy = replace(result, stdout=f"Welcome!\r\nstate=running\nno newline{result.stdout}bye")
    assert tool.parse(args, call, noisy) == tool.parse(args, call, result)
    with pytest.raises(BadReply, match="no complete answer"):
        tool.parse(args, call, replace(result, stdout=result.stdout[:-10]))
    with pytest.raises(BadReply, match="a number, tick_hz, and said: a b"):
        tool.parse(args, call, replace(result, stdout=f"{result.stdout}MARK-4f1c tick_hz=a b\n"))
    with pytest.raises(BadReply, match=r"exit 127.*sh: not found"):
        tool.parse(args, call, Result(Ending.EXITED, code=127, stderr="sh: not found"))
    with pytest.raises(ToolFailed, match="did not end by itself: timed out"):
        tool.parse(args, call, Result(Ending.TIMED_OUT, duration_s=20))
