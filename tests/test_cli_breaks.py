"""What breaks a run from outside: signals, kills, a full disk, a second process, a dead server."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.events import NoteAdded
from agent.interrupts import terminable, undisturbed
from agent.transcript import MemoryTranscript
from tests.lab.command import BRINGUP, SERVER, Desk, desk, gone, processes_of
from tests.lab.need import need

WATCHING = "look: job status"
"""Said when the server has been started and is about to be watched."""


@pytest.fixture
def here(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path, tmp_path_factory.getbasetemp() / "kept-desk") as made:
        yield made


def state(here: Desk) -> str:
    (row,) = here.bringup("runs", "--json").data["runs"]
    return str(row["state"])


def job_of(here: Desk) -> Path:
    """Return the folder of the one job that was started."""
    (job,) = here.runs.glob("*/host/jobs/*/*")
    return job


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_a_signal_ends_the_wait_and_closes_the_books(here: Desk, name: str) -> None:
    here.goal(load_s=60)
    command = ("deploy", "goal.yaml", "--mode", "auto")
    with here.running(*command, until=WATCHING) as process:
        began = time.monotonic()
        process.send_signal(getattr(signal, name))
        _, said = process.communicate(timeout=20)
        assert time.monotonic() - began < 4
    assert process.returncode == 130
    assert "INTERRUPTED" in said
    assert "outcome=stopped" in said or "stop job" in said
    assert gone(here.folder)
    assert state(here) == "interrupted"
    assert here.bringup("show").code == 0
    assert here.bringup("replay", "last").out.startswith("same ")


def test_what_is_ignored_stays_ignored(here: Desk) -> None:
    here.goal(load_s=0.8)
    done = here.shell(
        f"""nohup bringup deploy goal.yaml --mode auto 2>said & run=$!
        until grep -q '{WATCHING}' said; do sleep 0.05; done
        kill -HUP $run; wait $run"""
    )
    assert done.code == 0
    assert here.bringup("stop").code == 0


def test_ctrl_c_before_a_run_has_begun(here: Desk) -> None:
    os.mkfifo(here.folder / "goal.yaml")
    with (
        subprocess.Popen(
            [BRINGUP, "deploy", "goal.yaml"],
            cwd=here.folder,
            env=here.environment({}),
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        (here.folder / "goal.yaml").open("w"),
    ):  # opens when the command reads it
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
    assert (process.returncode, said) == (130, "bringup: interrupted\n")
    assert not here.runs.exists()


def test_a_killed_run_goes_on_and_does_nothing_twice(here: Desk) -> None:
    here.goal(load_s=2)
    with here.running("deploy", "goal.yaml", "--mode", "auto", until=WATCHING) as process:
        process.kill()
    pid = (job_of(here) / "pid").read_text().split()[0]
    assert state(here) == "broken off"
    assert here.bringup("show").out.count("start_server") == 1
    resumed = here.bringup("resume")
    assert resumed.code == 0
    assert "READY" in resumed.err
    assert f"pid {pid}" in resumed.err
    assert job_of(here).is_dir(), "one job, and no second one"
    assert (
        sum(str(SERVER) in words for words in processes_of(here.folder).values()) == 1 + SUPERVISOR
    )
    events = here.bringup("show", "--json").data["events"]
    tools = {event["call"]["id"]: event["call"]["tool"] for event in events if "call" in event}
    started = [tools[event["call_id"]] for event in events if event["type"] == "call_started"]
    assert started.count("start_server") == 1
    assert here.bringup("replay", "last").out.startswith("same ")
    assert here.bringup("stop").code == 0
    assert gone(here.folder)


SUPERVISOR = 1
"""The script that waits for the job's end has the same words on its command line."""


