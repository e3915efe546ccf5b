"""A variable whose name says that it is secret is refused whatever its value; others are not."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from agent.inventory import InventoryError, load

REFUSED = {
    "DB_PASSWORD": 12345678,
    "OPENAI_API_KEY": 987654321,
    "API_KEY": "ab",
    "HF_TOKEN": "abc12",
    "HF_TOKEN_2": 12345,
    "TOKEN_SECRET": 12345,
    "MAX_TOKENS": 12345678901,
    "SSHPASS": "hunter2abc",
    "SMTP_PASS": 1.5,
    "MYSQL_PWD": "x",
    "PWD": "hunter2abc",
    "DB_PW": "x",
    "REDISCLI_AUTH": "x",
    "TS_AUTHKEY": "x",
    "aws_secret_access_key": "/ab",
    "dbPassword": True,
    "MY_SECRET": ["x"],
    "KEY_FILE": "x",
    "USE_SECRET": "tr",
    "X": {"PASSWORD": "ab"},
    "ARGS": "DB_PASSWORD=ab",
}
TAKEN = {
    "PWD": "/srv/models",
    "OLDPWD": "~/x",
    "HF_TOKEN": "",
    "HF_TOKEN_PATH": "~/.cache/token",
    "GOOGLE_APPLICATION_CREDENTIALS": "/etc/no-such-file.json",
    "KEY_FILE": "/etc/no-such-file.pem",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": 1,
    "MAX_TOKENS": 4096,
    "EOS_TOKEN_ID": "2",
    "TOKENIZERS_PARALLELISM": "false",
    "SSH_ASKPASS": "/usr/bin/askpass",
    "CUDA_BYPASS": "x",
    "NCCL_IB_PKEY": "0x1",
    "XAUTHORITY": "/home/me/.Xauthority",
    "KEYRING": "x",
    "XLA_FLAGS": "--xla_one_pass=x",
    "MIRROR": "https://h/secret/models?v=1",
}


def written(folder: Path, env: object) -> Path:
    path = folder / "hosts.yaml"
    path.write_text(yaml.safe_dump({"hosts": {"a": {"env": env}}}))
    return path


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_alone_is_enough(tmp_path: Path, name: str) -> None:
    with pytest.raises(InventoryError, match="looks like a secret; no secrets here") as caught:
        load(written(tmp_path, {name: REFUSED[name]}))
    assert f": hosts.a.env.{name}" in str(caught.value)


@pytest.mark.parametrize("env", ["DB_PASSWORD=ab", ["API_KEY=ab"], [{"API_KEY": "ab"}]])
def test_a_wrong_form_shows_no_secret_either(tmp_path: Path, env: object) -> None:
    with pytest.raises(InventoryError, match=r"hosts.a.env(\.0.*)?: looks like a secret") as caught:
        load(written(tmp_path, env))
    assert "ab" not in str(caught.value).removeprefix(str(tmp_path))


@pytest.mark.parametrize("name", TAKEN)
def test_names_that_only_sound_like_it(tmp_path: Path, name: str) -> None:
    made = load(written(tmp_path, {name: TAKEN[name]}))
    assert made.members["a"].env == {name: str(TAKEN[name])}


def test_defaults_are_looked_at_too(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yaml"
    path.write_text("defaults: {env: {DB_PASSWORD: 1}}")
    with pytest.raises(InventoryError, match=r"defaults\.env\.DB_PASSWORD: looks like"):
        load(path)
