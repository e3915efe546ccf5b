"""One watch for any job: what is alive is left alone, what hangs is told; real processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.job_host import LOCAL, Host, is_alive, wait_for
from tests.test_job_stops import gpu
from tools.command import Ending, Result
from tools.errors import ToolFailed
from tools.job_watch import JobProgress, WatchJob, WatchJobArgs


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "host dir")
    yield host
    host.clear()


def watch(host: Host, job: str, **more: Any) -> list[JobProgress]:
    """Watch as a dispatcher does, with short waits; return what was seen at each sample."""
    tool, call = WatchJob(), host.context()
    args = WatchJobArgs.model_validate({"job": job, "limit_s": 10, **more})
    results: list[Result] = []
    seen: list[JobProgress] = []
    deadline = time.monotonic() + args.limit_s
    while time.monotonic() < deadline:
        results.append(LOCAL.run(host.change(tool.command(args, call))))
        seen.append(tool.parse_all(args, call, results))
        if tool.finished(args, seen[-1]):
            break
        time.sleep(0.1)
    return seen


def test_a_job_is_watched_to_its_end(host: Host) -> None:
    job = host.start("sh", "-c", "for n in 1 2 3; do echo step $n; sleep 0.4; done; exit 7").job
    seen = watch(host, job)
    assert {item.state for item in seen[:-1]} == {"running"}
    last = seen[-1]
    assert (last.state, last.code, last.out_bytes) == ("exited", 7, 21)
    assert last.tail.endswith("step 3")
    assert last.headline().startswith("exited after")
    assert ", code 7" in last.headline()


def test_a_job_that_is_killed_is_lost_and_one_that_never_was_is_told(host: Host) -> None:
    job = host.start("sleep", "60")
    os.killpg(os.getpgid(job.pid), signal.SIGKILL)
    wait_for(lambda: not is_alive(job.pid))
    host.claim(job.job, boot="another")
    last = watch(host, job.job)[-1]
    assert (last.state, last.note) == ("lost", "the host was rebooted since it was started")
    assert "rebooted" in last.headline()
    with pytest.raises(ToolFailed, match="run-c0: there is no folder"):
        watch(host, "run-c0")


def test_a_job_that_hangs_is_told_with_what_was_looked_at(host: Host) -> None:
    job = host.start("sh", "-c", "echo NCCL waits; exec sleep 60").job
    last = watch(host, job, stuck_after_s=0.8, path="/etc")[-1]
    assert (last.state, last.code) == ("stuck", None)
    assert 0.8 <= last.quiet_s <= last.waited_s
    here = ("log", "CPU time", "reads and writes", "memory")
    assert tuple(item for item in last.looked_at if item != "GPU memory") == (*here, "/etc")
    assert "no sign of life in log, CPU time" in last.headline()
    assert host.status(job).state == "running", "it is told and not killed"


GROWS = "import time\nkept = []\nwhile True: kept.append(bytearray(2_000_000)); time.sleep(0.15)"
READS = "import time\nwhile True: open('/proc/self/exe', 'rb').read(300_000); time.sleep(0.1)"


@pytest.mark.parametrize(
    "argv",
    [
        ("sh", "-c", "while :; do echo x; sleep 0.2; done"),
        ("sh", "-c", "while :; do :; done"),
        (sys.executable, "-c", GROWS),
        (sys.executable, "-c", READS),
        ("sh", "-c", "setsid sh -c 'while :; do :; done' & wait"),
    ],
    ids=["log", "cpu", "memory", "reads", "cpu of another group"],
)
def test_any_sign_of_life_keeps_a_job_from_being_stuck(host: Host, argv: tuple[str, ...]) -> None:
    job = host.start(*argv)
    seen = watch(host, job.job, stuck_after_s=2.5, limit_s=5)
    assert {item.state for item in seen} == {"running"}
    assert seen[-1].waited_s > 2.5


def test_a_named_folder_that_grows_is_a_sign_of_life(host: Host, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    job = host.start("sleep", "60").job
    writer = "while :; do head -c 9000 /dev/zero >>f; sleep 0.2; done"
    other = host.start("sh", "-c", writer, cwd=str(folder)).job
    seen = watch(host, job, stuck_after_s=2.0, limit_s=4, path=str(folder))
    assert {item.state for item in seen} == {"running"}
    assert (seen[-1].path_mib or 0) > 0
    host.stop(other)
    assert watch(host, job, stuck_after_s=1.2, path=str(folder))[-1].state == "stuck"


def test_memory_of_a_gpu_that_changes_is_a_sign_of_life(host: Host, tmp_path: Path) -> None:
    job = host.start("sleep", "60")
    rows = tmp_path / "bin" / "rows"
    gpu(host, tmp_path / "bin", f"{job.pid}, 100\n1, 5000\n")
    tool, call = WatchJob(), host.context()
    args = WatchJobArgs(job=job.job, stuck_after_s=0.5)
    results: list[Result] = []
    for mib in (100, 200, 300):
        rows.write_text(f"{job.pid}, {mib}\n1, 5000\n")
        results.append(LOCAL.run(host.change(tool.command(args, call))))
        seen = tool.parse_all(args, call, results)
        assert (seen.state, seen.gpu_mib, seen.quiet_s) == ("running", mib, 0)
        time.sleep(0.6)
    results.append(LOCAL.run(host.change(tool.command(args, call))))
    seen = tool.parse_all(args, call, results)
    assert (seen.state, seen.looked_at[-1]) == ("stuck", "GPU memory")


def samples(host: Host, job: str, changes: Sequence[Mapping[str, object]]) -> list[Result]:
    """Return a real sample with other values, as hours of watching would bring them."""
    tool, call = WatchJob(), host.context()
    sample = LOCAL.run(tool.command(WatchJobArgs(job=job), call))
    lines = [line for line in sample.stdout.splitlines() if line.startswith("MARK-4f1c ")]
    rows = dict(line.partition(" ")[2].split("=", 1) for line in lines)
    texts = []
    for change in changes:
        rows |= {key: str(value) for key, value in change.items()}
        texts.append("".join(f"MARK-4f1c {key}={value}\n" for key, value in rows.items()))
    return [replace(sample, stdout=text) for text in texts]


def read(results: list[Result], **more: Any) -> JobProgress:
    args = WatchJobArgs.model_validate({"job": "run-c1", **more})
    return WatchJob().parse_all(args, Host(Path("/nowhere")).context(), results)


def test_a_load_of_forty_minutes_is_not_stuck_and_a_hung_one_is(host: Host) -> None:
    job = host.start("sleep", "60").job
    # Nothing is written and next to no time is used: a slow disk fills the memory, 0.5 MiB/s.
    loads = samples(host, job, [{"now": t, "rss_kib": 9000 + 500 * t} for t in range(0, 2401, 5)])
    assert [read(loads[:n]).state for n in (100, 300, 481)] == ["running"] * 3
    full = 9000 + 500 * 2400
    hangs = samples(host, job, [{"now": 2400 + t, "rss_kib": full} for t in range(5, 401, 5)])
    assert read(loads + hangs[:40]).state == "running"
    seen = read(loads + hangs)
    assert seen.state == "stuck"
    assert 400 <= seen.quiet_s < 450


def test_a_trickle_is_no_sign_of_life(host: Host) -> None:
    job = host.start("sleep", "60").job
    polls = [{"now": t, "ticks": t // 2, "io": 100 * t} for t in range(0, 401, 5)]
    assert read(samples(host, job, polls)).state == "stuck"
    works = [{"now": t, "io": 9000 * t} for t in range(0, 401, 5)]
    assert read(samples(host, job, works)).state == "running"


def test_a_clock_that_is_set_and_a_laptop_that_slept_are_no_silence(host: Host) -> None:
    job = host.start("sleep", "60").job
    jump = samples(host, job, [{"now": 100}, {"now": 105}, {"now": 3705}, {"now": 3710}])
    assert (read(jump).state, read(jump).quiet_s) == ("running", 70)
    back = samples(host, job, [{"now": 7200}, {"now": 7205}, {"now": 3600}, {"now": 3605}])
    assert (read(back).state, read(back).quiet_s, read(back).waited_s) == ("running", 10, 0)


def test_samples_that_were_lost_do_not_end_a_watch(host: Host) -> None:
    job = host.start("sleep", "60").job
    (good,) = samples(host, job, [{"now": 5}])
    lost = Result(Ending.LOST, stderr="the connection broke")
    assert read([good, *[lost] * 7, good]).state == "running"
    with pytest.raises(ToolFailed, match="did not end by itself: connection lost"):
        read([lost])
