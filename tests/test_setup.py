"""The set-up of a fresh checkout, for real: a copy of the tree, its own home, the package index.

Most tests use a short lock (what the editable install needs), so that an install takes seconds;
one takes the whole lock, with a Python as bare as Debian's.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.lab import setup_tree
from tests.lab.checkout import ROOT
from tests.lab.need import need
from tests.lab.setup_tree import BASE, copy_project, set_up, set_up_until

EXAMINE = """\
import json, sys
sys.path.insert(0, "scripts")
import environment
print(json.dumps(environment.examine("--dev" in sys.argv, None)))
"""


def need_installs() -> None:
    """Go on where a real install can be made."""
    need(importlib.util.find_spec("ensurepip") is not None, "ensurepip is missing (python3-venv)")
    need(setup_tree.index_answers(), "no package index can be reached")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copy_project(tmp_path / "project", whole_lock=False)


@pytest.fixture(scope="module")
def two_at_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, list[subprocess.CompletedProcess[str]]]:
    """A project that two set-ups were started in at the same time."""
    need_installs()
    folder = copy_project(tmp_path_factory.mktemp("two") / "project", whole_lock=False)
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(set_up, folder) for _ in range(2)]
        return folder, [run.result() for run in runs]


def examined(project: Path, *words: str) -> list[str]:
    """What the set-up would do here, and why."""
    argv = [BASE, "-c", EXAMINE, *words]
    done = subprocess.run(argv, cwd=project, capture_output=True, text=True, check=True)
    answer: list[str] = json.loads(done.stdout)
    return answer


@contextlib.contextmanager
def without(path: Path) -> Iterator[None]:
    """Take a file or folder away for a while."""
    aside = path.with_name(f"{path.name}-aside")
    path.rename(aside)
    yield
    if path.is_symlink() or path.exists():
        path.unlink()
    aside.rename(path)


# --- what goes right ------------------------------------------------------------------------


@pytest.mark.lab
def test_a_fresh_checkout_where_python_is_as_bare_as_debians(tmp_path: Path) -> None:
    need(sys.platform == "linux", "a Python without ensurepip is built on Linux only")
    need_installs()
    project = copy_project(tmp_path / "project", whole_lock=True)
    bare = setup_tree.python_without_ensurepip(tmp_path / "bare")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3.10").symlink_to(BASE)  # another Python, which has a pip

    first = set_up(project, python=bare, path=programs)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "this Python has no ensurepip" in first.stdout
    assert first.stdout.splitlines()[-1].endswith("ready: .venv/bin/bringup")
    assert (project / ".venv" / "bin" / "bringup").is_file()

    began = time.monotonic()
    second = set_up(project, python=bare, path=programs)
    assert (second.stdout, second.returncode) == (".venv is up to date\n", 0)
    assert time.monotonic() - began < 1, "a second set-up is instant"

    (project / "agent" / "made_afterwards.py").write_text("WORDS = 'seen'\n", encoding="utf-8")
    code = (
        "import agent.made_afterwards as new, importlib.metadata as m, importlib.util as u\n"
        "print(new.WORDS, m.version('bringup'), u.find_spec('torch'), m.version('langgraph'))"
    )
    python = project / ".venv" / "bin" / "python"
    words = subprocess.check_output([python, "-c", code], cwd="/", text=True).split()
    assert words[:3] == ["seen", "0.1.0", "None"]
    assert words[3].startswith("1.")


@pytest.mark.lab
def test_two_set_ups_at_once_follow_each_other(
    two_at_once: tuple[Path, list[subprocess.CompletedProcess[str]]],
) -> None:
    _, runs = two_at_once
    assert [run.returncode for run in runs] == [0, 0], [run.stderr for run in runs]
    both = "".join(run.stdout for run in runs)
    assert both.count("another set-up of this folder is running") == 1
    assert both.count("installing the locked packages") == 1


@pytest.mark.lab
def test_set_up_knows_what_it_finds(
    two_at_once: tuple[Path, list[subprocess.CompletedProcess[str]]],
) -> None:
    project, _ = two_at_once
    env = project / ".venv"
    (site,) = env.glob("lib/*/site-packages")
    assert examined(project) == ["ready", ""]
    assert examined(project, "--dev") == ["update", "what tests and checks need is added"]
    with without(env / "bringup-setup.json"):
        assert examined(project) == ["update", "it was made by hand"]
    with without(env / "bringup-setup.json"):
        (env / "bringup-setup.json").write_text('{"lock": "f', encoding="utf-8")
        assert examined(project) == ["build", "the last set-up did not finish"]
    with without(env / "bin" / "bringup"):
        assert examined(project) == ["build", "something went missing in it"]
    with without(next(site.glob("pluggy-*.dist-info"))):
        assert examined(project) == ["build", "something went missing in it"]
    with without(env / "bin" / "python"):
        (env / "bin" / "python").symlink_to("/nonexistent/python3")
        assert examined(project) == ["build", "its Python does not run"]
    with without(env):
        assert examined(project) == ["build", "there is none yet"]
    with without(project / "requirements" / "runtime.txt"):
        (project / "requirements" / "runtime.txt").write_text("six==1.16.0\n", encoding="utf-8")
        assert examined(project) == ["update", "pyproject.toml or the lock changed"]
    moved = project.rename(project.with_name("moved"))
    assert examined(moved) == ["build", "the project was moved"]
    moved.rename(project)
    assert examined(project) == ["ready", ""]


@pytest.mark.lab
def test_an_interrupted_set_up_is_repaired(project: Path) -> None:
    need_installs()
    code, output = set_up_until(project, "making .venv", signal.SIGTERM)
    assert code == 130
    assert output.endswith("set-up: interrupted; the next run makes .venv anew\n")
    assert set_up_until(project, "making .venv", signal.SIGKILL)[0] == -signal.SIGKILL
    code, output = set_up_until(project, "installing the locked packages", signal.SIGINT)
    assert code == 130
    assert "Traceback" not in output
    left = project / ".venv" / "left-by-the-first"
    left.touch()
    repaired = set_up(project)
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    assert "the last set-up did not finish" in repaired.stdout
    assert not left.exists()
    assert examined(project) == ["ready", ""]


# --- what goes wrong, and what is said ------------------------------------------------------


def failure(done: subprocess.CompletedProcess[str]) -> str:
    """What a set-up that failed in an orderly way said."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_no_python_is_new_enough(project: Path, tmp_path: Path) -> None:
    old = setup_tree.old_python(tmp_path / "bin")
    said = failure(set_up(project, python=old, path=old.parent))
    assert said.count("\n") == 1
    assert f"needs Python 3.11 or newer with its standard library ({old} is 3.9.18)" in said
    assert "apt-get install" in said
    assert "brew install" in said
    assert not (project / ".venv").exists()


