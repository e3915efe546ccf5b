"""Pulling from a real registry on loopback: what it has, what fits, what is told meanwhile."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.docker_host import CALL, LABEL, new_name, remove_image, run, use, use_engine
from tests.lab.engine import docker_run
from tests.lab.need import need
from tests.lab.sshd import free_port, server
from tools.connectors.ssh import Ssh
from tools.docker_engine import DockerInfo, architecture
from tools.errors import ToolFailed
from tools.image_manifest import ImageManifest, pull_refusal
from tools.image_pull import PullImage
from tools.images import ImageArgs, InspectImage, ListImages, RemoveImage

pytestmark = pytest.mark.lab
SIZE = 3_000_000
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


@pytest.fixture(autouse=True)
def _engine(monkeypatch: pytest.MonkeyPatch) -> None:
    use_engine(monkeypatch)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A registry on loopback, as ``127.0.0.1:PORT``."""
    program = shutil.which("docker-registry")
    need(program is not None, "docker-registry is missing (apt-get install docker-registry)")
    folder = tmp_path_factory.mktemp("registry")
    address = f"127.0.0.1:{free_port()}"
    settings = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": address},
    }
    (folder / "config.yml").write_text(json.dumps(settings))
    with (folder / "log").open("wb") as log:
        argv = [str(program), "serve", str(folder / "config.yml")]
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        wait_for(address)
        yield address
    finally:
        process.kill()
        process.wait()


def wait_for(address: str) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            requests.get(f"http://{address}/v2/", timeout=5)
            return
        except requests.ConnectionError:
            assert time.monotonic() < deadline, "the registry does not answer"
            time.sleep(0.05)


