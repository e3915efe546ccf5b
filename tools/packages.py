"""Python packages: what an environment is and holds."""

from __future__ import annotations

import json
import posixpath
import re
from typing import Any, ClassVar

from packaging.utils import canonicalize_name
from pydantic import Field

from tools.base import CallContext, Observation
from tools.command import Command, Ending, Result
from tools.errors import BadReply
from tools.pip import PackageName, PipTool, pip_command
from tools.pip_messages import conflict_lines
from tools.probe import NOT_FOUND, ProbeArgs, ProbeTool, last_marked


class PythonEnvironmentArgs(ProbeArgs):
    """Which environment, and whose pins are wanted."""

    pins_of: tuple[PackageName, ...] = Field(
        default=(),
        description="Packages of which the installed packages' own requirements are listed.",
    )


class Pin(Observation):
    """What one installed package asks of another."""

    name: str
    by: str
    by_version: str
    requirement: str


class AtStart(Observation):
    """What changes the module path, or runs, whenever a Python starts."""

    source: str
    """A .pth file, sitecustomize or usercustomize, pyvenv.cfg, or a variable of the environment
    (as the probe sees it: a server may be started with others)."""
    lines: list[str] = Field(default_factory=list)
    """Of a .pth file those that run code or name no folder of the environment; or the value. Of a
    module its first ones."""
    usual: bool | None = None
    """True for what setuptools, virtualenv, an editable install or Debian write, as they do."""


class EnvironmentState(Observation):
    """What an environment is; all but ``exists`` is meaningless where it does not exist."""

    clock_fields = ("free_mib",)

    exists: bool
    python_version: str = ""
    executable: str = ""
    prefix: str = ""
    is_venv: bool = False
    system: str = ""
    machine: str = ""
    writable: bool = False
    write_error: str = ""
    read_only: bool = False
    """Whether the file system of its packages is mounted read-only."""
    free_mib: int = 0
    externally_managed: bool = False
    pip_version: str | None = None
    """``None`` where pip cannot be started; ``pip_error`` says why."""
    pip_error: str | None = None
    ensurepip: bool = False
    """Whether Python can install pip from what it carries."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Installed version by normalized name."""
    pins: list[Pin] = Field(default_factory=list)
    startup: list[AtStart] | None = None
    """``None`` in recordings from before it was asked."""

    def headline(self) -> str:
        """One line for people."""
        if not self.exists:
            return "there is no such interpreter"
        writable = "writable" if self.writable else f"not writable ({self.write_error})"
        pip = f"pip {self.pip_version}" if self.pip_version else "no working pip"
        words = [f"Python {self.python_version}", pip, f"{len(self.versions)} packages", writable]
        odd = [posixpath.basename(it.source) for it in self.startup or () if not it.usual]
        words += [f"changed at its start by {' and '.join(odd)}"] if odd else []
        return ", ".join(words)[:200]


class PythonEnvironment(ProbeTool[PythonEnvironmentArgs, EnvironmentState]):
    """Look at a Python environment: packages, pins, what changes its start, if it can be written.

    A file is created in its package folder and removed again, to know whether that works.
    """

    script: ClassVar[str] = "environment.py"

    def parse(
        self, args: PythonEnvironmentArgs, call: CallContext, result: Result
    ) -> EnvironmentState:
        """Read the answer; that there is no such interpreter is an answer too."""
        missing = result.ending is Ending.EXITED and result.code == NOT_FOUND
        if missing and last_marked(call.marker, result.stdout) is None:
            return EnvironmentState(exists=False)
        return super().parse(args, call, result)


class InstalledPackages(Observation):
    """What pip lists."""

    versions: dict[str, str]
    """Version by normalized name."""
    editable: dict[str, str]
    """Source folder of those that are installed in place; their version may say nothing."""

    def headline(self) -> str:
        """One line for people."""
        return f"{len(self.versions)} packages, {len(self.editable)} of them editable"


