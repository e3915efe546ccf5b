"""The one settings model: defaults < file < environment < flags.

``os.environ`` is read here and nowhere else.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError
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
DEFAULT_URL = "https://api.openai.com/v1"
CONFIG = "BRINGUP_CONFIG"
"""Names another settings file."""


class SettingsError(Problem):
    """A setting cannot be used; the message says which, where it was set and what to do."""


class Price(BaseModel):
    """What a model costs, in USD a million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    """Of prompt tokens that came from the endpoint's cache; without it they cost as others."""


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
    brain: str = ""
    """Who decides: ``playbook`` needs no model and no key, ``openai`` asks one; empty: ``openai``
    where ``model`` is set, else ``playbook``."""
    model: str = ""
    """The model's name at its endpoint."""
    base_url: str = ""
    """An OpenAI-compatible endpoint; empty: ``OPENAI_BASE_URL``, else OpenAI's own."""
    model_timeout_s: float = Field(default=600.0, gt=0)
    """Seconds without a sign of life after which an endpoint is given up."""
    model_tools: tuple[str, ...] = ()
    """Only these tools are offered to a model, besides the control tools; empty: all."""
    context_tokens: int = Field(default=0, ge=0)
    """The model's context in tokens; 0: what its endpoint tells."""
    reply_tokens: int = Field(default=8192, ge=64)
    """Longest reply of a model, in tokens."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """What models cost, by name, in USD a million tokens."""
    torch_index: str = "https://download.pytorch.org/whl/cpu"
    """Index for installing torch where the default one would give a CUDA build."""
    kept_output_mib: int = Field(default=1024, ge=0)
    """MiB of long outputs that a run keeps whole beside its transcript; 0: none."""
    ssh_config: Path | None = None
    """Configuration file for ssh instead of the user's own, as ``ssh -F`` takes it."""
    inventory: Path | None = None
    """File of hosts; ``None``: ``./hosts.yaml``, else ``hosts.yaml`` in the settings folder."""
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


OPENAI_KEY, OPENAI_URL = "OPENAI_API_KEY", "OPENAI_BASE_URL"
"""Variables that other tools set too; a key alone never selects a brain."""


def model_key() -> str:
    """Return the key for the model's endpoint; empty where none is set."""
    return os.environ.get(OPENAI_KEY, "").strip()


def model_url(chosen: Settings) -> str:
    """Return the endpoint: the setting, else the variable, else OpenAI's own."""
    return chosen.base_url or os.environ.get(OPENAI_URL, "").strip() or DEFAULT_URL


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