def layer() -> bytes:
    """A layer with a file that cannot be compressed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo("data")
        entry.size = SIZE
        archive.addfile(entry, io.BytesIO(os.urandom(SIZE)))
    return buffer.getvalue()


def put(registry: str, name: str, data: bytes) -> dict[str, object]:
    """Lay a blob into the registry; return how a manifest names it."""
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    place = requests.post(f"http://{registry}/v2/{name}/blobs/uploads/", timeout=10)
    headers = {"Content-Type": "application/octet-stream"}
    done = requests.put(
        place.headers["Location"], data=data, params={"digest": digest}, headers=headers, timeout=10
    )
    done.raise_for_status()
    return {"digest": digest, "size": len(data)}


def publish(registry: str, machine: str) -> str:
    """Make an image for an architecture in the registry alone; return its reference."""
    name, data = f"{new_name()}/engine", layer()
    diff = hashlib.sha256(gzip.decompress(data)).hexdigest()
    config = {
        "architecture": machine,
        "os": "linux",
        "config": {"Labels": dict([LABEL.split("=")])},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff}"]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, **put(registry, name, json.dumps(config).encode())},
        "layers": [{"mediaType": LAYER, **put(registry, name, data)}],
    }
    address = f"http://{registry}/v2/{name}/manifests/1"
    headers = {"Content-Type": MANIFEST}
    done = requests.put(address, data=json.dumps(manifest), headers=headers, timeout=10)
    done.raise_for_status()
    return f"{registry}/{name}:1"


@pytest.fixture(scope="module")
def ours(registry: str) -> Iterator[str]:
    """An image of the registry for this engine."""
    machine = docker_run("info", "--format", "{{.Architecture}}").strip()
    reference = publish(registry, architecture(machine))
    yield reference
    remove_image(reference)


@pytest.fixture(scope="module")
def foreign(registry: str) -> Iterator[str]:
    """An image of the registry for an architecture that this engine does not have."""
    reference = publish(registry, "riscv64")
    yield reference
    remove_image(reference)


def test_what_the_registry_has_is_known_before_a_pull(ours: str, foreign: str) -> None:
    platform = use(DockerInfo()).platform
    manifest = use(ImageManifest(), image=ours)
    assert [it.platform for it in manifest.platforms] == [platform]
    assert manifest.fitting(platform).compressed_mib == round(SIZE / 2**20)
    assert pull_refusal(manifest, platform, 1000) == ""
    assert "2 MiB are free" in pull_refusal(manifest, platform, 2)
    other = use(ImageManifest(), image=foreign)
    assert f"is for linux/riscv64, and this engine is {platform}" in pull_refusal(
        other, platform, None
    )
    assert not use(InspectImage(), image=ours).present


def test_an_unknown_image_is_an_answer_of_the_registry(registry: str) -> None:
    manifest = use(ImageManifest(), image=f"{registry}/none:1")
    assert not manifest.present
    assert "no such manifest" in manifest.said
    with pytest.raises(ToolFailed, match="manifest unknown"):
        use(PullImage(), image=f"{registry}/none:1")


def test_a_registry_that_does_not_answer(ours: str) -> None:
    dead = f"127.0.0.1:{free_port()}/engine:1"
    for tool in (ImageManifest(), PullImage()):
        with pytest.raises(ToolFailed, match="connection refused"):
            use(tool, image=dead)


def test_a_pull_is_told_and_can_be_undone(ours: str) -> None:
    told: list[str] = []
    pulled = use(PullImage(), lambda stream, text: told.append(text), image=ours)
    assert told[-1] == "pull: 1 of 1 layers, 3 of 3 MB\n"
    assert all(line.startswith("pull: ") for line in told)
    state = use(InspectImage(), image=ours)
    assert (state.present, state.id, state.platform) == (True, pulled.id, pulled.platform)
    assert f"{ours.rpartition(':')[0]}@{pulled.digest}" in state.digests
    assert state.layers == 1
    assert state.labels == dict([LABEL.split("=")])
    assert not pulled.already
    assert use(PullImage(), image=ours).already
    assert ours in [row.reference for row in use(ListImages(), label=LABEL).images]
    assert ours in use(RemoveImage(), image=ours).untagged
    assert not use(InspectImage(), image=ours).present
    with pytest.raises(ToolFailed, match="No such image"):
        use(RemoveImage(), image=ours)


def test_an_image_for_other_machines_is_refused_before_any_download(foreign: str) -> None:
    told: list[str] = []
    platform = use(DockerInfo()).platform
    with pytest.raises(ToolFailed, match=f"has linux/riscv64 only and this engine is {platform}"):
        use(PullImage(), lambda stream, text: told.append(text), image=foreign)
    assert not [line for line in told if line.startswith("pull: ")]
    assert not use(InspectImage(), image=foreign).present


def test_a_pull_over_ssh_needs_no_second_login(
    ours: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = ImageArgs(image=ours)
    address = os.environ["DOCKER_HOST"]
    with server(tmp_path / "sshd", SetEnv=f"SHLVL=2 DOCKER_HOST={address}") as sshd:
        monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
        host = Ssh("spark", name="spark", config_file=str(sshd.config))
        told: list[str] = []
        try:
            for already in (False, True):
                command = PullImage().command(args, CALL)
                result = host.run(command, lambda stream, text: told.append(text))
                assert PullImage().parse(args, CALL, result).already is already
        finally:
            host.close()
        assert sshd.logins() == 1
    assert "pull: 1 of 1 layers, 3 of 3 MB\n" in told
    monkeypatch.setenv("DOCKER_HOST", address)
    assert run(RemoveImage(), image=ours).ok


def test_a_host_without_docker_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    args = ImageArgs(image="lab/none:1")
    (tmp_path / "sh").symlink_to(str(shutil.which("sh")))
    with server(tmp_path / "sshd", SetEnv=f"SHLVL=2 PATH={tmp_path}") as sshd:
        host = Ssh("spark", name="spark", config_file=str(sshd.config))
        try:
            result = host.run(PullImage().command(args, CALL))
        finally:
            host.close()
    assert result.code == 127
    with pytest.raises(ToolFailed, match="no docker program on the target"):
        PullImage().parse(args, CALL, result)
