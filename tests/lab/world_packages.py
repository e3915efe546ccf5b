"""The Python environment of a simulated host: what is installed, what pip can get, what imports."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from agent import knowledge
from tools.command import Command, Ending, Result

VENV = "/srv/env"
UNKNOWN_TYPE = (
    "The checkpoint you are trying to load has model type `{model_type}` but Transformers does not "
    "recognize this architecture. This could be because of an issue with the checkpoint."
)
Answer = tuple[dict[str, Any], str]
"""A probe's answer, and what it writes to standard error."""


@dataclass(frozen=True)
class Need:
    """Something that has to be installed, and what is said where it is not."""

    package: str
    since: str = "0"
    error: str = ""
    """``TYPE: text``; empty for a module that is not found."""

    def missing(self, versions: dict[str, str]) -> str:
        """Return what is said, or nothing where it is met."""
        have = versions.get(self.package)
        if have is not None and Version(have) >= Version(self.since):
            return ""
        return self.error or f"ModuleNotFoundError: No module named '{self.package}'"


def old_transformers(model_type: str = "qwen3_5_text", since: str = "5.2.0") -> Need:
    """Return the need for a transformers that knows a model type."""
    return Need("transformers", since, f"ValueError: {UNKNOWN_TYPE.format(model_type=model_type)}")


def first_missing(needs: tuple[Need, ...], versions: dict[str, str]) -> str:
    """Return what the first need says that is not met, or nothing."""
    return next((said for need in needs if (said := need.missing(versions))), "")


def exited(stdout: str) -> Result:
    """Return the result of a command that went well."""
    return Result(Ending.EXITED, 0, stdout=stdout)


@dataclass
class Packages:
    """One environment; its fields are the world's."""

    venv: str = VENV
    python: str = "3.11.7"
    """Version of the environment's Python; empty where there is no environment."""
    pip: bool = True
    pip_error: str = "ModuleNotFoundError: No module named 'pip'"
    """What pip says where it does not work."""
    write_error: str = ""
    versions: dict[str, str] = field(
        default_factory=lambda: {
            **dict.fromkeys(knowledge.load().engines["transformers"].modules, "1.0.0"),
            "torch": "2.13.0",
            "transformers": "4.57.6",
        }
    )
    index: dict[str, list[str]] = field(
        default_factory=lambda: {"transformers": ["4.57.6", "5.0.0", "5.24.0"], "einops": ["0.8.1"]}
    )
    """The releases that pip can get."""
    modules: dict[str, tuple[Need, ...]] = field(default_factory=dict)
    """What importing a module needs beyond the distribution of its own name."""
    install_error: str = ""
    """What every ``pip install`` says instead of installing."""
    now: float = 1000.0
    done: list[str] = field(default_factory=list)
    """What was changed, in order: ``install NAME==VERSION``, ``start JOB``, ``stop JOB``."""

    def _environment(self, asked: dict[str, Any]) -> Answer:
        facts = {
            "exists": True,
            "python_version": self.python,
            "executable": f"{self.venv}/bin/python",
            "prefix": self.venv,
            "is_venv": True,
            "system": "Linux",
            "machine": "x86_64",
            "writable": not self.write_error,
            "write_error": self.write_error,
            "free_mib": 50_000,
            "pip_version": "26.0" if self.pip else None,
            "pip_error": None if self.pip else self.pip_error,
            "ensurepip": True,
            "versions": self.versions,
            "pins": [],
        }
        return facts, ""

    def _imports(self, asked: dict[str, Any]) -> Answer:
        found = {name: self._import(name) for name in asked["modules"]}
        return {"modules": found, "importing": None}, ""

    def _import(self, module: str) -> dict[str, Any]:
        wrong = first_missing((Need(module), *self.modules.get(module, ())), self.versions)
        if not wrong:
            return {"ok": True, "version": self.versions.get(module)}
        error_type, _, error = wrong.partition(": ")
        absent = re.search(r"No module named '(\w+)'", error)
        missing = absent.group(1) if absent else None
        return {"ok": False, "error_type": error_type, "error": error, "missing": missing}

    def _resolve(self, asked: dict[str, Any]) -> Answer:
        self.now += 3.0
        moves = []
        for text in asked["requirements"]:
            wanted = Requirement(text)
            releases = self.index.get(wanted.name, [])
            fits = [Version(item) for item in releases if wanted.specifier.contains(item)]
            if not fits:
                stderr = f"ERROR: No matching distribution found for {text}\n"
                return {"ok": False, "error": "pip ended with exit code 1"}, stderr
            moves.append(
                {
                    "name": wanted.name,
                    "from_version": self.versions.get(wanted.name),
                    "to_version": str(max(fits)),
                    "file": f"{wanted.name}-{max(fits)}-py3-none-any.whl",
                }
            )
        return {"ok": True, "moves": moves}, ""

    def _install(self, command: Command) -> Result:
        self.now += 20.0
        if not self.pip:
            return Result(Ending.EXITED, 1, stderr=f"{command.argv[0]}: No module named pip\n")
        if self.install_error:
            return Result(Ending.EXITED, 1, stderr=f"ERROR: {self.install_error}\n")
        pins = command.argv[command.argv.index("--") + 1 :]
        for pin in pins:
            name, _, version = pin.partition("==")
            self.versions[name] = version
            self.done.append(f"install {pin}")
        installed = " ".join(pin.replace("==", "-") for pin in pins)
        return exited(f"Collecting {pins[0]}\nSuccessfully installed {installed}\n")

    def _ensurepip(self, command: Command) -> Result:
        self.pip = True
        self.done.append("install pip")
        return exited("Looking in links: /tmp/x\nSuccessfully installed pip-24.0\n")
