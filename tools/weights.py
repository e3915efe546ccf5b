"""Are a model's weights at hand, complete and unbroken?"""

from __future__ import annotations

import posixpath
from typing import ClassVar

from pydantic import Field

from tools.base import Observation, Subject
from tools.files import TargetPath, Word
from tools.probe import ProbeArgs, ProbeTool


class WeightsStateArgs(ProbeArgs):
    """Which folder."""

    python: Word = Field(default="python3", description="A Python, 3.8 or newer, on the target.")
    folder: TargetPath
    """Of the model."""


class BadShard(Observation):
    """A weight file that is there and is not whole."""

    name: str
    bytes: int
    expected: int | None
    """As its own header says."""
    why: str


class LocalWeights(Observation):
    """What a folder holds of a model."""

    clock_fields = ("free_mib",)

    folder_found: bool
    config: bool = False
    index: bool = False
    """Whether there is a ``model.safetensors.index.json`` that can be read."""
    shards: int = 0
    """Weight files that there should be; 0 where nothing says which."""
    present: int = 0
    """Those that are there and whole."""
    missing: list[str] = Field(default_factory=list)
    """The first 20 of those that are not there."""
    short: list[BadShard] = Field(default_factory=list)
    """The first 20 of those that are not whole."""
    bytes_present: int = 0
    bytes_expected: int | None = None
    """Size of all tensors, as the index says."""
    tokenizer: bool = False
    incomplete: list[str] = Field(default_factory=list)
    """Unfinished downloads."""
    free_mib: int = 0
    complete: bool = False
    """Whether config, tokenizer and all weights are there and whole."""
    problem: str = ""
    """Why it is not complete."""

    def headline(self) -> str:
        """One line for people."""
        if self.complete:
            return f"complete: {self.shards} weight files, {size_text(self.bytes_present)}"
        return f"not complete: {self.problem}"[:200]


def size_text(size_bytes: int) -> str:
    """Return a size for people: ``52.0 GB``, ``0.4 MB``."""
    if size_bytes >= 10**9:
        return f"{size_bytes / 1e9:.1f} GB"
    return f"{size_bytes / 1e6:.1f} MB"


def model_subject(path: str) -> Subject:
    """Return the model that a folder, or the config.json in it, means."""
    folder, last = posixpath.split(posixpath.normpath(path))
    return Subject(kind="model", key=folder if last == "config.json" else posixpath.normpath(path))


def weights_subject(folder: str) -> Subject:
    """Return the subject of a folder's weights."""
    return Subject(kind="weights", key=posixpath.normpath(folder))


class WeightsState(ProbeTool[WeightsStateArgs, LocalWeights]):
    """Say whether a model's folder holds all its weights, whole, and how much room there is."""

    script: ClassVar[str] = "weights.py"

    def subjects(self, args: WeightsStateArgs) -> tuple[Subject, ...]:
        """Return the model and its weights."""
        return (model_subject(args.folder), weights_subject(args.folder))
