"""How commands over ssh end: by their limit, by a lost connection, by a person."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.sshd import Sshd, server
from tests.ssh_host import connector, is_alive, sh
from tools.command import Command, Ending
from tools.connectors.ssh import SOMETHING, Ssh
from tools.errors import ConnectionFailed

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with server(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


@pytest.fixture(scope="module")
def host(spark: Sshd) -> Iterator[Ssh]:
    made = connector(spark)
    yield made
    made.close()


def end_connections(sshd: Sshd) -> None:
    """Kill the processes of a server's connections, and see that they are gone."""
    pids = sshd.connections()
    sshd.signal(signal.SIGKILL)
    deadline = time.monotonic() + 5
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_background_child_does_not_hold_the_call(host: Ssh) -> None:
    result = sh(host, "sleep 60 & echo ok $!")
    word, pid = result.stdout.split()
    try:
        assert (word, result.code) == ("ok", 0)
        assert result.duration_s < 6
        assert is_alive(int(pid))
        assert result.survivors == (f"{pid} sleep 60",)
    finally:
        os.kill(int(pid), signal.SIGKILL)


def test_a_background_child_that_has_left_is_told_of(host: Ssh) -> None:
    result = sh(host, "setsid sh -c 'echo $$; exec sleep 60' & sleep 0.2")
    os.kill(int(result.stdout), signal.SIGKILL)
    assert result.ok
    assert result.survivors == (SOMETHING,)