def test_an_old_python_finds_a_newer_one(project: Path, tmp_path: Path) -> None:
    old = setup_tree.old_python(tmp_path / "bin")
    (old.parent / "python3.12").symlink_to(BASE)
    done = set_up(project, python=old, path=old.parent, PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert "making .venv with Python 3." in done.stdout
    assert "3.9.18" not in done.stdout


def test_the_python_asked_for_is_taken_or_none(project: Path, tmp_path: Path) -> None:
    old = setup_tree.old_python(tmp_path / "bin")
    (old.parent / "python3.12").symlink_to(BASE)
    said = failure(set_up(project, "--this-python", python=old, path=old.parent))
    assert "is 3.9.18" in said


def test_the_index_cannot_be_reached(project: Path, tmp_path: Path) -> None:
    uv = setup_tree.program(tmp_path / "bin" / "uv", "#!/bin/sh\necho 'error: no route'\nexit 2\n")
    done = set_up(project, path=uv.parent, PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    said = failure(done)
    assert "error: no route; now with pip" in done.stdout
    assert "ERROR: No matching distribution found for" in said
    assert "What to do: the package index" in said
    assert (project / ".venv" / "bringup-setup.log").is_file()
    assert examined(project) == ["build", "the last set-up did not finish"]


def test_the_folder_cannot_be_written(project: Path) -> None:
    argv = [BASE, "scripts/setup_env.py"]
    if os.geteuid() == 0:  # the owner of all may write anywhere, unless that right is given up
        need(shutil.which("setpriv") is not None, "setpriv is missing (util-linux)")
        rights = "-dac_override,-dac_read_search"
        argv = [str(shutil.which("setpriv")), "--bounding-set", rights, "--inh-caps", rights, *argv]
    project.chmod(0o555)
    try:
        done = subprocess.run(argv, cwd=project, capture_output=True, text=True, check=False)
    finally:
        project.chmod(0o755)
    said = failure(done)
    assert said.startswith(f"set-up: cannot write in {project}; ")
    assert said.count("\n") == 1


@pytest.mark.lab
def test_the_disk_is_full(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m", "none", str(folder)], capture_output=True
    )
    need(mount.returncode == 0, "a small file system cannot be mounted (needs root)")
    try:
        said = failure(set_up(copy_project(folder, whole_lock=False)))
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    assert said.startswith(f"set-up: {folder} needs 700 MB of free space and has 1")
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "scripts").glob("*.py")))
def test_scripts_can_be_read_by_an_old_python(name: str) -> None:
    source = (ROOT / "scripts" / name).read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 8))
    outside = [
        word
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import)
        for word in (alias.name for alias in node.names)
        if word not in {*sys.stdlib_module_names, "environment", "interpreters"}
    ]
    assert not outside, "the standard library only"


# --- make -----------------------------------------------------------------------------------


def made(*words: str) -> str:
    """What make prints."""
    need(shutil.which("make") is not None, "make is missing (apt-get install make)")
    return subprocess.check_output(["make", "--no-print-directory", *words], cwd=ROOT, text=True)


def test_make_alone_lists_every_target() -> None:
    listed = {line.split()[1] for line in made().splitlines()}
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    (phony,) = [line for line in lines if line.startswith(".PHONY:")]
    assert listed == set(phony.split()[1:])


def test_make_takes_the_python_that_is_named() -> None:
    assert made("-n", "setup").split() == ["python3", "scripts/setup_env.py"]
    named = made("-n", "PYTHON=python3.12", "dev").split()
    assert named == ["python3.12", "scripts/setup_env.py", "--this-python", "--dev"]
