"""Channels that are opened ahead: a command takes one round trip, and nothing else changes."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import paramiko
import pytest
from paramiko.common import AUTH_SUCCESSFUL, OPEN_SUCCEEDED

from tests.lab.sshd import Sshd, server
from tests.ssh_host import connector, sh
from tools.command import Command, Ending
from tools.connectors.ssh import Ssh
from tools.connectors.ssh_connection import Connection
from tools.connectors.ssh_reserve import MOST
from tools.errors import ConnectionFailed

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with server(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


def connection(host: Ssh) -> Connection:
    return host._link.connection()


class Held:
    """A proxy that carries what we send, and can hold back what the host answers."""

    def __init__(self, port: int) -> None:
        self.answers = threading.Event()
        self.answers.set()
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.door.getsockname()[1])
        self.ends: list[socket.socket] = []
        self.target = port
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        with suppress(OSError):
            near = self.door.accept()[0]
            far = socket.create_connection(("127.0.0.1", self.target))
            self.ends += [near, far]
            threading.Thread(target=self.carry, args=(far, near, True), daemon=True).start()
            self.carry(near, far, False)

    def carry(self, source: socket.socket, to: socket.socket, held: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if held:
                    self.answers.wait(20)
                to.sendall(data)

    def close(self) -> None:
        self.answers.set()
        for end in (self.door, *self.ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def test_a_bare_command_is_sent_without_waiting_for_any_answer(spark: Sshd, tmp_path: Path) -> None:
    late = Held(spark.port)
    with spark.known_hosts.open("a") as file:
        file.write(f"[127.0.0.1]:{late.port} {spark.host_key()}\n")
    config = spark.config.read_text()
    spark.config.write_text(config.replace(f"Port {spark.port}", f"Port {late.port}"))
    host = connector(spark)
    try:
        assert sh(host, "true").ok
        for opening in list(connection(host).reserve._openings):
            connection(host).transport.await_open(opening, 5)
        late.answers.clear()
        answers: list[str] = []
        script = "touch \"$1\"; echo 'it is' done"
        workers = [
            threading.Thread(
                target=lambda at: answers.append(sh(host, script, at).stdout), args=(at,)
            )
            for at in (str(tmp_path / f"{number}") for number in range(MOST))
        ]
        for worker in workers:
            worker.start()
        deadline = time.monotonic() + 10
        while len([*tmp_path.iterdir()]) < MOST and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len([*tmp_path.iterdir()]) == MOST, "the host runs them, and we have heard nothing"
        assert answers == []
        late.answers.set()
        for worker in workers:
            worker.join()
        assert answers == ["it is done\n"] * MOST
        assert host.run(Command.of("cat", stdin="x" * 100_000)).stdout == "x" * 100_000
    finally:
        host.close()
        late.close()
        spark.config.write_text(config)


def test_no_channel_is_used_twice_or_left(spark: Sshd) -> None:
    host = connector(spark)
    assert sh(host, "true").ok
    files = len([*Path("/proc/self/fd").iterdir()])
    threads = threading.active_count()
    used: set[int] = set()
    opened = connection(host).transport
    for number in range(500):
        assert sh(host, 'echo "$1"', str(number)).stdout == f"{number}\n"
        used.add(opened._channel_counter)  # type: ignore[attr-defined]
        assert len(connection(host).reserve) <= MOST
    assert len(used) == 500
    assert len(opened._channels) <= MOST  # type: ignore[attr-defined]
    assert (opened.signals, opened.refused, opened._asked) == ({}, set(), {})
    assert len([*Path("/proc/self/fd").iterdir()]) <= files
    assert threading.active_count() <= threads
    host.close()


@pytest.mark.parametrize("most", ["1", "2", "3"])
def test_a_host_that_allows_few_channels(tmp_path: Path, most: str) -> None:
    with server(tmp_path, MaxSessions=most) as sshd:
        host = connector(sshd)
        for number in range(8):
            assert sh(host, 'echo "$1"', str(number)).stdout == f"{number}\n"
        answers: list[str] = []
        workers = [
            threading.Thread(target=lambda: answers.append(sh(host, "sleep 0.1; echo a").stdout))
            for _ in range(5)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert answers == ["a\n"] * 5
        timer = threading.Timer(0.3, sshd.signal, [signal.SIGKILL])
        timer.start()
        lost = sh(host, "exec sleep 60")
        assert lost.ending is Ending.LOST
        assert lost.stderr.startswith("connection lost: ")
        assert "esource" not in lost.stderr, "a channel that was refused is not why"
        host.close()


def test_what_was_not_needed_for_long_is_closed(
    spark: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.connectors.ssh_reserve.IDLE_S", 0.0)
    host = connector(spark, alive_s=0.2)
    assert sh(host, "true").ok
    reserve = connection(host).reserve
    assert len(reserve) == MOST
    deadline = time.monotonic() + 5
    while len(reserve) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(reserve) == 0
    assert sh(host, "echo on").stdout == "on\n"
    assert connection(host).active
    host.close()


def test_a_channel_that_the_host_closed_is_not_used(spark: Sshd) -> None:
    host = connector(spark)
    assert sh(host, "true").ok
    reserve = connection(host).reserve
    for opening in list(reserve._openings):
        connection(host).transport.await_open(opening, 5).close()
    assert len(reserve) == 0
    assert sh(host, "echo on").stdout == "on\n"
    host.close()


class _Refuses(paramiko.ServerInterface):
    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return AUTH_SUCCESSFUL

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return OPEN_SUCCEEDED


def test_a_host_that_refuses_to_start_anything_has_started_nothing(
    spark: Sshd, tmp_path: Path
) -> None:
    key = paramiko.RSAKey.generate(2048)
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        begun: list[paramiko.Transport] = []

        def serve() -> None:
            transport = paramiko.Transport(door.accept()[0])
            begun.append(transport)
            transport.add_server_key(key)
            transport.start_server(server=_Refuses())

        threading.Thread(target=serve, daemon=True).start()
        known = tmp_path / "known"
        known.write_text(f"[127.0.0.1]:{port} ssh-rsa {key.get_base64()}\n")
        config = tmp_path / "config"
        config.write_text(f"Host *\nIdentityFile {spark.key}\nUserKnownHostsFile {known}\n")
        host = Ssh(f"ssh://127.0.0.1:{port}", name="spark", config_file=str(config))
        with pytest.raises(ConnectionFailed, match="starts no command"):
            sh(host, "true")
        with pytest.raises(ConnectionFailed, match="starts no command"):
            host.run(Command.of("cat", stdin="x"))
        host.close()
        for transport in begun:
            transport.close()
