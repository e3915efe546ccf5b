"""Can modules be imported in an environment?"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field, StringConstraints

from tools.base import CallContext, Observation
from tools.command import Result
from tools.probe import ProbeArgs, ProbeTool

ModuleName = Annotated[str, StringConstraints(pattern=r"^[^\W\d]\w*(\.[^\W\d]\w*)*$")]


class ImportProbeArgs(ProbeArgs):
    """Which modules."""

    modules: tuple[ModuleName, ...] = Field(
        min_length=1, description="Imported one after the other, in one process."
    )


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


class ImportOutcomes(Observation):
    """What importing the modules did."""

    modules: dict[str, ImportOutcome]
    missing: list[str]
    """Modules that were not found, as Python names them, each once."""
    all_ok: bool

    def headline(self) -> str:
        """One line for people."""
        if self.all_ok:
            return f"all {len(self.modules)} imports work"
        failed = (f"{name}: {it.error}" for name, it in self.modules.items() if not it.ok)
        return "; ".join(failed)[:200]


class _Answer(BaseModel):
    """What the script prints before each import and at the end."""

    modules: dict[str, ImportOutcome]
    importing: str | None


class ImportProbe(ProbeTool[ImportProbeArgs, ImportOutcomes]):
    """Import modules in an environment and say which work, their versions, and why others fail."""

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
        )


def _unfinished(name: str, culprit: str | None, how: str) -> ImportOutcome:
    """Return the outcome of a module whose import never came back, or was never reached."""
    if name == culprit:
        error = f"the interpreter did not survive the import: {how}"
        return ImportOutcome(ok=False, error_type="Ended", error=error)
    return ImportOutcome(ok=False, error_type="NotReached", error=f"not reached after {culprit}")
