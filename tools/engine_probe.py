"""Which serving engine does a Python environment hold, and does it know an architecture?"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from tools.base import Args, Observation
from tools.imports import ModuleName
from tools.pip import PackageName
from tools.probe import ProbeArgs, ProbeTool

Folder = Annotated[str, StringConstraints(pattern=r"^([\w-]+(/[\w-]+)*)?$")]
"""A folder inside a package, such as ``srt/models``; empty where there is none."""
Name = Annotated[str, StringConstraints(pattern=r"^[\w.-]*$")]
"""An architecture or a model type; empty where it is not asked for."""


class EngineLayout(Args):
    """How an engine is recognised, where it keeps what, and how it is asked."""

    module: ModuleName = Field(description="Its top package, such as vllm; never imported.")
    distributions: tuple[PackageName, ...] = Field(
        default=(), description="Names it may be installed under; left out: the module's name."
    )
    models: Folder = Field(default="", description="Folder of its model files in the package.")
    configs: Folder = Field(default="", description="Folder of its own config classes.")
    registry: tuple[ModuleName, ...] = Field(
        default=(),
        description="Modules that register its config classes; image_probe imports them.",
    )
    modules: tuple[ModuleName, ...] = Field(
        default=(), description="Modules whose import image_probe tries."
    )
    help_argv: tuple[str, ...] = Field(
        default=(),
        description="Program whose --help image_probe reads; {python} is the interpreter. "
        "A last word that begins with --help is taken as it is.",
    )


class EngineProbeArgs(ProbeArgs):
    """Which engines to look for, and what they are asked."""

    engines: tuple[EngineLayout, ...] = Field(min_length=1)
    """Looked for in this order; the first that is there is described."""
    architecture: Name = Field(default="", description="A class name of a config's architectures.")
    model_type: Name = Field(default="", description="A config's model_type.")


class EngineRequirement(Observation):
    """What the engine's metadata asks of another package, where it applies to this machine."""

    name: str
    """Normalized."""
    requirement: str
    """Without its marker, such as ``transformers==5.3.0``."""


class EngineState(Observation):
    """What an environment holds of an engine; read from files, nothing of it was imported."""

    found: bool
    module: str = ""
    distribution: str = ""
    """The name it is installed under; empty where it has no metadata."""
    version: str = ""
    """As its metadata says."""
    version_known: bool = False
    """False without metadata, for 0.0.0, ``+unknown``, and a development install in place."""
    file_version: str = ""
    """What its own version file says, read as text."""
    location: str = ""
    """Folder of its package."""
    editable: str = ""
    """Source folder, where it is installed in place."""
    requirements: list[EngineRequirement] = Field(default_factory=list)
    architecture: str = ""
    """The asked one."""
    model_type: str = ""
    knows_architecture: bool | None = None
    """Whether its registry names it; ``None``: not asked, or no registry could be read.

    That some engines fall back on transformers' own code for others is not counted.
    """
    architectures: int = 0
    """How many its registry names."""
    near: list[str] = Field(default_factory=list)
    """The nearest that it names, where the asked one is missing."""
    model_files: list[str] = Field(default_factory=list)
    """Those of its model files whose name fits the model type."""
    own_config: bool | None = None
    """Whether it ships a config class of that model type; ``None``: not asked, or not tellable."""
    server: list[str] = Field(default_factory=list)
    """Command line of process 1 where that runs this engine, secrets cut out."""
    torch: str = ""
    torch_cuda: str = ""
    """CUDA version that torch was built for; ``hip VERSION`` for AMD, empty for CPU."""
    machine: str = ""

    def headline(self) -> str:
        """One line for people."""
        if not self.found:
            return "none of the engines is installed"
        words = [f"{self.distribution or self.module} {self._version_text()}"]
        if self.knows_architecture is not None:
            verb = "knows" if self.knows_architecture else "does not know"
            words.append(f"{verb} {self.architecture}")
        if self.own_config:
            words.append(f"own config class for {self.model_type}")
        if self.torch:
            words.append(f"torch {self.torch}")
        return ", ".join(words)[:200]

    def _version_text(self) -> str:
        if self.version_known:
            return self.version
        says = f"its metadata says {self.version}" if self.version else "it has no metadata"
        place = f", installed in place from {self.editable}" if self.editable else ""
        return f"{self.file_version or 'of unknown version'} ({says}{place})"


class EngineProbe(ProbeTool[EngineProbeArgs, EngineState]):
    """Say which serving engine is installed, its pins, and whether it knows an architecture.

    All is read from files and metadata: an engine that cannot be imported is described too.
    """

    script: ClassVar[str] = "engine.py"
