"""The probes run for real: by this interpreter, by older ones, and in hostile surroundings."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.environments import CALL, make_venv, runs, see, site_packages, write_dist
from tools.autoconfig import ConfigProbe, ConfigProbeArgs, ConfigVerdict
from tools.command import Command
from tools.connectors.local import Local
from tools.edits import FileChange, ReplaceInFile, SetAside
from tools.errors import ToolFailed
from tools.folders import ListFolder, Listing
from tools.imports import ImportOutcomes, ImportProbe
from tools.installation import PipResolve, Resolution
from tools.packages import EnvironmentState, PipList, PythonEnvironment

TINY = {"model_type": "qwen3_5_text", "architectures": ["Qwen3_5ForCausalLM"], "hidden_size": 64}
BANNER = 'import sys\nprint("*** welcome ***")\nsys.stdout.write("m-5e1f without a newline")\n'


def older_pythons() -> list[Any]:
    """One parameter for each Python that a target may have; skipped where it does not run here."""
    params = []
    for version in ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13"):
        managed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        found = [shutil.which(f"python{version}"), *map(str, managed)]
        marks = [pytest.mark.skip(reason=f"Python {version} does not run on this machine")]
        running = next((path for path in found if path and runs(path)), "")
        params.append(pytest.param(version, running, id=version, marks=[] if running else marks))
    return params


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(TINY))
    return folder


@pytest.fixture
def hostile(tmp_path: Path) -> dict[str, Any]:
    """A PYTHONPATH and a current folder full of traps."""
    path, cwd = tmp_path / "path", tmp_path / "cwd"
    for folder in (path, cwd):
        folder.mkdir()
        for name in ("json", "tempfile", "importlib_metadata"):
            (folder / f"{name}.py").write_text('raise RuntimeError("a trap")\n')
    (cwd / "only_in_cwd.py").touch()
    (path / "only_in_path.py").touch()
    (path / "sitecustomize.py").write_text(BANNER)
    return {"env": {"PYTHONPATH": str(path)}, "cwd": cwd}


# Older interpreters


@pytest.mark.parametrize(("version", "python"), older_pythons())
def test_probes_work_on(version: str, python: str, tmp_path: Path, model: Path) -> None:
    assert Local().run(Command.of(python, "-m", "venv", "--without-pip", str(tmp_path / "v"))).ok
    inside = tmp_path / "v" / "bin" / "python"
    write_dist(site_packages(inside), "engine-1.0", "engine", "numpy<2", 'numpy; extra == "x"')
    state: EnvironmentState = see(PythonEnvironment(), inside, pins_of=["numpy"])
    assert state.python_version.startswith(f"{version}.")
    assert (state.is_venv, state.writable, state.pip_version) == (True, True, None)
    assert state.versions == {"engine": "1.0"}
    assert [pin.requirement for pin in state.pins] == ["numpy<2"]
    verdict: ConfigVerdict = see(ConfigProbe(), inside, model=str(model))
    assert (verdict.model_type, verdict.error_type) == ("qwen3_5_text", "ModuleNotFoundError")
    found: ImportOutcomes = see(ImportProbe(), inside, modules=["json", "engine"])
    assert (found.modules["json"].ok, found.missing) == (True, ["engine"])
    (site_packages(inside) / "engine.py").write_text("__version__ = '0.9'\n")
    again: ImportOutcomes = see(ImportProbe(), inside, modules=["engine"])
    assert again.modules["engine"].installed == "1.0"
    assert again.odd == [f"engine 0.9 imported from {site_packages(inside)}, but 1.0 is installed"]
    listing: Listing = see(ListFolder(), inside, path=str(site_packages(inside)), pattern="e*.py")
    assert [entry.name for entry in listing.entries] == ["engine.py"]
    done: FileChange = see(
        ReplaceInFile(), inside, path=f"{listing.real_path}/engine.py", old="0.9", new="1.0.0"
    )
    assert see(ImportProbe(), inside, modules=["engine"]).odd is None
    assert see(SetAside(), inside, path=done.path).backup == f"{done.backup}-2"
    resolution: Resolution = see(PipResolve(), inside, requirements=["engine"])
    assert resolution.error_kind == "no_pip"


# Hostile surroundings


def test_environment_in_hostile_surroundings(hostile: dict[str, Any]) -> None:
    calm = see(PythonEnvironment())
    seen = see(PythonEnvironment(), **hostile)
    same = {"free_mib": calm.free_mib, "startup": calm.startup}
    assert seen.model_copy(update=same) == calm
    assert [it.source for it in seen.startup if it not in calm.startup] == [
        "PYTHONPATH",
        f"{hostile['env']['PYTHONPATH']}/sitecustomize.py",
    ]


def test_config_in_hostile_surroundings(hostile: dict[str, Any], model: Path) -> None:
    verdict = see(ConfigProbe(), model=str(model), **hostile)
    assert verdict.config_class == "Qwen3_5TextConfig"


def test_imports_in_hostile_surroundings(hostile: dict[str, Any]) -> None:
    found = see(ImportProbe(), modules=["only_in_path", "only_in_cwd"], **hostile)
    assert (found.modules["only_in_path"].ok, found.missing) == (True, ["only_in_cwd"])


def test_a_folder_that_is_gone(tmp_path: Path, model: Path) -> None:
    python = make_venv(tmp_path / "v")
    script = 'mkdir gone; cd gone; rmdir ../gone; exec "$0" "$@"'
    tool = ConfigProbe()
    given = ConfigProbeArgs(python=str(python), model=str(model))
    command = tool.command(given, CALL)
    argv = ("sh", "-c", script, *command.argv)
    seen = tool.parse(given, CALL, Local().run(replace(command, argv=argv, cwd=str(tmp_path))))
    assert seen.model_type == "qwen3_5_text"


# The environment


def test_a_missing_interpreter_is_an_answer(tmp_path: Path) -> None:
    assert not see(PythonEnvironment(), tmp_path / "bin" / "python").exists


def test_a_missing_interpreter_fails_the_others(tmp_path: Path) -> None:
    missing = tmp_path / "bin" / "python"
    with pytest.raises(ToolFailed, match=f"python not found: {missing}"):
        see(ImportProbe(), missing, modules=["json"])
    with pytest.raises(ToolFailed, match=f"python not found: {missing}"):
        see(PipList(), missing)


def test_the_writing_trial_leaves_nothing(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "v")
    before = sorted((tmp_path / "v").rglob("*"))
    assert see(PythonEnvironment(), python).writable
    assert sorted((tmp_path / "v").rglob("*")) == before


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, where not even root can write")
def test_an_environment_that_cannot_be_written(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "v")
    site = site_packages(python)
    site.rmdir()
    site.symlink_to("/proc/self")
    seen = see(PythonEnvironment(), python)
    assert not seen.writable
    assert seen.write_error


def test_pins_and_leftovers(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "v")
    site = site_packages(python)
    write_dist(site, "transformers-4.57.6", "transformers", "Huggingface_Hub<1.0", "torch>=2.2")
    write_dist(site, "huggingface_hub-0.36.2", "huggingface_hub", 'huggingface.hub; extra=="all"')
    write_dist(site, "~orch-2.1", "torch")
    (site / "half_removed-1.0.dist-info").mkdir()
    seen: EnvironmentState = see(PythonEnvironment(), python, pins_of=["huggingface-hub"])
    assert seen.versions == {"transformers": "4.57.6", "huggingface-hub": "0.36.2"}
    assert [pin.model_dump() for pin in seen.pins] == [
        {
            "name": "huggingface-hub",
            "by": "transformers",
            "by_version": "4.57.6",
            "requirement": "Huggingface_Hub<1.0",
        }
    ]


# Configs


def test_a_config_of_another_name_leaves_no_copy(tmp_path: Path, model: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    path = (model / "config.json").rename(tmp_path / "qwen.json")
    verdict = see(ConfigProbe(), model=str(path), env={"TMPDIR": str(temporary)})
    assert (verdict.parses, verdict.parsed_by) == (True, "bare")
    assert list(temporary.iterdir()) == []


REGISTERS = """
from transformers import AutoConfig, PretrainedConfig
class OwnConfig(PretrainedConfig):
    model_type = "engines_own"
