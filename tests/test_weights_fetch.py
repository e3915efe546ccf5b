"""Weights fetched with the real hub library from a hub on loopback."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.environments import CALL, make_venv
from tests.hub_host import MB, ONE, TWO, WHOLE, Hub, serving, shard
from tests.lab import environments
from tests.lab.engine import docker_run, engine
from tests.lab.images import image
from tools.command import Command, Ending
from tools.connectors.local import Local
from tools.errors import ToolFailed
from tools.weights_fetch import (
    FetchConfig,
    FetchConfigArgs,
    FetchedConfig,
    FetchedWeights,
    FetchWeights,
    FetchWeightsArgs,
)


def pythons() -> list[Any]:
    lab = pytest.mark.lab
    return [pytest.param(None, id="2.x"), pytest.param(environments.OLD_ALONE, id="0.x", marks=lab)]


@pytest.fixture(params=pythons())
def python(request: pytest.FixtureRequest) -> str:
    """An interpreter with the hub's library: of this environment, or of the older release."""
    if request.param is None:
        return sys.executable
    return str(environments.environment(*request.param) / "bin" / "python")


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving(Hub(files={**WHOLE, "pytorch_model.bin": b"x", "original/a.pth": b"x"})) as hub:
        yield hub


def fetch(
    tool: FetchConfig | FetchWeights,
    python: str,
    hub: Hub,
    folder: Path,
    said: list[str] | None = None,
    start: tuple[str, ...] = (),
    **more: Any,
) -> Any:
    """Run the script as it runs in a container, by an interpreter of this machine.

    What it prints is added to `said` as it comes; `start` are words before the interpreter.
    """
    given = {"image": "i", "repo": hub.repo, "folder": str(folder), "endpoint": hub.address, **more}
    args: Any = tool.args_type.model_validate(given)
    command: Command = tool.command(args, CALL)
    payload = json.loads(command.argv[-1])
    folder.mkdir(exist_ok=True)
    payload["out"] = str(folder)
    argv = (*start, python, "-", CALL.marker, json.dumps(payload))
    heard = said if said is not None else []
    command = replace(command, argv=argv, timeout_s=60)
    result = Local().run(command, lambda _, text: heard.append(text))
    assert result.ending is Ending.EXITED, result
    return tool.parse(args, CALL, result)


def test_a_config_and_what_would_come(python: str, hub: Hub, tmp_path: Path) -> None:
    seen: FetchedConfig = fetch(FetchConfig(), python, hub, tmp_path / "m")
    assert (seen.commit, seen.path) == (hub.commit, str(tmp_path / "m" / "config.json"))
    assert (seen.files, seen.bytes) == (5, sum(map(len, WHOLE.values())))
    assert (seen.weights_files, seen.weights_bytes) == (2, len(WHOLE[ONE]) + len(WHOLE[TWO]))
    assert [name for name, _ in hub.sent] == ["config.json"]
    assert (tmp_path / "m" / "config.json").read_bytes() == b"{}"


def test_weights_come_once(python: str, hub: Hub, tmp_path: Path) -> None:
    seen: FetchedWeights = fetch(FetchWeights(), python, hub, tmp_path, revision=hub.commit)
    assert sorted(name for name, _ in hub.sent) == sorted(WHOLE)
    assert (seen.files, seen.bytes, seen.fetched_bytes) == (5, seen.bytes, seen.bytes)
    assert {name: (tmp_path / name).read_bytes() for name in WHOLE} == WHOLE
    again: FetchedWeights = fetch(FetchWeights(), python, hub, tmp_path)
    assert (again.fetched_bytes, len(hub.sent)) == (0, 5)


def test_a_fetch_goes_on_where_it_was_ended(python: str, hub: Hub, tmp_path: Path) -> None:
    hub.files["model.safetensors"] = shard(25 * MB)
    hub.stalls_after = 12 * MB
    with pytest.raises(ToolFailed, match="the time was over; a next fetch keeps what is there"):
        fetch_and_end(python, hub, tmp_path)
    hub.stalls_after = None
    seen: FetchedWeights = fetch(FetchWeights(), python, hub, tmp_path)
    assert seen.fetched_bytes == len(hub.files["model.safetensors"])
    names = sorted(name for name, _ in hub.sent)
    assert names == sorted([*WHOLE, "model.safetensors", "model.safetensors"])
    # The older releases go on within a file. The newer ones do not, and nothing must be left of it.
    assert hub.sent[-1][1] == ("" if python == sys.executable else f"bytes={10 * 2**20}-")
    assert not list(tmp_path.rglob("*.incomplete")) or python != sys.executable
    assert (tmp_path / "model.safetensors").read_bytes() == hub.files["model.safetensors"]


def fetch_and_end(python: str, hub: Hub, folder: Path) -> None:
    """Fetch until the hub stalls and the progress says so; then SIGTERM, as `timeout` sends it."""
    said: list[str] = []
    pid = folder / "pid"

    def end() -> None:
        deadline = time.monotonic() + 30
        while "5 of 6 files, 0.01 of 0.03 GB" not in "".join(said):
            assert time.monotonic() < deadline, said
            time.sleep(0.05)
        os.kill(int(pid.read_text()), signal.SIGTERM)

    hub.when_stalled = end
    start = ("sh", "-c", 'echo $$ > "$1"; shift; exec "$@"', "sh", str(pid))
    fetch(FetchWeights(), python, hub, folder, said, start)