class PipList(PipTool[ProbeArgs, InstalledPackages]):
    """List the installed packages with exact versions, as pip sees them."""

    def command(self, args: ProbeArgs, call: CallContext) -> Command:
        """Return ``pip list`` as JSON."""
        return pip_command(args.python, "list", "--format=json")

    def parse(self, args: ProbeArgs, call: CallContext, result: Result) -> InstalledPackages:
        """Read the one line that is a JSON list.

        Raises:
            ToolFailed: there is no interpreter or pip, or pip failed.
            BadReply: no line is a JSON list.
        """
        if not result.ok:
            raise self.refusal(args, result)
        rows = _json_list(result.stdout)
        if rows is None:
            raise BadReply(f"pip_list: pip's answer holds no JSON list: {result.tail[:300]}")
        place = "editable_project_location"
        return InstalledPackages(
            versions={canonicalize_name(row["name"]): row["version"] for row in rows},
            editable={canonicalize_name(row["name"]): row[place] for row in rows if row.get(place)},
        )


def _json_list(stdout: str) -> list[dict[str, Any]] | None:
    """Return the first line that is a list of packages; others are banners."""
    for line in stdout.splitlines():
        try:
            rows = json.loads(line)
        except ValueError:
            continue
        if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            return rows
    return None


class PipShowArgs(ProbeArgs):
    """Which packages."""

    names: tuple[PackageName, ...] = Field(min_length=1)


class PackageDetails(Observation):
    """What pip knows of one package."""

    name: str
    version: str
    location: str = ""
    editable_location: str = ""
    requires: list[str] = Field(default_factory=list)
    """Normalized names, as in ``required_by``."""
    required_by: list[str] = Field(default_factory=list)


class ShownPackages(Observation):
    """The asked packages that are installed, and those that are not."""

    packages: list[PackageDetails]
    missing: list[str]

    def headline(self) -> str:
        """One line for people."""
        found = [f"{item.name} {item.version}" for item in self.packages]
        return ", ".join([*found, *(f"{name} is not installed" for name in self.missing)])


class PipShow(PipTool[PipShowArgs, ShownPackages]):
    """Show version, place and dependencies of installed packages."""

    def command(self, args: PipShowArgs, call: CallContext) -> Command:
        """Return ``pip show NAMES``."""
        return pip_command(args.python, "show", "--", *args.names)

    def parse(self, args: PipShowArgs, call: CallContext, result: Result) -> ShownPackages:
        """Read pip's blocks of ``Key: value`` lines.

        Raises:
            ToolFailed: there is no interpreter or pip, or pip failed.
        """
        if not result.ok and "not found:" not in result.stderr:
            raise self.refusal(args, result)
        blocks = re.split(r"^---$", result.stdout, flags=re.MULTILINE)
        packages = [_details(fields) for fields in map(_fields, blocks) if "Version" in fields]
        found = {canonicalize_name(item.name) for item in packages}
        missing = [name for name in args.names if canonicalize_name(name) not in found]
        return ShownPackages(packages=packages, missing=missing)


def _fields(block: str) -> dict[str, str]:
    return dict(re.findall(r"^([A-Z][A-Za-z-]*(?: [a-z]+)*): *(.*)$", block, flags=re.MULTILINE))


def _details(fields: dict[str, str]) -> PackageDetails:
    return PackageDetails(
        name=fields.get("Name", ""),
        version=fields["Version"],
        location=fields.get("Location", ""),
        editable_location=fields.get("Editable project location", ""),
        requires=_names(fields.get("Requires", "")),
        required_by=_names(fields.get("Required-by", "")),
    )


def _names(text: str) -> list[str]:
    return [canonicalize_name(name) for name in re.findall(r"[^,\s]+", text)]


class PipConflicts(Observation):
    """What does not fit in an environment."""

    conflicts: list[str]
    fits: bool
    """Whether there are no conflicts: the installed packages fit each other."""

    def headline(self) -> str:
        """One line for people."""
        return "; ".join(self.conflicts)[:200] or "no conflicts: all packages fit each other"


class PipCheck(PipTool[ProbeArgs, PipConflicts]):
    """Check whether the installed packages fit each other."""

    def command(self, args: ProbeArgs, call: CallContext) -> Command:
        """Return ``pip check``."""
        return pip_command(args.python, "check")

    def parse(self, args: ProbeArgs, call: CallContext, result: Result) -> PipConflicts:
        """Read the conflicts; exit code 1 with conflicts is an answer.

        Raises:
            ToolFailed: there is no interpreter or pip, or pip failed.
        """
        conflicts = conflict_lines(result.stdout)
        if not result.ok and not conflicts:
            raise self.refusal(args, result)
        return PipConflicts(conflicts=conflicts, fits=not conflicts)
