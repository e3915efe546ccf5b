"""Files of known host keys."""

from __future__ import annotations

import base64
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.lab.need import need
from tools.connectors import host_keys
from tools.connectors.host_keys import HostKey, HostKeyRefused

KEY = HostKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519 one")
OTHER = HostKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519 two")
RSA = HostKey("ssh-rsa", b"\0\0\0\x07ssh-rsa three")


def line(names: str, key: HostKey, marker: str = "") -> str:
    return f"{marker} {names} {key.kind} {base64.b64encode(key.blob).decode()} me@here\n".lstrip()


def known(tmp_path: Path, text: str) -> list[host_keys.KnownKey]:
    file = tmp_path / "known_hosts"
    file.write_text(text)
    return host_keys.read_known([str(tmp_path / "missing"), str(file)])


@pytest.mark.parametrize(
    ("names", "host", "found"),
    [
        ("spark", "spark", True),
        ("a,Spark,b", "spark", True),
        ("spark", "spark-1", False),
        ("[spark]:2222", "[spark]:2222", True),
        ("spark", "[spark]:2222", False),
        ("[spark]:2222", "spark", False),
        ("*.lan", "spark.lan", True),
        ("*.lan,!spark.lan", "spark.lan", False),
        ("!spark.lan,*.lan", "spark.lan", False),
        ("spark-?", "spark-1", True),
        ("!spark", "other", False),
        ("|1|nonsense", "spark", False),
        ("fe80::1", "fe80::1", True),
    ],
)
def test_names(names: str, host: str, found: bool) -> None:
    assert host_keys.names_host(names, host) is found


def test_a_known_an_unknown_and_a_changed_key(tmp_path: Path) -> None:
    lines = known(tmp_path, "# ours\n\nnonsense\nspark x y!\n" + line("spark", KEY))
    assert host_keys.is_known("spark", KEY, lines)
    assert not host_keys.is_known("spark-2", KEY, lines)
    with pytest.raises(HostKeyRefused) as caught:
        host_keys.is_known("spark", OTHER, lines)
    text = str(caught.value)
    for part in ("CHANGED", f"{tmp_path}/known_hosts line 5", KEY.fingerprint, OTHER.fingerprint):
        assert part in text
    assert f"ssh-keygen -f {tmp_path}/known_hosts -R 'spark'" in text


def test_a_key_of_another_kind_is_not_just_unknown(tmp_path: Path) -> None:
    # Whoever stands in between could always offer a kind that is not known yet.
    with pytest.raises(HostKeyRefused, match="line 1 has ssh-ed25519"):
        host_keys.is_known("spark", RSA, known(tmp_path, line("spark", KEY)))


def test_several_keys_of_a_host(tmp_path: Path) -> None:
    lines = known(tmp_path, line("spark", OTHER) + line("spark", RSA) + line("spark", KEY))
    assert host_keys.is_known("spark", KEY, lines)
    with pytest.raises(HostKeyRefused, match=r"line 2 has ssh-rsa"):
        host_keys.is_known("spark", HostKey("ssh-rsa", b"new"), lines)


def test_a_revoked_key_is_refused_though_it_is_known(tmp_path: Path) -> None:
    lines = known(tmp_path, line("spark", KEY) + line("*", KEY, "@revoked"))
    with pytest.raises(HostKeyRefused, match=r"revoked in .* line 2"):
        host_keys.is_known("spark", KEY, lines)


def test_a_certificate_authority_is_no_host_key(tmp_path: Path) -> None:
    lines = known(tmp_path, line("*", KEY, "@cert-authority"))
    assert not host_keys.is_known("spark", KEY, lines)
    assert not host_keys.is_known("spark", OTHER, lines)


def test_what_is_known_is_asked_for_first(tmp_path: Path) -> None:
    offered = ["ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256"]
    lines = known(tmp_path, line("spark", RSA) + line("other", KEY))
    first = host_keys.preferred(offered, "spark", lines)
    assert first == ["rsa-sha2-512", "rsa-sha2-256", "ssh-ed25519", "ecdsa-sha2-nistp256"]
    assert host_keys.preferred(offered, "third", lines) == offered


@pytest.mark.parametrize("hashed", [False, True])
def test_a_key_is_remembered_for_openssh_too(tmp_path: Path, hashed: bool) -> None:
    file = tmp_path / "new" / "known_hosts"
    host_keys.remember(str(file), "[spark]:2222", KEY, hashed=hashed)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert ("spark" in file.read_text()) is not hashed
    assert host_keys.is_known("[spark]:2222", KEY, host_keys.read_known([str(file)]))
    need(shutil.which("ssh-keygen") is not None, "ssh-keygen is missing (openssh-client)")
    words = ["ssh-keygen", "-F", "[spark]:2222", "-f", str(file)]
    assert "line 1" in subprocess.run(words, capture_output=True, text=True).stdout


def test_hashes_of_openssh_are_read(tmp_path: Path) -> None:
    need(shutil.which("ssh-keygen") is not None, "ssh-keygen is missing (openssh-client)")
    file = tmp_path / "known_hosts"
    file.write_text(line("spark", KEY))
    subprocess.run(["ssh-keygen", "-H", "-f", str(file)], check=True, capture_output=True)
    assert "spark" not in file.read_text()
    assert host_keys.is_known("spark", KEY, host_keys.read_known([str(file)]))


def test_a_file_without_a_last_line_break_is_not_spoilt(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(line("old", OTHER).rstrip("\n"))
    host_keys.remember(str(file), "spark", KEY, hashed=False)
    lines = host_keys.read_known([str(file)])
    assert host_keys.is_known("old", OTHER, lines)
    assert host_keys.is_known("spark", KEY, lines)
