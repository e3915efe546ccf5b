"""The way to an ssh host: straight, by way of others, by a program, or none."""

from __future__ import annotations

import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.sshd import Sshd, free_port, server
from tests.ssh_host import connector, failure, sh
from tools.command import Command
from tools.connectors import ssh_config, ssh_dial
from tools.connectors.ssh_config import Address
from tools.errors import ConnectionFailed

pytestmark = pytest.mark.lab


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[Sshd]:
    with server(tmp_path / "sshd") as sshd:
        yield sshd


def test_small_packets_do_not_wait_for_each_other(spark: Sshd) -> None:
    stream = ssh_dial.tcp(ssh_config.resolve(Address("spark"), str(spark.config)), 5)
    assert stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    stream.close()


def test_nobody_listens(spark: Sshd) -> None:
    spark.stop()
    text = failure(spark)
    assert text == f"spark: cannot connect to 127.0.0.1 port {spark.port}: Connection refused"


def test_a_name_that_nobody_knows(spark: Sshd) -> None:
    assert "cannot connect to no-such-host.invalid port 22: " in failure(
        spark, "no-such-host.invalid"
    )


@pytest.mark.parametrize("greeting", [b"HTTP/1.0 400 Bad Request\r\n\r\n", b"", None])
def test_another_server_listens(spark: Sshd, greeting: bytes | None) -> None:
    """It says something else, it hangs up, or it is silent."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held = []

        def serve() -> None:
            stream, _ = listener.accept()
            held.append(stream)
            if greeting is not None:
                stream.sendall(greeting)
                stream.shutdown(socket.SHUT_WR)

        worker = threading.Thread(target=serve)
        worker.start()
        port = listener.getsockname()[1]
        spark.configure("ConnectTimeout 1")
        assert f"no ssh server answers at 127.0.0.1 port {port}: " in failure(
            spark, f"spark:{port}"
        )
        worker.join()
        for stream in held:
            stream.close()


def test_by_way_of_another_host(spark: Sshd, tmp_path: Path) -> None:
    with server(tmp_path / "inner", AllowTcpForwarding="no") as inner:
        shutil.copy(f"{spark.key}.pub", inner.folder / "authorized_keys")
        inner_known = f"[127.0.0.1]:{inner.port} {inner.host_key()}\n"
        spark.known_hosts.write_text(spark.known_hosts.read_text() + inner_known)
        more = (
            f"\nHost inner\nHostName 127.0.0.1\nPort {inner.port}\nIdentityFile {spark.key}\n"
            f"UserKnownHostsFile {spark.known_hosts}\nProxyJump spark\n"
        )
        spark.config.write_text(spark.config.read_text() + more)
        host = connector(spark, "inner")
        for number in range(3):
            assert sh(host, "echo $SSH_CONNECTION; cat", timeout_s=5).ok, number
        assert (spark.logins(), inner.logins()) == (1, 1)
        big = host.run(Command.of("head", "-c", "3000000", "/dev/zero"))
        assert big.stdout_omitted > 2_000_000
        host.close()
        spark.known_hosts.write_text(inner_known)
        with pytest.raises(ConnectionFailed, match=r"by way of spark: the host key of 127.0.0.1"):
            sh(host, "true")
        host.close()


def test_hosts_that_are_on_the_way_of_each_other(spark: Sshd) -> None:
    spark.configure("ProxyJump spark")
    assert "more than 8 hosts on the way" in failure(spark)


def test_by_a_program(spark: Sshd, tmp_path: Path) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(
        "import socket, sys, threading, os\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "def up():\n"
        "    while data := os.read(0, 65536): s.sendall(data)\n"
        "    os._exit(0)\n"
        "threading.Thread(target=up, daemon=True).start()\n"
        "while data := s.recv(65536): os.write(1, data)\n"
    )
    spark.configure(f"ProxyCommand {sys.executable} {relay} %h %p | cat")
    host = connector(spark)
    assert sh(host, "echo in").stdout == "in\n"
    assert host.run(Command.of("head", "-c", "3000000", "/dev/zero")).stdout_omitted > 2_000_000
    host.close()
    spark.configure(f"ProxyCommand {sys.executable} {relay} %h {free_port()} 2>/dev/null")
    assert "no ssh server answers" in failure(spark)
    spark.configure("ProxyCommand no-such-program-here 2>/dev/null")
    assert "no ssh server answers" in failure(spark)
