"""What the playbooks know: engines, releases that first know a model type, and failure signatures.

Data lives in ``prompts/playbooks/*.yaml`` and is checked on load; the reasoning is code
(``kinds/``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, cached_property
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict, Field, field_validator


class Entry(BaseModel):
    """What all entries share."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Engine(Entry):
    """How one serving engine is recognised, checked and started."""

    requirement: str = ""
    """What pip has to be asked for so that the engine can serve."""
    package: str = ""
    """The distribution whose version decides which models it knows."""
    modules: tuple[str, ...] = ()
    """Modules that have to be importable before it is started."""
    registry: tuple[str, ...] = ()
    """Modules that register the engine's own config classes."""
    serve: tuple[str, ...] = ()
    """Start of the server's argument vector; ``{bin}`` is the environment's folder of programs."""
    model_by: tuple[str, ...] = ()
    """Ways to name the model, best first: a positional's name or an option."""
    options: dict[str, str] = Field(default_factory=dict)
    """Options, given where the installed release knows them."""
    env: dict[str, str] = Field(default_factory=dict)
    health: str = "/health"
    module: str = ""
    """Its top package, looked for in images; empty: images are not asked for an engine."""
    distributions: tuple[str, ...] = ()
    """Names that it may be installed under, where they are not the module's."""
    models: str = ""
    """Folder of its model files in the package."""
    configs: str = ""
    """Folder of its own config classes in the package."""
    ipc: str = ""
    """``host`` where its processes share memory beyond what a container has by itself."""

    def layouts(self, filled: Callable[[str, dict[str, str]], str]) -> list[dict[str, object]]:
        """Return how an image is asked for this engine; ``filled`` fills the serve words."""
        if not self.module:
            return []
        prefix = [filled(word, {}) for word in self.serve]
        return [
            {
                "module": self.module,
                "distributions": list(self.distributions),
                "models": self.models,
                "configs": self.configs,
                "registry": list(self.registry),
                "modules": list(self.modules),
                "help_argv": prefix,
            }
        ]


class Release(Entry):
    """The first release of a package that knows a family of model types."""

    package: str
    model_types: str
    """A regular expression that the whole model type has to match."""
    since: str
    source: str


class Distribution(Entry):
    """Which distribution provides a module."""

    module: str
    distribution: str


class Signature(Entry):
    """A known error pattern with its usual cause."""

    id: str
    kind: str
    pattern: str
    """A regular expression; its named groups fill ``cause``, ``advice`` and ``params``."""
    checks: tuple[str, ...] = ()
    """Checks or tools whose failure it explains; empty for any."""
    cause: str
    advice: str = ""
    weight: float = Field(default=0.8, ge=0.0, le=1.0)
    params: dict[str, str] = Field(default_factory=dict)
    sources: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    """Groups that hold a measured value: the same failure stays the same when it changes."""

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str) -> str:
        re.compile(value)
        return value

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.pattern, re.MULTILINE)


class Knowledge(Entry):
    """All playbooks together."""

    engines: dict[str, Engine] = Field(default_factory=dict)
    releases: tuple[Release, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    accelerator_packages: tuple[str, ...] = ()
    """Prefixes of distributions that only a build for accelerators needs."""
    signatures: tuple[Signature, ...] = ()

    def first_release(self, package: str, model_type: str) -> Release | None:
        """Return the first release of ``package`` that knows ``model_type``, if a playbook says."""
        for release in self.releases:
            if release.package == package and re.fullmatch(release.model_types, model_type):
                return release
        return None

    def distribution_of(self, module: str) -> Distribution | None:
        """Return what provides a module, by its top-level name; only what a playbook names."""
        top = module.partition(".")[0]
        for entry in self.distributions:
            if entry.module == top:
                return entry
        return None


@cache
def load() -> Knowledge:
    """Read every playbook that is shipped; later files add to earlier ones."""
    merged: dict[str, object] = {}
    folder = files("prompts") / "playbooks"
    for item in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if item.name.endswith(".yaml"):
            for key, value in (yaml.safe_load(item.read_text(encoding="utf-8")) or {}).items():
                _merge(merged, key, value)
    return Knowledge.model_validate(merged)


def _merge(merged: dict[str, object], key: str, value: object) -> None:
    have = merged.get(key)
    if isinstance(have, list) and isinstance(value, list):
        merged[key] = have + value
    elif isinstance(have, dict) and isinstance(value, dict):
        merged[key] = {**have, **value}
    else:
        merged[key] = value
