"""With which keys an ssh host lets us in."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.sshd import Sshd, new_key, server
from tests.ssh_host import ME, connector, failure, sh

pytestmark = pytest.mark.lab


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[Sshd]:
    with server(tmp_path / "sshd") as sshd:
        yield sshd


def test_a_wrong_key(spark: Sshd, tmp_path: Path) -> None:
    new_key(tmp_path / "stranger")
    spark.config.write_text(
        spark.config.read_text().replace(str(spark.key), str(tmp_path / "stranger"))
    )
    text = failure(spark)
    assert f"{ME}@127.0.0.1 does not let us in: it accepts none of our keys for {ME}" in text
    assert f"{tmp_path}/stranger: refused (SHA256:" in text
    assert "ssh spark true" in text


def test_no_key_at_all(spark: Sshd) -> None:
    spark.key.unlink()
    text = failure(spark)
    assert f"there is no key: {spark.key} are missing" in text


def test_a_file_that_is_no_key(spark: Sshd) -> None:
    spark.key.write_text("nonsense\n")
    assert f"{spark.key}: cannot be read: " in failure(spark)


def test_another_user_is_not_let_in(spark: Sshd) -> None:
    assert "no-such-user@127.0.0.1 does not let us in" in failure(spark, "no-such-user@spark")


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    path = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    while not path.exists():
        assert process.poll() is None
        time.sleep(0.01)
    yield
    process.terminate()
    process.wait(5)


@pytest.mark.parametrize("form", ["openssh", "pem"])
def test_a_key_with_a_passphrase_needs_an_agent(
    spark: Sshd, tmp_path: Path, agent: None, form: str
) -> None:
    shutil.copy(spark.key, tmp_path / "plain")
    if form == "pem":
        for name in (spark.key, tmp_path / "plain"):
            name.unlink()
        new_key(tmp_path / "plain", "ecdsa")
        shutil.copy(tmp_path / "plain", spark.key)
        shutil.copy(tmp_path / "plain.pub", f"{spark.key}.pub")
        shutil.copy(tmp_path / "plain.pub", spark.folder / "authorized_keys")
    options = ["-m", "PEM"] if form == "pem" else []
    words = ["ssh-keygen", "-q", "-p", *options, "-N", "secret", "-f", str(spark.key)]
    subprocess.run(words, check=True, capture_output=True)
    text = failure(spark)
    assert f"{spark.key}: has a passphrase; add it to an agent: ssh-add {spark.key}" in text
    subprocess.run(["ssh-add", "-q", tmp_path / "plain"], check=True, stderr=subprocess.DEVNULL)
    for more in ("", "IdentitiesOnly yes"):
        spark.configure(more)
        host = connector(spark)
        assert sh(host, "echo in").stdout == "in\n"
        host.close()


def test_the_agent_that_the_configuration_names(spark: Sshd, tmp_path: Path, agent: None) -> None:
    subprocess.run(["ssh-add", "-q", spark.key], check=True, stderr=subprocess.DEVNULL)
    spark.key.unlink()
    spark.configure("IdentityAgent none")
    assert "there is no key" in failure(spark)
    spark.configure(f"IdentityAgent {tmp_path}/missing")
    assert "there is no key" in failure(spark)
    spark.configure(f"IdentityAgent {tmp_path}/agent")
    host = connector(spark)
    assert sh(host, "echo in").stdout == "in\n"
    host.close()


def test_other_keys_of_an_agent(spark: Sshd, tmp_path: Path, agent: None) -> None:
    spark.key.rename(tmp_path / "moved")
    Path(f"{spark.key}.pub").unlink()
    new_key(spark.key)  # a wrong one
    subprocess.run(["ssh-add", "-q", tmp_path / "moved"], check=True, stderr=subprocess.DEVNULL)
    host = connector(spark)
    assert sh(host, "echo in").stdout == "in\n"
    host.close()
    spark.configure("IdentitiesOnly yes")
    assert "refused" in failure(spark)


def test_more_keys_than_a_host_wants_to_see(tmp_path: Path) -> None:
    with server(tmp_path / "sshd", MaxAuthTries="2") as sshd:
        names = [tmp_path / f"key{number}" for number in range(4)]
        for name in names:
            new_key(name)
        text = "\n".join(f"IdentityFile {name}" for name in names)
        sshd.config.write_text(sshd.config.read_text().replace(f"IdentityFile {sshd.key}", text))
        assert "broke off, as hosts do" in failure(sshd)


def test_a_host_that_takes_passwords_only(tmp_path: Path) -> None:
    with server(tmp_path, PubkeyAuthentication="no", PasswordAuthentication="yes") as sshd:
        assert "it takes no keys, only password" in failure(sshd)
