"""The Docker tools without an engine: words, names, numbers, and the order of what comes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.docker_host import CALL
from tests.lab.checkout import ROOT
from tools.base import Risk, Tool
from tools.command import Command, Ending, Result
from tools.connectors.docker import exec_command
from tools.connectors.engine_pull import Progress
from tools.container_changes import ExecInContainer, RemoveContainer, StartContainer, StopContainer
from tools.container_use import merged, size_mib
from tools.docker import failure, is_missing
from tools.docker_run import Mount, env_words, limited, overran, probe_command, probe_name, ran
from tools.errors import BadReply, ToolFailed
from tools.image_build import BuildImage
from tools.image_manifest import ManifestState, PlatformSize, pull_refusal
from tools.image_pull import PullImage
from tools.images import RemoveImage
from tools.service import StartService


def checked(tool: Tool[Any, Any], **args: object) -> Any:
    return tool.args_type.model_validate(args)


def exited(code: int, stderr: str = "", duration_s: float = 1.0) -> Result:
    return Result(Ending.EXITED, code=code, stderr=stderr, duration_s=duration_s)


def test_what_changes_says_how_it_is_undone_and_what_destroys_has_no_undo() -> None:
    image, name = {"image": "lab/a:1"}, {"name": "engine"}
    start = {**image, **name}
    build = {"dockerfile": "FROM lab/a:1", "tag": "lab/b:1", "base": "lab/a:1"}
    changes: list[tuple[Tool[Any, Any], dict[str, Any]]] = [
        (PullImage(), image),
        (BuildImage(), build),
        (StartService(), start),
        (StopContainer(), name),
        (StartContainer(), name),
        (ExecInContainer(), {**name, "argv": ["true"]}),
    ]
    for tool, args in changes:
        assert tool.risk_of(checked(tool, **args)) is Risk.CHANGE
        assert tool.undo_text(checked(tool, **args))
    for tool in (RemoveImage(), RemoveContainer()):
        args = checked(tool, **(image if isinstance(tool, RemoveImage) else name))
        assert tool.risk_of(args) is Risk.DESTROY
        assert tool.undo_text(args) is None


def test_stopping_touches_a_service() -> None:
    args = checked(StopContainer(), name="engine")
    touched = [str(it) for it in StopContainer().subjects(args)]
    assert touched[:2] == ["service engine", "container engine"]


def test_the_words_of_a_service() -> None:
    args = checked(
        StartService(),
        **{
            "image": "lab/engine:1",
            "argv": ["--port", "8000"],
            "name": "engine",
            "mounts": [{"source": "/srv/m", "target": "/m"}],
            "env": {"TOKEN": "s3cret", "HTTP_PROXY": "http://p"},
            "gpus": "0,1",
            "ipc": "host",
            "shm_mib": 1024,
            "network": "bridge",
            "host": "192.0.2.1",
            "entrypoint": "/opt/serve",
        },
    )
    command = StartService().command(args, CALL)
    assert command.argv == (
        *("docker", "run", "--detach", "--name", "engine"),
        *("--label", f"bringup.run={CALL.run_id}", "--label", "bringup.call=call-1"),
        *("--label", "bringup.made=container"),
        *("--pull", "never", "--network", "bridge", "--publish", "192.0.2.1:8000:8000"),
        *("--gpus", '"device=0,1"', "--ipc", "host", "--shm-size", "1024m"),
        *("--mount", "type=bind,source=/srv/m,target=/m,readonly"),
        *("--env", "TOKEN", "--env", "HTTP_PROXY=http://p", "--entrypoint", "/opt/serve"),
        *("lab/engine:1", "--port", "8000"),
    )
    assert command.env == {"TOKEN": "s3cret"}
    touched = [str(it) for it in StartService().subjects(args)]
    assert touched[:3] == [
        "service engine",
        "container engine",
        "port 8000",
    ]


def test_variables_travel_by_name_unless_they_would_change_the_client() -> None:
    words, carried = env_words({"HF_TOKEN": "a", "PATH": "/b", "DOCKER_HOST": "c", "no_proxy": "d"})
    assert words == (
        *("--env", "HF_TOKEN", "--env", "PATH=/b"),
        *("--env", "DOCKER_HOST=c", "--env", "no_proxy=d"),
    )
    assert carried == {"HF_TOKEN": "a"}


def test_a_probe_can_do_nothing_but_look() -> None:
    mounts = [Mount(source="/srv/m", target="/m", read_only=False)]
    command = Command.of("python3", "-", stdin="x", env={"A": "b"}, cwd="/m", timeout_s=9.6)
    probe = probe_command(CALL, "lab/a:1", command, mounts)
    text = probe.text
    for words in (
        "--rm --interactive",
        f"--name {probe_name(CALL)}",
        "--pull never --network none --read-only",
        "--security-opt no-new-privileges",
        "source=/srv/m,target=/m,readonly",
        "NVIDIA_VISIBLE_DEVICES=void",
        "--entrypoint timeout lab/a:1 -k 2 10 python3 -",
    ):
        assert words in text
    assert "--gpus" not in text
    assert (probe.stdin, probe.env) == ("x", {"A": "b"})
    assert probe.timeout_s > 9.6 + 2


def test_a_command_in_a_container_keeps_its_words_input_and_folder() -> None:
    command = Command.of("cat", "a b", stdin="x", env={"TOKEN": "s"}, cwd="/srv", timeout_s=5)
    inside = exec_command("engine", command)
    assert inside.argv == (
        *("docker", "exec", "--interactive", "--env", "TOKEN", "--workdir", "/srv", "engine"),
        *("timeout", "-k", "2", "5", "cat", "a b"),
    )
    assert (inside.stdin, inside.env) == ("x", {"TOKEN": "s"})
    assert "--interactive" not in exec_command("engine", Command.of("true")).argv


@pytest.mark.parametrize(
    ("code", "duration_s", "late"),
    [(124, 5.1, True), (137, 7.2, True), (124, 0.3, False), (137, 1.0, False), (1, 5.1, False)],
)
def test_a_limit_is_told_from_an_exit_code_of_the_program(
    code: int, duration_s: float, late: bool
) -> None:
    result = exited(code, duration_s=duration_s)
    assert overran(result, 5.0) is late
    ending = Ending.TIMED_OUT if late else Ending.EXITED
    assert ran("docker exec", result, 5.0).ending is ending


def test_limits_are_whole_seconds_and_never_none() -> None:
    assert limited(("x",), 0.2) == ("timeout", "-k", "2", "1", "x")
    assert limited(("x",), 9.6)[3] == "10"


@pytest.mark.parametrize(
    ("stderr", "meaning"),
    [
        ("docker: not found", "there is no docker program"),
        ("bash: line 1: docker: command not found", "there is no docker program"),
        (
            "Got permission denied while trying to connect to the Docker daemon socket at unix:///x",
            "may not use the Docker socket",
        ),
        (
            "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?",
            "not run",
        ),
        ("request returned Internal Server Error for API route and version http://x", "of its own"),
        ("Error response from daemon: something else", "docker info failed (exit 1)"),
    ],
)
def test_troubles_are_told_apart(stderr: str, meaning: str) -> None:
    error = failure("docker info", exited(1, stderr))
    assert meaning in str(error)
    assert stderr in str(error)


def test_a_missing_thing_is_no_trouble() -> None:
    assert is_missing(exited(1, "Error: No such container: x"))
    assert is_missing(exited(1, "Error response from daemon: No such image: x:1"))
    assert not is_missing(exited(0, "no such image"))
    assert not is_missing(exited(1, "Cannot connect to the Docker daemon"))


def test_two_streams_come_together_by_their_times() -> None:
    out = "2026-01-02T03:04:05.000000001Z a\n2026-01-02T03:04:05.000000003Z c\nrest of c\n"
    err = "2026-01-02T03:04:05.000000002Z b\n2026-01-02T03:04:05.000000004Z \n"
    assert merged(out, err) == ["a", "b", "c", "rest of c", ""]


@pytest.mark.parametrize(
    ("text", "mib"),
    [("0B", 0.0), ("512KiB", 0.5), ("1.5GiB ", 1536.0), ("438MB", 417.7), ("1.2GB", 1144.4)],
)
def test_sizes_as_docker_writes_them(text: str, mib: float) -> None:
    assert size_mib(text) == pytest.approx(mib, abs=0.1)


def test_what_is_no_size_is_said() -> None:
    with pytest.raises(BadReply, match="should tell a size, and said: lots"):
        size_mib("lots")


def test_why_an_image_should_not_be_pulled() -> None:
    sizes = (
        PlatformSize(platform="linux/amd64", compressed_mib=1000),
        PlatformSize(platform="linux/arm64/v8", compressed_mib=900),
    )
    manifest = ManifestState(present=True, platforms=sizes)
    assert pull_refusal(manifest, "linux/arm64", None) == ""
    assert pull_refusal(manifest, "linux/amd64", 3000) == ""
    assert "about 3000 MiB of disk" in pull_refusal(manifest, "linux/amd64", 2999)
    assert "linux/amd64, linux/arm64/v8, and this engine is linux/riscv64" in pull_refusal(
        manifest, "linux/riscv64", None
    )
    assert "manifest unknown" in pull_refusal(
        ManifestState(present=False, said="manifest unknown"), "linux/amd64", None
    )


def layer(name: str, status: str, *of: int) -> dict[str, Any]:
    detail = {"current": of[0], "total": of[1]} if of else {}
    return {"id": name, "status": status, "progressDetail": detail}


def test_progress_adds_up_layers_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("tools.connectors.engine_pull.time.monotonic", lambda: now)
    progress = Progress()
    assert progress.take({"id": "1", "status": "Pulling from lab/a"}) == ""
    assert progress.take(layer("a", "Pulling fs layer")) == "pull: 0 of 1 layers\n"
    assert progress.take(layer("b", "Waiting")) == ""
    now = 101.0
    line = progress.take(layer("a", "Downloading", 30_000_000, 90_000_000))
    assert line == "pull: 0 of 2 layers, 30 of 90+ MB\n"
    assert progress.take(layer("a", "Downloading", 31_000_000, 90_000_000)) == ""
    now = 102.0
    progress.take(layer("b", "Downloading", 5_000_000, 10_000_000))
    now = 103.0
    line = progress.take(layer("a", "Extracting", 1, 90_000_000))
    assert line == "pull: 0 of 2 layers, 95 of 100 MB, unpacking\n"
    progress.take(layer("a", "Pull complete"))
    progress.take(layer("b", "Pull complete"))
    assert progress.line(final=True) == "pull: 2 of 2 layers, 100 of 100 MB\n"
    assert progress.line(final=True) == ""


def test_start_failures_say_what_was_left_behind() -> None:
    args = checked(StartService(), image="lab/a:1", name="engine")
    said = "docker: Error response from daemon: port is already allocated."
    made = Result(Ending.EXITED, code=125, stdout="a1" * 32 + "\n", stderr=said)
    with pytest.raises(ToolFailed, match=r"already allocated\.\n.*was made and is to be removed"):
        StartService().parse(args, CALL, made)
    with pytest.raises(ToolFailed) as caught:
        StartService().parse(args, CALL, exited(125, said))
    assert "was made" not in str(caught.value)
    late = Result(Ending.TIMED_OUT, duration_s=120)
    with pytest.raises(ToolFailed, match="no answer within 120 s\nWhether there is a container"):
        StartService().parse(args, CALL, late)


def test_nothing_of_the_docker_client_is_loaded_for_other_commands() -> None:
    code = "import sys, tools.connectors.local; print('docker' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=env)
    assert done.stdout == "False\n"
