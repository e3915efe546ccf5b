"""The lock fits pyproject.toml, names each file by its hash, and says nothing about a machine."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.lab.checkout import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GROUPS = PROJECT["dependency-groups"]
INSTALL = GROUPS["install"]
DEV = [*INSTALL, *(entry for entry in GROUPS["dev"] if isinstance(entry, str))]
NEEDED = {
    "runtime": [*PROJECT["project"]["dependencies"], *INSTALL],
    "dev": [*PROJECT["project"]["dependencies"], *DEV],
}


def locked(name: str) -> list[tuple[Requirement, int]]:
    """Each package of a lock, and how many hashes it has."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"\n(?=\S)", text) if not entry.startswith("#")]
    return [
        (Requirement(entry.split(" \\")[0]), entry.count("--hash=sha256:")) for entry in entries
    ]


@pytest.mark.parametrize("name", ["runtime", "dev"])
def test_lock_fits_what_is_asked_for(name: str) -> None:
    found = locked(name)
    for text in NEEDED[name]:
        wanted = Requirement(text)
        pins = [
            str(pin.specifier).removeprefix("==")
            for pin, _ in found
            if canonicalize_name(pin.name) == canonicalize_name(wanted.name)
        ]
        assert pins, f"{wanted} is not in requirements/{name}.txt: run `make lock`"
        assert all(wanted.specifier.contains(pin) for pin in pins), f"{wanted}: run `make lock`"


@pytest.mark.parametrize("name", ["runtime", "dev"])
def test_every_package_is_pinned_and_hashed(name: str) -> None:
    found = locked(name)
    assert len(found) > 40
    for pin, hashes in found:
        assert str(pin.specifier).startswith("=="), pin
        assert hashes, pin


def test_what_one_runs_with_is_what_one_tests_with() -> None:
    runtime = {str(pin) for pin, _ in locked("runtime")}
    assert runtime <= {str(pin) for pin, _ in locked("dev")}


@pytest.mark.parametrize("name", ["runtime", "dev"])
def test_lock_is_free_of_addresses_and_of_torch(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    assert "make lock" in text
    assert not re.search(r"://|--index|--find-links|^-e|^/", text, re.MULTILINE)
    assert not {pin.name for pin, _ in locked(name)} & {"torch", "triton", "tensorflow", "jax"}