AutoConfig.register("engines_own", OwnConfig)
"""
READS = """
class ReadConfig:
    pass
def get_config(model, trust_remote_code, revision=None):
    assert trust_remote_code is False
    return ReadConfig()
"""


@pytest.mark.parametrize(("text", "name"), [(REGISTERS, "OwnConfig"), (READS, "ReadConfig")])
def test_the_engines_registry_comes_first(
    tmp_path: Path, model: Path, text: str, name: str
) -> None:
    (model / "config.json").write_text('{"model_type": "engines_own"}')
    (tmp_path / "engine_registry.py").write_text(text)
    env = {"PYTHONPATH": str(tmp_path)}
    assert see(ConfigProbe(), model=str(model), env=env).error_type == "ValueError"
    verdict = see(ConfigProbe(), model=str(model), registry=["engine_registry"], env=env)
    assert (verdict.parsed_by, verdict.config_class) == ("registry", name)


def test_a_registry_that_leaves(tmp_path: Path, model: Path) -> None:
    (tmp_path / "leaves.py").write_text('raise SystemExit("no GPU found")\n')
    env = {"PYTHONPATH": str(tmp_path)}
    verdict = see(ConfigProbe(), model=str(model), registry=["leaves"], env=env)
    assert verdict.registry_errors == {"leaves": "SystemExit: no GPU found"}
    assert (verdict.parses, verdict.parsed_by) == (True, "bare")


# Imports


def test_a_module_that_ends_the_interpreter(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("import os\nos._exit(3)\n")
    env = {"PYTHONPATH": str(tmp_path)}
    found: ImportOutcomes = see(ImportProbe(), modules=["json", "ends", "re"], env=env)
    assert {name: it.error_type for name, it in found.modules.items()} == {
        "json": "",
        "ends": "Ended",
        "re": "NotReached",
    }
    assert found.modules["ends"].error.endswith("exit 3")


MISBEHAVES = """
import os, sys, threading, time
assert sys.argv == ["-"], sys.argv
threading.Thread(target=time.sleep, args=(60,)).start()
sys.stdout.write("no newline")
sys.stdout.close()
os.close(1)
__version__ = "1.2"
"""


def test_a_module_that_keeps_a_thread_and_closes_standard_output(tmp_path: Path) -> None:
    (tmp_path / "misbehaves.py").write_text(MISBEHAVES)
    env = {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    begun = time.monotonic()
    found = see(ImportProbe(), modules=["misbehaves"], env=env, timeout_s=20.0)
    assert time.monotonic() - begun < 15.0, "the probe waited for the thread"
    assert found.modules["misbehaves"].version == "1.2"
    assert not (tmp_path / "__pycache__").exists(), "a READ leaves no bytecode"