@pytest.mark.parametrize(
    ("prints", "cause"),
    [
        ("", "the server's process was ended by SIGKILL (exit code 137)"),
        ("RuntimeError: weights are broken", "RuntimeError: weights are broken"),
    ],
)
def test_a_killed_server_is_the_cause(here: Desk, prints: str, cause: str) -> None:
    code = "import sys, time; print(sys.argv[1], file=sys.stderr, flush=True); time.sleep(60)"
    serve = ["{python}", "-c", code, prints]
    here.goal(candidates=[{"venv": "env", "engine": "custom", "serve": serve}])
    command = ("deploy", "goal.yaml", "--mode", "auto")
    with here.running(*command, until=WATCHING) as process:
        os.kill(int((job_of(here) / "pid").read_text().split()[0]), signal.SIGKILL)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "NOT REACHED\n" in said
    assert cause in said.partition("NOT REACHED\n")[2].splitlines()[0]
    assert "still runs" not in said


def test_two_processes_on_one_run(here: Desk) -> None:
    here.goal(load_s=60)
    with here.running("deploy", "goal.yaml", "--mode", "auto", until=WATCHING) as process:
        for verb in ("resume", "stop"):
            done = here.bringup(verb)
            words = f": process {process.pid} is writing this run; wait for its end, or end it"
            assert (done.code, words in done.err) == (2, True)
        assert state(here) == "running"
    assert gone(here.folder)


def test_a_disk_that_is_full(here: Desk) -> None:
    here.goal()
    disk = here.folder / "disk"
    here.env["BRINGUP_RUNS_DIR"] = str(disk / "runs")
    with small_disk(disk, "100k"):
        broken = here.bringup("deploy", "goal.yaml", "--yes")
        assert broken.code == 2
        last = broken.err.splitlines()[-1]
        assert last.startswith(f"bringup: {disk}/runs/")
        assert "No space left on device" in last or "disk is full" in last
        assert "make room there" in last
        assert "bringup resume" in last
        assert state(here) == "broken off"
        fresh = here.bringup("deploy", "goal.yaml", "--json")
        assert (fresh.code, fresh.err) == (2, "")
        assert "make room there" in fresh.events[-1]["error"]
        assert state(here) == "broken off", "the run that could not begin has left nothing"
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        assert here.bringup("resume").code == 0
        assert here.bringup("stop").code == 0


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Any:
    folder.mkdir()
    need(os.geteuid() == 0, "a small tmpfs can only be mounted by root")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    need(done.returncode == 0, f"a tmpfs cannot be mounted: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_checkpoint_that_is_broken(here: Desk) -> None:
    here.goal()
    assert here.bringup("deploy", "goal.yaml").code == 3
    (run,) = here.runs.iterdir()
    (run / "checkpoint.sqlite").write_bytes(b"no database" * 100)
    done = here.bringup("approve", "--answer", "no")
    assert done.code == 2
    words = f"bringup: {run / 'checkpoint.sqlite'}: cannot keep the checkpoints: "
    assert done.err.splitlines()[-1].startswith(words)
    (run / "checkpoint.sqlite").unlink()
    assert here.bringup("resume").code == 1


def test_signals_wait_until_a_record_is_whole() -> None:
    class Slow(MemoryTranscript):
        def _store(self, data: bytes, *, lasting: bool) -> None:
            signal.raise_signal(signal.SIGINT)
            stored.append(data)

    stored: list[bytes] = []
    transcript = Slow()
    with pytest.raises(KeyboardInterrupt):
        transcript.append(NoteAdded(text="a"))
    assert [event.seq for event in transcript.events] == [0]
    with pytest.raises(KeyboardInterrupt):
        transcript.append(NoteAdded(text="b"))
    assert [event.seq for event in transcript.events] == [0, 1]
    assert transcript.events[1].prev != transcript.events[0].prev
    assert len(stored) == 2


def test_handlers_are_as_before() -> None:
    names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(name) for name in names]
    with terminable():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        with undisturbed():
            pass
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGHUP)
    assert [signal.getsignal(name) for name in names] == before
    elsewhere = threading.Thread(target=lambda: undisturbed().__enter__())
    elsewhere.start()
    elsewhere.join()
    assert [signal.getsignal(name) for name in names] == before
