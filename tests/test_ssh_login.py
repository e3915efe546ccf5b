"""How an ssh host is reached, recognised and entered."""

from __future__ import annotations

import json
import os
import pwd
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.sshd import Sshd, new_key, server
from tests.ssh_host import ME, connector, failure, sh
from tools.command import Command, Result
from tools.connectors.ssh import Ssh
from tools.errors import ConnectionFailed

pytestmark = pytest.mark.lab


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[Sshd]:
    with server(tmp_path / "sshd", "ed25519", "ecdsa") as sshd:
        yield sshd


def connect(host: Ssh) -> dict[str, Any]:
    result = host.run(Command.of("connect", via="connection"))
    assert result.ok
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def trust(host: Ssh, fingerprint: str) -> Result:
    return host.run(Command.of("trust-host-key", fingerprint, via="connection"))


def test_a_known_host_is_entered(spark: Sshd) -> None:
    host = connector(spark)
    assert connect(host) == {
        "kind": "ssh",
        "address": "spark",
        "host": "127.0.0.1",
        "port": spark.port,
        "user": ME,
        "key_type": "ssh-ed25519",
        "fingerprint": spark.fingerprint(),
        "host_key": "known",
        "known_hosts": str(spark.known_hosts),
        "home": pwd.getpwuid(os.getuid()).pw_dir,
        "shell_ok": True,
    }
    host.close()


def test_an_unknown_host_is_not_entered_until_it_is_trusted(spark: Sshd) -> None:
    spark.known_hosts.unlink()
    host = connector(spark)
    seen = connect(host)
    assert (seen["host_key"], seen["home"], seen["shell_ok"]) == ("unknown", "", False)
    assert seen["fingerprint"] == spark.fingerprint()
    with pytest.raises(ConnectionFailed, match=r"is not known: ssh-ed25519 SHA256:.* trust it"):
        sh(host, "true")
    assert spark.logins() == 0
    wrong = trust(host, spark.fingerprint("ecdsa"))
    assert wrong.code == 1
    assert f"presents ssh-ed25519 {spark.fingerprint()} now" in wrong.stderr
    assert not spark.known_hosts.exists()
    assert trust(host, spark.fingerprint()).ok
    assert spark.known_hosts.read_text() == f"[127.0.0.1]:{spark.port} {spark.host_key()}\n"
    assert stat.S_IMODE(spark.known_hosts.stat().st_mode) == 0o600
    assert trust(host, spark.fingerprint()).ok
    assert len(spark.known_hosts.read_text().splitlines()) == 1, "a known key is not added again"
    assert connect(host)["host_key"] == "known"
    assert sh(host, "echo in").stdout == "in\n"
    host.close()


def test_a_trusted_key_can_be_hashed_and_is_openssh_s_too(spark: Sshd) -> None:
    spark.known_hosts.unlink()
    spark.configure("HashKnownHosts yes")
    host = connector(spark)
    assert trust(host, spark.fingerprint()).ok
    host.close()
    assert spark.known_hosts.read_text().startswith("|1|")
    words = ["ssh", "-F", str(spark.config), "-o", "BatchMode=yes", "spark", "echo", "in"]
    ran = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ran.stdout == "in\n"


def test_a_key_that_cannot_be_written_down(spark: Sshd, tmp_path: Path) -> None:
    spark.known_hosts.unlink()
    spark.configure(f"UserKnownHostsFile {tmp_path}/nothing")
    spark.config.write_text(
        spark.config.read_text().replace(str(spark.known_hosts), f"{tmp_path}/file/known")
    )
    (tmp_path / "file").write_text("")
    host = connector(spark)
    result = trust(host, spark.fingerprint())
    host.close()
    assert result.code == 1
    assert f"{tmp_path}/file/known cannot be written: " in result.stderr


def test_a_changed_key_is_always_refused(spark: Sshd, tmp_path: Path) -> None:
    new_key(tmp_path / "other")
    other = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    spark.known_hosts.write_text(f"# mine\n[127.0.0.1]:{spark.port} {other}\n")
    text = failure(spark)
    assert f"HAS CHANGED: it presents ssh-ed25519 {spark.fingerprint()}" in text
    assert f"{spark.known_hosts} line 2 has" in text
    host = connector(spark)
    for words in (("connect",), ("trust-host-key", spark.fingerprint())):
        with pytest.raises(ConnectionFailed, match="HAS CHANGED"):
            host.run(Command.of(*words, via="connection"))
    host.close()
    assert spark.logins() == 0


def test_a_revoked_key_is_refused(spark: Sshd) -> None:
    with spark.known_hosts.open("a") as file:
        file.write(f"@revoked * {spark.host_key()}\n")
    assert f"revoked in {spark.known_hosts} line 2" in failure(spark)


def test_a_host_shows_the_kind_of_key_that_is_known(spark: Sshd) -> None:
    spark.know("ecdsa")
    host = connector(spark)
    seen = connect(host)
    host.close()
    assert (seen["host_key"], seen["key_type"]) == ("known", "ecdsa-sha2-nistp256")
    assert seen["fingerprint"] == spark.fingerprint("ecdsa")


def test_a_host_key_alias(spark: Sshd) -> None:
    spark.known_hosts.write_text(f"cluster {spark.host_key()}\n")
    spark.configure("HostKeyAlias cluster")
    host = connector(spark)
    assert connect(host)["host_key"] == "known"
    host.close()


def test_an_rsa_host_key(tmp_path: Path) -> None:
    with server(tmp_path, "rsa") as sshd:
        host = connector(sshd)
        assert connect(host)["key_type"] == "ssh-rsa"
        assert connect(host)["host_key"] == "known"
        host.close()


def test_what_a_connection_does_not_know(spark: Sshd) -> None:
    host = connector(spark)
    result = host.run(Command.of("reboot", via="connection"))
    host.close()
    assert (result.code, "does not know `reboot`" in result.stderr) == (2, True)
    with pytest.raises(ValueError, match="is no address"):
        Ssh("-oProxyCommand=x", name="x")