@pytest.mark.parametrize(
    ("change", "args", "words"),
    [
        ({"gated": True}, {}, "access to org/tiny is gated: .*GatedRepo"),
        ({}, {"repo": "org/none"}, "the hub has no model org/none, or it is private.*401"),
        ({}, {"revision": "v9"}, "org/tiny has no revision v9: .*404"),
        ({"status": 401}, {}, "the hub refuses access to org/tiny: HF_TOKEN.*401"),
        ({"status": 500}, {}, "the hub did not do it: .*500"),
        ({}, {"endpoint": "http://127.0.0.1:9"}, "the hub cannot be reached: .*refused"),
        ({}, {"endpoint": "http://no.invalid"}, "the hub cannot be reached: .*not known"),
        (
            {"claims": {ONE: 10**15}},
            {},
            "too little room on the disk: 1000000.0 GB to come, .* free",
        ),
        ({"claims": {ONE: 7}}, {}, f"what was fetched is not what the hub names: {ONE}"),
    ],
)
def test_why_it_was_not_fetched(
    python: str, hub: Hub, tmp_path: Path, change: dict[str, Any], args: dict[str, Any], words: str
) -> None:
    for name, value in change.items():
        setattr(hub, name, value)
    with pytest.raises(ToolFailed, match=words):
        fetch(FetchWeights(), python, hub, tmp_path, **args)


def test_no_room_is_said_before_anything_comes(hub: Hub, tmp_path: Path) -> None:
    hub.claims = {ONE: 10**15}
    with pytest.raises(ToolFailed, match="too little room"):
        fetch(FetchWeights(), sys.executable, hub, tmp_path)
    assert hub.sent == []


@pytest.mark.lab
def test_a_disk_that_gets_full(hub: Hub, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    hub.files["model.safetensors"] = shard(25 * MB)
    hub.claims = {"model.safetensors": 10}
    mounted = Local().run(Command.of("mount", "-t", "tmpfs", "-o", "size=510m", "x", str(tmp_path)))
    if not mounted.ok:
        pytest.skip(f"cannot mount: {mounted.tail}")
    try:
        (tmp_path / "filler").write_bytes(b"")
        hub.before_file = lambda: fill(tmp_path)
        with pytest.raises(ToolFailed, match="no space left on the disk"):
            fetch(FetchWeights(), sys.executable, hub, tmp_path)
    finally:
        Local().run(Command.of("umount", "--lazy", str(tmp_path)))


def fill(folder: Path) -> None:
    """Take all room but a few MB."""
    if not (folder / "filler").stat().st_size:
        with (folder / "filler").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 495 * 2**20)


def test_certificates_that_nobody_knows(python: str, hub: Hub, tmp_path: Path) -> None:
    with (
        serving(Hub(files=WHOLE), tls=tmp_path) as secure,
        pytest.raises(ToolFailed, match="TLS certificate cannot be verified"),
    ):
        fetch(FetchConfig(), python, secure, tmp_path / "m")


def test_an_image_without_the_library(hub: Hub, tmp_path: Path) -> None:
    python = make_venv(tmp_path / "v")
    with pytest.raises(ToolFailed, match="has no working huggingface_hub: ModuleNotFoundError"):
        fetch(FetchConfig(), str(python), hub, tmp_path / "m")


def test_a_token_is_used_and_stands_in_no_word(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of_this_test")
    fetch(FetchConfig(), sys.executable, hub, tmp_path)
    assert hub.tokens == {"Bearer hf_of_this_test"}
    given = {"image": "i", "repo": hub.repo, "folder": "/m"}
    command = FetchConfig().command(FetchConfigArgs.model_validate(given), CALL)
    assert "hf_of_this_test" not in repr(command)
    assert command.argv[command.argv.index("HF_TOKEN") - 1] == "--env"


# In a container


@pytest.mark.lab
def test_a_container_fetches(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", engine())
    monkeypatch.setenv("HF_TOKEN", "hf_of_this_test")
    call = replace(CALL, run_id=f"test-{time.monotonic_ns()}")
    folder = tmp_path / "models" / "tiny"
    given = {"repo": hub.repo, "folder": str(folder), "endpoint": hub.address, "limit_s": 60}
    tool = FetchWeights()
    args = FetchWeightsArgs.model_validate({"image": image("transformers-4"), **given})
    folder.mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
    seen = tool.parse(args, call, Local().run(tool.command(args, call)))
    assert (seen.commit, seen.files) == (hub.commit, 5)
    assert {name: (folder / name).read_bytes() for name in WHOLE} == WHOLE
    assert hub.tokens == {"Bearer hf_of_this_test"}
    assert {path.stat().st_uid for path in folder.rglob("*")} == {folder.stat().st_uid}
    ours = f"label=bringup.run={call.run_id}"
    assert docker_run("ps", "--all", "--quiet", "--filter", ours) == ""


@pytest.mark.lab
def test_a_missing_folder_is_made(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", engine())
    folder = tmp_path / "a folder" / "-m"
    given = {"repo": hub.repo, "folder": str(folder), "endpoint": hub.address}
    tool = FetchConfig()
    args = FetchConfigArgs.model_validate({"image": image("transformers-4"), **given})
    seen = tool.parse(args, CALL, Local().run(tool.command(args, CALL)))
    assert Path(seen.path).read_bytes() == b"{}"


@pytest.mark.lab
@pytest.mark.parametrize(
    ("name", "words"),
    [("base", "has no working huggingface_hub"), (None, "No such image: nowhere/nothing:1")],
)
def test_an_image_that_cannot(
    name: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", engine())
    tool = FetchConfig()
    ref = image(name) if name else "nowhere/nothing:1"
    args = FetchConfigArgs(image=ref, repo="org/tiny", folder=str(tmp_path / "m"))
    with pytest.raises(ToolFailed, match=words):
        tool.parse(args, CALL, Local().run(tool.command(args, CALL)))