def test_a_background_child_that_talks_on_does_not_hold_the_call(
    host: Ssh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.connectors.ssh.DRAIN_AT_MOST_S", 1.0)
    result = sh(host, "while :; do echo x; sleep 0.05; done & echo $!; exec sleep 0.1")
    pid = int(result.stdout.split()[0])
    os.kill(pid, signal.SIGKILL)
    assert result.duration_s < 6
    assert result.survivors[0].split()[0] == str(pid)


def test_a_time_out_ends_the_whole_group(host: Ssh) -> None:
    result = sh(host, "sleep 300 & echo $!; sleep 300 & echo $!; echo $$; sleep 300", timeout_s=0.5)
    assert result.ending is Ending.TIMED_OUT
    assert result.code is None
    assert 0.5 <= result.duration_s < 6
    pids = [int(pid) for pid in result.stdout.split()]
    assert len(pids) == 3
    assert not any(is_alive(pid) for pid in pids)
    assert result.survivors == ()


def test_a_time_out_ends_what_ignores_sigterm(host: Ssh) -> None:
    script = "trap '' TERM; echo $$; while :; do sleep 1; done"
    result = sh(host, script, timeout_s=0.5)
    assert result.ending is Ending.TIMED_OUT
    assert result.duration_s < 6
    assert not is_alive(int(result.stdout))


def test_sigterm_comes_first(host: Ssh, tmp_path: Path) -> None:
    script = "trap 'echo tidied > \"$1\"; exit' TERM; echo go; while :; do sleep 0.05; done"
    result = sh(host, script, str(tmp_path / "mark"), timeout_s=0.4)
    assert result.ending is Ending.TIMED_OUT
    assert (tmp_path / "mark").read_text() == "tidied\n"


@pytest.mark.parametrize("redirect", ["", ">/dev/null 2>&1"])
def test_a_child_in_another_session_is_named(host: Ssh, redirect: str) -> None:
    script = f"setsid sh -c 'echo $$ >&3; exec sleep 60 {redirect}' 3>&1 & sleep 60"
    result = sh(host, script, timeout_s=0.6)
    pid = int(result.stdout)
    try:
        assert result.ending is Ending.TIMED_OUT
        assert result.duration_s < 6
        assert result.survivors == (f"{pid} sleep 60",)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_the_limit_works_where_a_host_allows_one_channel(tmp_path: Path) -> None:
    with server(tmp_path, MaxSessions="1") as sshd:
        host = connector(sshd)
        result = sh(host, "sleep 60 & echo $!; wait", timeout_s=0.5)
        answers: list[str] = []
        workers = [
            threading.Thread(target=lambda: answers.append(sh(host, "sleep 0.1; echo a").stdout))
            for _ in range(3)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        host.close()
    assert result.ending is Ending.TIMED_OUT
    assert not is_alive(int(result.stdout))
    assert answers == ["a\n"] * 3


def test_closed_streams_do_not_end_the_wait(host: Ssh) -> None:
    result = sh(host, "exec >&- 2>&-; sleep 0.4; exit 5")
    assert result.code == 5
    assert result.duration_s >= 0.4


def test_a_server_that_stands_still_is_noticed(spark: Sshd) -> None:
    host = connector(spark, alive_s=0.3)
    assert sh(host, "true").ok
    timer = threading.Timer(0.3, spark.signal, [signal.SIGSTOP])
    timer.start()
    begun = time.monotonic()
    result = sh(host, "echo begun $$; exec sleep 60", timeout_s=30)
    assert time.monotonic() - begun < 6
    assert result.ending is Ending.LOST
    assert result.code is None
    assert "silent for" in result.stderr
    os.kill(int(result.stdout.split()[1]), signal.SIGKILL)
    assert sh(host, "echo again").stdout == "again\n", "the next command connects anew"
    host.close()
    spark.signal(signal.SIGCONT)


def test_an_idle_connection_that_is_dead_is_replaced(
    spark: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = connector(spark)
    assert sh(host, "true").ok
    monkeypatch.setattr("tools.connectors.ssh_pool.CONNECT_S", 0.5)
    monkeypatch.setattr("tools.connectors.ssh_connection.FRESH_S", 0.0)  # as after a while
    spark.signal(signal.SIGSTOP)
    result = sh(host, "echo again")
    spark.signal(signal.SIGCONT)
    host.close()
    assert result.stdout == "again\n"


def test_what_was_sent_to_a_host_that_had_just_answered_is_unknown(
    spark: Sshd, tmp_path: Path
) -> None:
    host = connector(spark, alive_s=0.3)
    count = tmp_path / "count"
    assert sh(host, "true").ok
    spark.signal(signal.SIGSTOP)
    result = sh(host, 'echo x >> "$1"', str(count))
    assert (result.ending, result.code) == (Ending.LOST, None)
    assert "silent for" in result.stderr
    spark.signal(signal.SIGCONT)
    assert sh(host, 'echo x >> "$1"', str(count)).ok, "the next command connects anew"
    assert count.read_text() in ("x\n", "x\nx\n"), "it was sent once; perhaps the host ran it"
    host.close()


def test_a_time_out_of_a_server_that_stands_still_is_no_time_out(spark: Sshd) -> None:
    host = connector(spark, alive_s=0.5)
    assert sh(host, "true").ok
    timer = threading.Timer(0.2, spark.signal, [signal.SIGSTOP])
    timer.start()
    result = sh(host, "echo $$; exec sleep 60", timeout_s=0.5)
    assert result.ending is Ending.LOST
    assert "could not be ended" in result.stderr
    assert result.duration_s < 6
    os.kill(int(result.stdout), signal.SIGKILL)
    host.close()
    spark.signal(signal.SIGCONT)


def test_a_connection_that_breaks_is_no_exit_code(spark: Sshd) -> None:
    host = connector(spark)
    assert sh(host, "true").ok
    timer = threading.Timer(0.4, spark.signal, [signal.SIGKILL])
    timer.start()
    result = sh(host, "echo begun $$; echo said >&2; exec sleep 60")
    assert result.ending is Ending.LOST
    assert (result.code, result.signal) == (None, None)
    assert result.stderr.startswith("said\nconnection lost: ")
    assert result.how == "connection lost, outcome unknown"
    assert result.duration_s < 6
    os.kill(int(result.stdout.split()[1]), signal.SIGKILL)
    host.close()


def test_a_connection_lost_between_commands_is_opened_anew(spark: Sshd, tmp_path: Path) -> None:
    host = connector(spark)
    before = spark.logins()
    script = 'echo x >> "$1"'
    sh(host, script, str(tmp_path / "count"))
    end_connections(spark)
    assert sh(host, script, str(tmp_path / "count")).ok
    assert spark.logins() == before + 2
    assert (tmp_path / "count").read_text() == "x\nx\n"
    host.close()
    assert sh(host, "true").ok, "even after close"
    host.close()
    host.close()


def test_a_server_that_is_gone_ends_the_next_command(tmp_path: Path) -> None:
    with server(tmp_path) as sshd:
        host = connector(sshd)
        assert sh(host, "true").ok
        port = sshd.port
        end_connections(sshd)
    begun = time.monotonic()
    refused = f"127.0.0.1 port {port}: Connection refused .tried 2 times"
    with pytest.raises(ConnectionFailed, match=refused):
        sh(host, "true", timeout_s=1)
    assert time.monotonic() - begun < 6
    host.close()


def test_ctrl_c_ends_the_group_and_goes_on(spark: Sshd, tmp_path: Path) -> None:
    # The signal goes to a program of its own, as it would come from a terminal.
    program = """
import sys
from tools.command import Command
from tools.connectors.ssh import Ssh
host = Ssh("spark", name="spark", config_file=sys.argv[1])
try:
    host.run(Command.of("sh", "-c", 'sleep 60 & echo $! > "$1"; echo go; wait', "sh", sys.argv[2]),
             lambda stream, text: print(text, end="", flush=True))
except KeyboardInterrupt:
    print("interrupted")
print(host.run(Command.of("echo", "next")).stdout, end="")
host.close()
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(spark.config), str(tmp_path / "pid")],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with child, child.stdout as lines:
        assert lines.readline() == "go\n"
        begun = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert lines.readline() == "interrupted\n"
        assert lines.readline() == "next\n"
        assert child.wait(5) == 0
        assert time.monotonic() - begun < 6
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_a_failing_listener_ends_the_command(host: Ssh) -> None:
    def listener(stream: str, text: str) -> None:
        raise RuntimeError(text)

    assert sh(host, "true").ok
    command = Command.of("sh", "-c", "echo $$; while :; do echo x; sleep 0.05; done")
    with pytest.raises(RuntimeError) as caught:
        host.run(command, listener)
    pid = int(str(caught.value).split()[0])
    assert not is_alive(pid)


def test_a_step_of_the_wall_clock_changes_nothing(
    host: Ssh, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sh(host, "true").ok
    steps = iter(range(10**6))
    monkeypatch.setattr(time, "time", lambda: next(steps) * 3600.0)
    result = sh(host, "sleep 0.3; echo done", timeout_s=5)
    assert result.stdout == "done\n"
    assert 0.3 <= result.duration_s < 6
