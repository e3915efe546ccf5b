"""Logging in with certificates, on a real sshd that trusts an authority and no key."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.sshd import Sshd, new_key, server
from tests.ssh_host import ME, agent_at, connector, failure, sh
from tools.connectors import ssh_key_files

pytestmark = pytest.mark.lab


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[Sshd]:
    """A server that lets in whom the authority ``ca`` vouches for, and nobody else."""
    new_key(tmp_path / "ca")
    with server(tmp_path / "sshd", TrustedUserCAKeys=f"{tmp_path}/ca.pub") as sshd:
        (sshd.folder / "authorized_keys").write_text("")
        yield sshd


def sign(ca: Path, key: Path, *options: str, names: str = ME) -> Path:
    """Let an authority sign a public key; return the certificate beside it."""
    words = ["ssh-keygen", "-q", "-s", str(ca), "-I", "test", "-n", names, *options]
    subprocess.run([*words, f"{key}.pub"], check=True, capture_output=True)
    return Path(f"{key}-cert.pub")


def is_let_in(sshd: Sshd) -> bool:
    host = connector(sshd)
    said = sh(host, "echo in").stdout
    host.close()
    return said == "in\n"


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_certificate_beside_its_key(spark: Sshd, tmp_path: Path, kind: str) -> None:
    assert "accepts none of our keys" in failure(spark)
    for end in ("", ".pub"):
        Path(f"{spark.key}{end}").unlink()
    new_key(spark.key, kind)
    sign(tmp_path / "ca", spark.key)
    assert is_let_in(spark)


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_certificate_that_the_configuration_names(
    spark: Sshd, tmp_path: Path, encrypted: bool
) -> None:
    path = sign(tmp_path / "ca", spark.key).rename(tmp_path / "mine.pub")
    more = f"CertificateFile {tmp_path}/missing\nCertificateFile {path}"
    if encrypted:
        words = ["ssh-keygen", "-q", "-p", "-N", "secret words", "-f", str(spark.key)]
        subprocess.run(words, check=True, capture_output=True)
    spark.configure(more)
    keyring = ssh_key_files.Keyring(lambda file, again: "secret words")
    host = connector(spark, keyring=keyring)
    assert sh(host, "echo in").stdout == "in\n"
    host.close()


def test_a_key_works_though_its_certificate_does_not(spark: Sshd, tmp_path: Path) -> None:
    new_key(tmp_path / "unknown")
    sign(tmp_path / "unknown", spark.key)
    shutil.copy(f"{spark.key}.pub", spark.folder / "authorized_keys")
    assert is_let_in(spark)
    Path(f"{spark.key}-cert.pub").write_text("nonsense\n")
    assert is_let_in(spark)
    sign(tmp_path / "ca", tmp_path / "unknown").rename(f"{spark.key}-cert.pub")
    assert is_let_in(spark), "a certificate of another key lies beside it"


def test_a_certificate_that_is_refused_says_for_whom_and_until_when(
    spark: Sshd, tmp_path: Path
) -> None:
    path = sign(tmp_path / "ca", spark.key, "-V", "20200101:20200102", names="trainer,admin")
    text = failure(spark)
    assert f"{path} (certificate for trainer, admin, EXPIRED 2020-01-02 00:00): refused" in text
    assert f"{spark.key}: refused" in text, "then the key alone"
    sign(tmp_path / "ca", spark.key, "-V", "20900101:20910101")
    assert "not valid before 2090-01-01" in failure(spark)
    sign(tmp_path / "ca", spark.key, names="nobody-here")
    assert "certificate for nobody-here): refused" in failure(spark)


@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_a_certificate_that_only_the_agent_has(
    spark: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    new_key(tmp_path / "key", kind)
    sign(tmp_path / "ca", tmp_path / "key")
    with agent_at(tmp_path / "agent") as path:
        monkeypatch.setenv("SSH_AUTH_SOCK", path)
        words = ["ssh-add", "-q", str(tmp_path / "key")]
        subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
        for name in ("key", "key.pub", "key-cert.pub"):
            (tmp_path / name).unlink()
        assert is_let_in(spark)


def test_the_key_is_in_the_agent_and_the_certificate_in_a_file(
    spark: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with agent_at(tmp_path / "agent") as path:
        monkeypatch.setenv("SSH_AUTH_SOCK", path)
        words = ["ssh-add", "-q", str(spark.key)]
        subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
        spark.key.unlink()
        sign(tmp_path / "ca", spark.key)
        assert is_let_in(spark)


def test_what_is_no_certificate(spark: Sshd, tmp_path: Path) -> None:
    (tmp_path / "cut").write_text(sign(tmp_path / "ca", spark.key).read_text()[:200])
    for name in (tmp_path / "none", tmp_path / "cut", Path(f"{spark.key}.pub"), spark.key):
        assert ssh_key_files.certificate(str(name)) is None
