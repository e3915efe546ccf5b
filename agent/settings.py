"""The one settings model: defaults < file < environment < flags.

``os.environ`` is read here and nowhere else.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal

import platformdirs
from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from agent.explain import explain
from agent.problems import Problem
from agent.redact import Redactor, secrets_of

PREFIX = "BRINGUP_"
CONFIG = "BRINGUP_CONFIG"
"""Names another settings file."""


class SettingsError(Problem):
    """A setting cannot be used; the message says which, where it was set and what to do."""


class Settings(BaseSettings):
    """What a person sets once for all runs."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    runs_dir: Path | None = None
    """Folder of all runs; ``None`` means ``bringup/runs`` in the user's state folder."""
    mode: Literal["read-only", "supervised", "auto"] = "supervised"
    """What runs unasked: only reads; reads and what was allowed; all that the policy allows."""
    brain: str = "playbook"
    """Who decides: ``playbook`` needs no model and no key."""
    torch_index: str = "https://download.pytorch.org/whl/cpu"
    """Index for installing torch where the default one would give a CUDA build."""
    ssh_config: Path | None = None
    """Configuration file for ssh instead of the user's own, as ``ssh -F`` takes it."""
    on_ask: Literal["park", "deny"] = "park"
    """Without a terminal, an ask parks the run or is a refusal that the brain reads."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources, the strongest first."""
        file = TomlConfigSettingsSource(settings_cls, toml_file=config_file())
        return init_settings, env_settings, file


def environment() -> dict[str, str]:
    """Return a copy of this process' environment."""
    return dict(os.environ)


def config_file() -> Path:
    """Return where the settings file is, whether or not it exists."""
    named = os.environ.get(CONFIG)
    if named:
        return Path(named).expanduser()
    return Path(platformdirs.user_config_dir("bringup")) / "config.toml"


def load(**flags: Any) -> Settings:
    """Read the settings; a flag that is ``None`` was not given.

    Raises:
        SettingsError: the file cannot be read, a key is unknown, or a value is wrong.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    _check_file(config_file())
    try:
        return Settings(**given)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{config_file()}: not valid TOML: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise SettingsError(f"{config_file()}: cannot read the settings: {reason}") from None
    except ValidationError as error:
        raise SettingsError(_safe(_explain(error, given))) from None


def _check_file(path: Path) -> None:
    """Refuse what would be passed over in silence."""
    if os.environ.get(CONFIG) and not path.exists():
        raise SettingsError(f"{path}: no such file; {CONFIG} names it")
    if path.exists() and not path.is_file():
        raise SettingsError(f"{path}: cannot read the settings: not a file")


def _explain(error: ValidationError, flags: dict[str, Any]) -> str:
    """Say in one line what is wrong and where it was set, and never with what value."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"{config_file()}: {explain(error, Settings)}"
    if name in flags:
        where = f"--{name.replace('_', '-')}"
    elif f"{PREFIX}{name}".upper() in os.environ:
        where = f"{PREFIX}{name}".upper()
    else:
        where = f"{config_file()}: {name}"
    return f"{where}: {first['msg'].lower()}"


def _safe(text: str) -> str:
    return Redactor(secrets_of(os.environ), {}).redact(text)
