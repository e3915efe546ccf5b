"""Can an environment read a model's configuration, and by whose classes?"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from tools.base import Observation, Subject
from tools.probe import ProbeArgs, ProbeTool, environment


class ConfigProbeArgs(ProbeArgs):
    """Which model, and where the engine registers its own config classes."""

    model: str = Field(min_length=1, description="A config.json, or its folder.")
    registry: tuple[str, ...] = Field(
        default=(), description="Modules that register the engine's config classes."
    )


class ConfigVerdict(Observation):
    """What an environment makes of a config."""

    config_found: bool
    json_error: str = ""
    """Why the file itself is no config, with line and column; the environment is not to blame."""
    model_type: str = ""
    architectures: list[str] = Field(default_factory=list)
    written_by: str = ""
    """The transformers version that wrote the file."""
    transformers: str | None = None
    """The installed version."""
    parses: bool = False
    parsed_by: str = ""
    """``registry`` where the engine's modules took part, ``bare`` where transformers was alone."""
    config_class: str = ""
    error_type: str = ""
    error: str = ""
    """First paragraph of what the config's class, or its absence, made it raise."""
    registry_errors: dict[str, str] = Field(default_factory=dict)
    """Why a registry module could not be imported, by module."""

    def headline(self) -> str:
        """One line for people."""
        if not self.config_found:
            return "there is no config.json"
        if self.json_error:
            return f"config.json is broken: {self.json_error}"[:200]
        with_version = f"{self.model_type or 'no model_type'}, transformers {self.transformers}"
        if self.parses:
            return f"{with_version}: {self.config_class} ({self.parsed_by})"
        return f"{with_version}: {self.error_type}: {self.error}"[:200]


class ConfigProbe(ProbeTool[ConfigProbeArgs, ConfigVerdict]):
    """Let an environment read a model's config.json, without weights, network or remote code.

    The engine's registry comes first: some engines read configs that their transformers cannot.
    """

    script: ClassVar[str] = "config.py"
    timeout_s: ClassVar[float] = 300.0

    def subjects(self, args: ConfigProbeArgs) -> tuple[Subject, ...]:
        """Return the environment and the model."""
        return (environment(args.python), Subject(kind="model", key=args.model))
