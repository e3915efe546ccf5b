"""Runs that are killed learn the end of their jobs, and a brain is told of each end once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agent.engine import drive, loop
from agent.replay import replay
from agent.runs import RunFolder
from agent.session import Session
from agent.undo import undo
from agent.values import CallStatus, ToolCall
from tests.job_host import Host, is_alive, wait_for
from tests.job_runs import begun_on, counted, settled, watched
from tests.lab.world_runs import Says, call, events, nobody, take_up
from tests.lab.worlds import World
from tools.connectors.local import Local

# --- we ourselves are killed


AGENT = """
import sys
from pathlib import Path
from agent.engine import drive
from tests.job_runs import begun_on, counted, watched
from tests.lab.world_runs import Says, nobody
from tests.lab.worlds import World
from tools.connectors.local import Local
folder = Path(sys.argv[1])
brain = Says([counted(folder, "sleep 2; exit 4")], watched)
begun, mixed = begun_on(Local(), folder, brain, World())
print(begun.folder.folder, flush=True)
mixed.begins = lambda: print("sent", mixed.sent, flush=True)
drive(begun.run, nobody)
"""


@pytest.mark.parametrize("nth", [1, 2, 4], ids=["at the start", "behind it", "in the watch"])
def test_a_run_that_is_killed_learns_the_end_of_its_job(tmp_path: Path, nth: int) -> None:
    words = [sys.executable, "-c", AGENT, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while f"sent {nth}\n" != process.stdout.readline():
            assert process.poll() is None
        if nth == 1:
            wait_for((tmp_path / "count").exists)
        process.kill()
    (folder,) = (tmp_path / "runs").iterdir()
    world = World()
    brain = Says([counted(tmp_path, "sleep 2; exit 4")], watched)
    again = take_up(RunFolder(folder, folder.name), world, brain)
    settled(again, Local(), world)
    drive(again.run, nobody)
    again.close()
    assert (tmp_path / "count").read_text() == "begun\n"
    ended = again.run.view.calls["t1.1"]
    assert (ended.status, ended.observation["already"]) == (CallStatus.OK, nth == 1)
    seen = again.run.view.calls["t2.1"]
    assert (seen.observation["state"], seen.observation["code"]) == ("exited", 4)
    assert replay(again.folder.transcript).difference is None


# --- its end is told once


def told(run: Session) -> list[str]:
    return [event.text for event in events(run, "hint") if event.name.startswith("job ")]


def looks(count: int) -> list[list[ToolCall]]:
    return [[call("host_facts", python="python3", paths=[f"/{n}"])] for n in range(count)]


def test_the_end_of_a_job_that_nobody_watches_is_told_exactly_once(tmp_path: Path) -> None:
    world = World()
    world.trap = lambda name, when: time.sleep(0.2)
    brain = Says([counted(tmp_path, "sleep 1; exit 3")], *looks(8))
    begun, _ = begun_on(Local(), tmp_path, brain, world)
    drive(begun.run, nobody)
    begun.close()
    job = f"{begun.folder.id}-t1.1"
    words = f"The job {job} (load) ended with exit code 3. job_logs reads what it wrote."
    assert told(begun) == [words]
    (hint,) = [event for event in events(begun, "hint") if event.text == words]
    assert 2 <= hint.turn <= 7
    for driver in (loop, drive):
        assert replay(begun.folder.transcript, driver).difference is None


@pytest.mark.parametrize("how", ["interrupted", "given up"])
def test_a_job_that_runs_on_is_named_and_can_be_ended(tmp_path: Path, how: str) -> None:
    turns = [looks(1)[0]]
    world = World()
    begun, _ = begun_on(Local(), tmp_path, Says([counted(tmp_path, "sleep 60")], *turns), world)

    def end_it(name: str, when: str) -> None:
        if how == "interrupted" and (tmp_path / "count").exists():
            raise KeyboardInterrupt

    world.trap = end_it
    drive(begun.run, nobody)
    pid = int(begun.run.view.calls["t1.1"].observation["pid"])
    (ended,) = events(begun, "run_ended")
    job = f"{begun.folder.id}-t1.1"
    assert is_alive(pid), "the goal keeps what runs"
    assert ended.report["running"] == [job]
    world.trap = None
    assert undo(begun.run).stopped == [job]
    begun.close()
    assert not is_alive(pid)
    assert replay(begun.folder.transcript).difference is None


def test_what_the_brain_has_seen_itself_is_not_told_again(tmp_path: Path) -> None:
    brain = Says([counted(tmp_path, "sleep 1; exit 3")], looks(1)[0], watched, *looks(3))
    begun, _ = begun_on(Local(), tmp_path, brain, World())
    drive(begun.run, nobody)
    begun.close()
    assert begun.run.view.calls["t3.1"].observation["code"] == 3
    assert told(begun) == []


def test_a_job_that_a_reboot_ended_is_told(tmp_path: Path) -> None:
    brain_turns: list[Any] = looks(3)
    world = World()
    begun, _ = begun_on(Local(), tmp_path, Says(), world)

    def reboot(view: Any) -> list[ToolCall]:
        host = Host(Path(begun.run.host_dir))
        job = f"{begun.folder.id}-t1.1"
        pid = int(view.calls["t1.1"].observation["pid"])
        os.killpg(os.getpgid(pid), signal.SIGKILL)
        wait_for(lambda: not is_alive(pid))
        host.claim(job, boot="of before")
        return looks(1)[0]

    begun.run.brain = Says([counted(tmp_path, "sleep 60")], reboot, *brain_turns)
    drive(begun.run, nobody)
    begun.close()
    assert len(told(begun)) == 1
    assert "is gone: the host was rebooted since it was started" in told(begun)[0]
