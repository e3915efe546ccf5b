"""A connection that is lost between commands is opened anew: patiently, and to the same host."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.sshd import Sshd, server
from tests.lab.wire import Wire, wire
from tests.ssh_host import connector, sh
from tools.command import Command, Ending
from tools.connectors import ssh_link
from tools.connectors.ssh import Ssh
from tools.errors import ConnectionFailed

pytestmark = pytest.mark.lab


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[Sshd]:
    with server(tmp_path / "sshd", "ed25519", "ecdsa") as sshd:
        yield sshd


@pytest.fixture
def line(spark: Sshd) -> Iterator[Wire]:
    """The only way to the server; the client knows it by the host key alias ``spark``."""
    with wire(spark.port) as made:
        spark.known_hosts.write_text(f"spark {spark.host_key()}\n")
        spark.configure("HostKeyAlias spark")
        text = spark.config.read_text()
        spark.config.write_text(text.replace(f"Port {spark.port}", f"Port {made.port}"))
        yield made


@pytest.fixture
def host(spark: Sshd, line: Wire) -> Iterator[Ssh]:
    made = connector(spark)
    assert sh(made, "true").ok
    yield made
    made.close()


def test_what_happened_is_told(host: Ssh, line: Wire, spark: Sshd) -> None:
    line.drop()
    told: list[tuple[str, str]] = []
    result = host.run(Command.of("echo", "again"), lambda *it: told.append(it))
    assert (result.code, result.stdout) == (0, "again\n")
    assert spark.logins() == 2
    streams = [stream for stream, _ in told]
    assert streams == ["connection", "connection", "stdout"]
    assert told[0][1].startswith("the connection was lost: ")
    assert told[1][1].startswith("connected to the same host again, one attempt, ")
    told.clear()
    host.run(Command.of("echo", "third"), lambda *it: told.append(it))
    assert told == [("stdout", "third\n")], "once"


def test_a_host_that_is_away_for_a_while_is_waited_for(
    host: Ssh, line: Wire, spark: Sshd, tmp_path: Path
) -> None:
    port, line.target = line.target, 1  # nobody is there
    line.drop()
    timer = threading.Timer(1.2, setattr, [line, "target", port])
    timer.start()
    told: list[str] = []
    script = 'echo x >> "$1"'
    command = Command.of("sh", "-c", script, "sh", str(tmp_path / "count"), timeout_s=20)
    assert host.run(command, lambda _, text: told.append(text)).ok
    timer.join()
    assert (tmp_path / "count").read_text() == "x\n"
    assert " attempts, " in told[1]
    assert spark.logins() == 2


def test_waiting_ends_and_says_how_often_it_was_tried(
    host: Ssh, line: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_link, "REOPEN_S", (0.1, 0.2))
    line.target = 1
    line.drop()
    with pytest.raises(ConnectionFailed, match=r"no ssh server .*\(tried 3 times in \d s\)"):
        sh(host, "true")


def test_waiting_grows_and_is_bounded() -> None:
    waits = ssh_link.REOPEN_S
    assert list(waits) == sorted(waits)
    assert 10 < sum(waits) < 30


def test_nobody_waits_for_it_after_close(host: Ssh, line: Wire) -> None:
    line.target = 1
    line.drop()
    failed: list[str] = []

    def ask() -> None:
        try:
            sh(host, "true", timeout_s=60)
        except ConnectionFailed as error:
            failed.append(str(error))

    worker = threading.Thread(target=ask)
    worker.start()
    time.sleep(0.3)
    begun = time.monotonic()
    host.close()
    worker.join()
    assert time.monotonic() - begun < 3
    assert "no ssh server answers" in failed[0]


def test_a_command_that_may_have_begun_is_not_sent_again(
    host: Ssh, line: Wire, spark: Sshd, tmp_path: Path
) -> None:
    count = tmp_path / "count"
    script = 'echo x >> "$1"; echo done; exec sleep 5'
    lost = host.run(
        Command.of("sh", "-c", script, "sh", str(count), timeout_s=20), lambda *_: line.drop()
    )
    assert (lost.ending, lost.code, lost.stdout) == (Ending.LOST, None, "done\n")
    assert sh(host, "echo next").stdout == "next\n"
    assert count.read_text() == "x\n"
    assert spark.logins() == 2


def test_another_host_in_its_place_is_refused_though_it_is_known(
    host: Ssh, line: Wire, spark: Sshd, tmp_path: Path
) -> None:
    with server(tmp_path / "other") as other:
        shutil.copy(f"{spark.key}.pub", other.folder / "authorized_keys")
        with spark.known_hosts.open("a") as file:
            file.write(f"spark {other.host_key()}\n")
        line.target = other.port
        line.drop()
        with pytest.raises(ConnectionFailed) as caught:
            sh(host, "true")
        assert "IT IS NOT THE HOST OF BEFORE" in str(caught.value)
        assert spark.fingerprint() in str(caught.value)
        assert other.fingerprint() in str(caught.value)
        assert other.logins() == 0
        line.target = spark.port
        line.drop()
        assert sh(host, "echo back").stdout == "back\n"


def test_a_key_that_a_person_has_trusted_since_is_taken(
    host: Ssh, line: Wire, spark: Sshd, tmp_path: Path
) -> None:
    with server(tmp_path / "other") as other:
        shutil.copy(f"{spark.key}.pub", other.folder / "authorized_keys")
        spark.known_hosts.write_text("")
        line.target = other.port
        line.drop()
        words = ("trust-host-key", other.fingerprint())
        assert host.run(Command.of(*words, via="connection")).ok
        assert sh(host, "echo in").stdout == "in\n"


def test_the_host_is_asked_for_the_key_of_before(host: Ssh, line: Wire, spark: Sshd) -> None:
    """OpenSSH adds further keys of a host while it is connected (UpdateHostKeys)."""
    spark.known_hosts.write_text(f"spark {spark.host_key('ecdsa')}\nspark {spark.host_key()}\n")
    line.drop()
    assert sh(host, "echo in").stdout == "in\n"


def test_a_host_that_hangs_up_at_first_is_tried_again(spark: Sshd, line: Wire) -> None:
    line.hang_ups = 2
    host = connector(spark)
    assert sh(host, "echo in").stdout == "in\n"
    host.close()
    line.hang_ups = 99
    with pytest.raises(ConnectionFailed, match=r"no ssh server answers .*tried 4 times"):
        sh(connector(spark), "true")


def test_a_first_connection_to_nobody_is_not_waited_for(spark: Sshd) -> None:
    spark.stop()
    begun = time.monotonic()
    with pytest.raises(ConnectionFailed, match=r"Connection refused$"):
        sh(connector(spark), "true")
    assert time.monotonic() - begun < 5
