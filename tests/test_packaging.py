"""What is built is what is here: the wheel holds all that runs, and our import names are ours."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.lab.checkout import ROOT, project_files
from tests.lab.need import need

PACKAGES = ("agent", "tools", "prompts")
RUNS = {name for name in project_files() if name.startswith(tuple(f"{p}/" for p in PACKAGES))}

LIST_INSTALLED = """
import json
from importlib.metadata import distribution
from importlib.resources import files

found = distribution("bringup")
print(json.dumps({
    "files": [str(path) for path in found.files if path.locate().exists()],
    "commands": [entry.value for entry in found.entry_points if entry.name == "bringup"],
    "prompts": [str(path.name) for path in files("prompts").iterdir()],
}))
"""


def run(*argv: str | Path, cwd: Path) -> str:
    """Run a program that has to succeed; return what it printed."""
    done = subprocess.run([*map(str, argv)], cwd=cwd, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need(importlib.util.find_spec("hatchling") is not None, "hatchling is missing (make dev)")
    out = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", out, cwd=ROOT)
    (built,) = out.glob("bringup-*.tar.gz")
    return built


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the unpacked source archive as an installer would."""
    out = tmp_path_factory.mktemp("wheel")
    run("tar", "-xzf", sdist, cwd=out)
    (source,) = out.glob("bringup-*")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out, cwd=source)
    (built,) = out.glob("bringup-*.whl")
    return built


@pytest.mark.parametrize("name", PACKAGES)
def test_import_name_is_ours_alone(name: str) -> None:
    assert set(packages_distributions().get(name, [])) <= {"bringup"}
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert {Path(place) for place in spec.submodule_search_locations or ()} == {ROOT / name}


def test_packages_are_not_programs() -> None:
    """`python -m agent` would import a `tools` of the current folder; the command does not."""
    assert not [name for name in RUNS if name.endswith("__main__.py")]


def test_wheel_holds_all_that_runs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name for name in names if ".dist-info/" not in name} == RUNS
    assert {"agent/py.typed", "tools/py.typed"} <= names
    assert any(name.startswith("tools/scripts/") and name.endswith(".sh") for name in names)
    assert any(name.startswith("tools/probes/") and name.endswith(".py") for name in names)
    assert any(name.startswith("prompts/") for name in names)
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_source_archive_can_be_worked_on(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= RUNS
    for name in project_files():
        if name.startswith(("tests/", "scripts/", "requirements/", "docs/", "transcripts/")):
            assert name in names
    assert {"Makefile", "README.md", "LICENSE", "pyproject.toml", ".ci/run"} <= names


def test_wheel_is_marked_against_an_upload(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode()
    assert "Classifier: Private :: Do Not Upload" in text
    assert "License-Expression: Apache-2.0" in text


def test_installed_wheel_finds_its_files(wheel: Path, tmp_path: Path) -> None:
    need(importlib.util.find_spec("pip") is not None, "pip is missing (make dev)")
    python = tmp_path / "env" / "bin" / "python"
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env", cwd=tmp_path)
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    found = json.loads(run(python, "-I", "-c", LIST_INSTALLED, cwd=tmp_path))
    assert set(found["files"]) >= RUNS
    assert found["commands"] == ["agent.cli:main"]
    assert "playbooks" in found["prompts"]
    assert (python.parent / "bringup").is_file()
