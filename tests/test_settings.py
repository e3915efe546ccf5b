"""Settings: their order, and errors that say where a value was set and never what it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import settings
from agent.settings import SettingsError

SECRET = "canary-4711"  # noqa: S105 - a canary


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings file of an otherwise empty environment; it does not exist yet."""
    for name in settings.environment():
        if name.startswith(settings.PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    path = settings.config_file()
    assert tmp_path in path.parents
    path.parent.mkdir(parents=True)
    return path


def test_defaults() -> None:
    found = settings.load()
    assert found.model_dump() == {
        "runs_dir": None,
        "mode": "supervised",
        "brain": "",
        "model": "",
        "base_url": "",
        "model_timeout_s": 600.0,
        "model_tools": (),
        "context_tokens": 0,
        "reply_tokens": 8192,
        "prices": {},
        "torch_index": "https://download.pytorch.org/whl/cpu",
        "kept_output_mib": 1024,
        "ssh_config": None,
        "inventory": None,
        "on_ask": "park",
    }


def test_file_then_environment_then_flags(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text('mode = "auto"\nbrain = "from-file"\nruns_dir = "/srv/runs"\n')
    assert settings.load().brain == "from-file"
    monkeypatch.setenv("BRINGUP_BRAIN", "from-environment")
    assert settings.load().brain == "from-environment"
    found = settings.load(brain="from-flag", on_ask=None)
    assert (found.brain, found.mode, found.on_ask) == ("from-flag", "auto", "park")
    assert found.runs_dir == Path("/srv/runs")


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRINGUP_MODE", "")
    monkeypatch.setenv("BRINGUP_UNRELATED", "x")
    assert settings.load().mode == "supervised"


def test_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.toml"
    monkeypatch.setenv(settings.CONFIG, str(other))
    with pytest.raises(SettingsError, match=r"other.toml: no such file; BRINGUP_CONFIG names it"):
        settings.load()
    other.write_text('mode = "read-only"\n')
    assert settings.load().mode == "read-only"


def failure(**flags: object) -> str:
    with pytest.raises(SettingsError) as caught:
        settings.load(**flags)
    text = str(caught.value)
    assert "\n" not in text
    assert caught.value.__cause__ is None
    return text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("moode = 'auto'", "unknown key `moode`; did you mean `mode`?"),
        ("mode = ", "not valid TOML: Invalid value (at end of document)"),
        ("mode = 'fast'", "mode: input should be 'read-only', 'supervised' or 'auto'"),
        ("brain = 3", "brain: input should be a valid string"),
    ],
)
def test_a_wrong_file(file: Path, content: str, message: str) -> None:
    file.write_text(content)
    assert failure() == f"{file}: {message}"


def test_a_key_like_no_other(file: Path) -> None:
    file.write_text("zzz = 1")
    assert failure().startswith(f"{file}: unknown key `zzz`; known")
    names = "base_url, brain, context_tokens, inventory, kept_output_mib, mode, model, "
    names += "model_timeout_s, model_tools, on_ask, prices, reply_tokens, runs_dir, ssh_config, "
    names += "torch_index"
    assert failure().endswith(names)


def test_an_unreadable_file(file: Path) -> None:
    file.mkdir()
    assert failure() == f"{file}: cannot read the settings: not a file"
    file.rmdir()
    file.write_bytes(b"mode = '\xff'")
    assert failure() == f"{file}: cannot read the settings: not UTF-8 text"


def test_a_wrong_value_is_named_by_where_it_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRINGUP_ON_ASK", "maybe")
    assert failure() == "BRINGUP_ON_ASK: input should be 'park' or 'deny'"
    assert failure(mode="fast", on_ask="deny").startswith("--mode: input should be")


@pytest.mark.parametrize(
    "content",
    [
        f"mode = '{SECRET}'",
        f"brain = ['{SECRET}']",
        f"runs_dir = {{ token = '{SECRET}' }}",
        f"api_key = '{SECRET}'",
        "hf_canary0123456789abcdef = 1",
        f"mode = '{SECRET}' '{SECRET}'",
        f"mode = '{SECRET}",
    ],
)
def test_no_error_tells_a_value(file: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    file.write_text(content)
    assert "canary" not in failure()
    file.unlink()
    monkeypatch.setenv("BRINGUP_MODE", SECRET)
    assert "canary" not in failure()
