"""Jobs when connections and processes fail: one execution, and its true end is learnt.

The host is this machine, mostly behind a real sshd; all else that a run asks is simulated.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.engine import drive, loop
from agent.replay import replay
from agent.values import CallStatus, Outcome
from tests.job_host import is_alive, wait_for
from tests.job_runs import begun_on, counted, watched
from tests.lab.sshd import Sshd, server
from tests.lab.wire import Wire, wire
from tests.lab.world_runs import Says, begin, events, nobody, outcome
from tests.lab.worlds import World
from tests.ssh_host import connector
from tools.command import Command, Ending, OnOutput, Result
from tools.errors import ConnectionFailed

pytestmark = pytest.mark.lab


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    with server(tmp_path / "sshd") as made:
        yield made


@pytest.fixture
def line(sshd: Sshd) -> Iterator[Wire]:
    """A way to the host that can fail; its answers come late."""
    with wire(sshd.port, delay_s=0.15) as made:
        keys = sshd.known_hosts.read_text()
        sshd.known_hosts.write_text(keys + keys.replace(f":{sshd.port} ", f":{made.port} "))
        sshd.config.write_text(
            sshd.config.read_text().replace(f"Port {sshd.port}", f"Port {made.port}")
        )
        yield made


def when_there(path: Path, act: Callable[[], None]) -> threading.Thread:
    """Do something the moment that a file is there."""

    def wait() -> None:
        wait_for(path.exists, 20)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.parametrize("fault", ["drop", "freeze"])
def test_an_answer_that_is_lost_after_the_claim(
    tmp_path: Path, sshd: Sshd, line: Wire, fault: str
) -> None:
    host = connector(sshd, alive_s=0.7)

    def break_it() -> None:
        getattr(line, fault)()
        if fault == "freeze":
            time.sleep(1.5)
            line.drop()
            line.thaw()

    brain = Says([counted(tmp_path, "sleep 1; exit 6")], watched)
    begun, _ = begun_on(host, tmp_path, brain, World())
    thread = when_there(tmp_path / "count", break_it)
    drive(begun.run, nobody)
    thread.join()
    begun.close()
    assert (tmp_path / "count").read_text() == "begun\n", "executed exactly once"
    started = begun.run.view.calls["t1.1"]
    assert started.status is CallStatus.OK
    assert started.observation["already"]
    samples = [event for event in events(begun, "call_sampled") if event.call_id == "t1.1"]
    assert samples[0].result.ending is Ending.LOST
    assert samples[-1].result.ok
    seen = begun.run.view.calls["t2.1"]
    assert (seen.observation["state"], seen.observation["code"]) == ("exited", 6)
    for driver in (loop, drive):
        assert replay(begun.folder.transcript, driver).difference is None


def test_a_watch_outlives_the_processes_of_its_connection(tmp_path: Path, sshd: Sshd) -> None:
    brain = Says([counted(tmp_path, "sleep 3; exit 5")], watched)
    begun, _ = begun_on(connector(sshd), tmp_path, brain, World())
    killed: list[int] = []

    def kill() -> None:
        for _ in range(3):
            killed.append(len(sshd.connections()))
            sshd.signal(signal.SIGKILL)
            time.sleep(0.6)

    thread = when_there(tmp_path / "count", kill)
    drive(begun.run, nobody)
    thread.join()
    begun.close()
    assert min(killed) > 0
    assert sshd.logins() >= 3
    seen = begun.run.view.calls["t2.1"]
    assert (seen.status, seen.observation["code"]) == (CallStatus.OK, 5)
    assert (tmp_path / "count").read_text() == "begun\n"


def test_a_host_that_stays_away_ends_the_run_and_the_job_goes_on(
    tmp_path: Path, sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.connectors.ssh_link.REOPEN_S", (0.1,))
    host = connector(sshd)
    world = World()
    brain = Says([counted(tmp_path, "sleep 300")], watched)
    begun, mixed = begun_on(host, tmp_path, brain, world)

    def end_it() -> None:
        if mixed.sent == 4:
            sshd.stop()

    mixed.begins = end_it
    before = world.now
    drive(begun.run, nobody)
    begun.close()
    assert outcome(begun) is Outcome.UNREACHABLE
    assert 60 <= world.now - before < 90, "it was waited for"
    assert begun.run.view.calls["t2.1"].status is CallStatus.UNKNOWN
    pid = int(begun.run.view.calls["t1.1"].observation["pid"])
    assert is_alive(pid)
    os.killpg(os.getpgid(pid), signal.SIGKILL)
    assert replay(begun.folder.transcript).difference is None


def test_a_change_that_is_not_claimed_is_not_sent_again(tmp_path: Path) -> None:
    world = World()
    world.trap = lambda name, when: (
        Result(Ending.LOST, stderr="the connection broke")
        if (name, when) == ("pip install", "after")
        else None
    )
    begun = begin(tmp_path, world)
    drive(begun.run, nobody)
    begun.close()
    assert outcome(begun) is Outcome.UNREACHABLE
    assert world.asked.count("pip install") == 1


class Away:
    """A host that answers, is away for so many requests, and answers again."""

    name = "local"

    def __init__(self, world: World, first: int, times: int) -> None:
        self.world, self.first, self.last = world, first, first + times
        self.asked = 0

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        self.asked += 1
        if self.first < self.asked <= self.last:
            raise ConnectionFailed("local", "cannot connect: Connection refused")
        return self.world.run(command, on_output)

    def close(self) -> None:
        """Nothing is held."""


@pytest.mark.parametrize(("times", "comes"), [(7, True), (8, False)])
def test_a_reboot_in_the_midst_of_a_watch_is_waited_for(
    tmp_path: Path, times: int, comes: bool
) -> None:
    world = World(load_s=300.0)
    world.versions["transformers"] = "5.24.0"
    begun = begin(tmp_path, world)

    def sleep(seconds: float) -> None:
        if "server_sample" in world.asked and not isinstance(begun.run.connectors["local"], Away):
            begun.run.connectors = {"local": Away(world, 0, times)}
        world.sleep(seconds)

    begun.run.sleep = sleep
    drive(begun.run, nobody)
    begun.close()
    assert outcome(begun) is (Outcome.READY if comes else Outcome.UNREACHABLE)
    assert world.count("start") == 1
    assert replay(begun.folder.transcript).difference is None
