"""How this machine gets Python packages, handed on to builds of images."""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.engine import LAB
from tests.lab.environments import TORCH
from tests.lab.need import need

ON_INDEX = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")
"""pip's settings that hold in a container too; folders of this machine do not."""


@functools.cache
def index_settings() -> dict[str, str]:
    """Return pip's settings of this machine about its index, those of its environment first."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    settings: dict[str, str] = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        source, _, key = name.rpartition(".")
        words = [word for word in value.strip("'\"").split() if not word.startswith("file:")]
        if key in ON_INDEX and words and (key not in settings or source == ":env:"):
            settings[key] = " ".join(words)
    return settings


def torch_wheel_folder() -> Path:
    """Return a folder that holds the CPU build of torch for the images' Python.

    On x86_64 the build named ``+cpu`` is asked for: a bare ``torch`` would bring gigabytes.
    """
    kind = os.uname().machine
    wanted = f"{TORCH}+cpu" if kind == "x86_64" else TORCH
    folder = LAB / f"wheels-{wanted.replace('==', '-')}"
    if not list(folder.glob("torch-*.whl")):
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--python-version", "3.11", "--platform", f"manylinux_2_28_{kind}"),
                *("--only-binary", ":all:", "--dest", str(folder), wanted),
            ],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        reason = f"pip finds no {wanted}: name an index or a folder that has it in PIP_FIND_LINKS"
        need(done.returncode == 0, f"{reason}\n{done.stderr[-1000:]}")
    return folder


@contextmanager
def wheel_server(folder: Path) -> Iterator[str]:
    """Serve a folder of wheels on loopback while a build runs; gives the address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object, **words: object) -> None:
            super().__init__(*args, directory=str(folder), **words)  # type: ignore[arg-type]

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()
