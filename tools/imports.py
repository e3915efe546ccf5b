"""Can modules be imported in an environment?"""

from __future__ import annotations

import posixpath
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field, StringConstraints

from tools.base import CallContext, Observation
from tools.command import Result
from tools.probe import ProbeArgs, ProbeTool

ModuleName = Annotated[str, StringConstraints(pattern=r"^[^\W\d]\w*(\.[^\W\d]\w*)*$")]


class ImportProbeArgs(ProbeArgs):
    """Which modules."""

    modules: tuple[ModuleName, ...] = Field(min_length=1)
    """Imported one after the other, in one process."""


class ImportOutcome(Observation):
    """What importing one module did."""

    ok: bool
    version: str | None = None
    error_type: str = ""
    """The exception's name; ``Ended`` where the import ended or hung the interpreter,
    ``NotReached`` for what would have come after it."""
    error: str = ""
    """Last line of the exception's text."""
    missing: str | None = None
    """The module that was not found, which may be another one than the one imported."""
    file: str | None = None
    """Where it was imported from, or where Python would take what failed from."""
    elsewhere: bool | None = None
    """True where that is outside the environment and its standard library."""
    installed: str | None = None
    """The version that the installed package's metadata says, where the module says another."""
    raised_at: str | None = None
    """File and line that raised the exception."""

    def oddity(self, name: str) -> str:
        """Say that it is not the installed package that was imported; empty where it is."""
        if self.file is None or not (self.elsewhere or self.installed):
            return ""
        folder, last = posixpath.split(self.file)
        folder = posixpath.dirname(folder) if last.startswith("__init__.") else folder
        what = f"{name} {self.version}" if self.version else name
        comes = f"{what} imported from {folder}" if self.ok else f"{name} would come from {folder}"
        if self.installed:
            return f"{comes}, but {self.installed} is installed"
        return f"{comes}, outside the environment"


class ImportOutcomes(Observation):
    """What importing the modules did."""

    modules: dict[str, ImportOutcome]
    missing: list[str]
    """Modules that were not found, as Python names them, each once."""
    all_ok: bool
    odd: list[str] | None = None
    """Modules that are not the installed packages, or come from outside the environment."""

    def headline(self) -> str:
        """One line for people."""
        failed = [f"{name}: {it.error}" for name, it in self.modules.items() if not it.ok]
        works = [f"all {len(self.modules)} imports work"] if self.all_ok else []
        return "; ".join([*works, *failed, *(self.odd or [])])[:200]


class _Answer(BaseModel):
    """What the script prints before each import and at the end."""

    modules: dict[str, ImportOutcome]
    importing: str | None


class ImportProbe(ProbeTool[ImportProbeArgs, ImportOutcomes]):
    """Import modules; say which work, from which file, in which version, and why others fail."""

    script: ClassVar[str] = "imports.py"
    timeout_s: ClassVar[float] = 180.0

    def parse(self, args: ImportProbeArgs, call: CallContext, result: Result) -> ImportOutcomes:
        """Read the last answer; a module that ended the interpreter is a finding too."""
        answer = self.answer(args, call, result, _Answer)
        outcomes = dict(answer.modules)
        for name in args.modules:
            if name not in outcomes:
                outcomes[name] = _unfinished(name, answer.importing, result.how)
        missing = [it.missing for it in outcomes.values() if it.missing]
        return ImportOutcomes(
            modules=outcomes,
            missing=list(dict.fromkeys(missing)),
            all_ok=all(it.ok for it in outcomes.values()),
            odd=list(filter(None, (it.oddity(name) for name, it in outcomes.items()))) or None,
        )


def _unfinished(name: str, culprit: str | None, how: str) -> ImportOutcome:
    """Return the outcome of a module whose import never came back, or was never reached."""
    if name == culprit:
        error = f"the interpreter did not survive the import: {how}"
        return ImportOutcome(ok=False, error_type="Ended", error=error)
    return ImportOutcome(ok=False, error_type="NotReached", error=f"not reached after {culprit}")
