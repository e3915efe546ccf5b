"""A registry of images on loopback: Debian's ``docker-registry``, with its own empty storage."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.lab.engine import docker_run
from tests.lab.need import need
from tests.lab.spark import free_port

UP_S = 20.0
STOP_S = 10.0


@dataclass(frozen=True)
class ImageRegistry:
    """A running registry; ``address`` is ``127.0.0.1:PORT``, to which engines speak plain HTTP."""

    address: str

    def push(self, ref: str, name: str) -> str:
        """Push an image of the lab's engine; its name in this registry goes from the engine again.

        Args:
            ref: The image.
            name: Its name there, as ``lab/sglang:spark``.

        Returns:
            The reference that pulls it: ``127.0.0.1:PORT/NAME``.
        """
        there = f"{self.address}/{name}"
        docker_run("tag", ref, there)
        try:
            docker_run("push", there)
        finally:
            docker_run("rmi", there)
        return there


@contextmanager
def image_registry(folder: Path) -> Iterator[ImageRegistry]:
    """Run a registry while the block runs.

    Args:
        folder: An empty folder for its settings and storage.
    """
    program = shutil.which("docker-registry")
    need(program is not None, "docker-registry is missing (apt-get install docker-registry)")
    address = f"127.0.0.1:{free_port()}"
    settings = {
        "version": 0.1,
        "log": {"accesslog": {"disabled": True}, "level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "storage")}},
        "http": {"addr": address},
    }
    (folder / "registry.yml").write_text(json.dumps(settings))  # JSON is YAML too
    log = folder / "registry.log"
    argv = [str(program), "serve", str(folder / "registry.yml")]
    with log.open("w") as file, subprocess.Popen(argv, stdout=file, stderr=file) as process:
        try:
            _wait_for(address, process, log)
            yield ImageRegistry(address)
        finally:
            process.terminate()
            process.wait(STOP_S)


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    host, _, port = address.partition(":")
    end = time.monotonic() + UP_S
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"no docker-registry:\n{log.read_text()[-2000:]}") from None
            time.sleep(0.05)
        else:
            return
