"""A host to reach by ssh, as a container: sshd on loopback, the lab's engine, two people.

It shares the machine's network, so what a container with the host's network listens on is there
too. Its folders of homes and models have the same path inside and outside, so that ``-v`` means the
same for the containers that are started on it: they are siblings on the lab's engine.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.lab.engine import docker_run, engine, started
from tests.lab.images import FOLDER, image
from tests.lab.need import need

USER = "spark"
"""May use the engine."""
OTHER = "nodocker"
"""May not: not in the group of the engine's socket."""
UP_S = 20.0
OWNER = "bringup-lab.owner"
"""Label of the containers of a test session: the process that will remove them."""


@dataclass(frozen=True)
class Spark:
    """A running host.

    ``config`` is a client's configuration with the hosts ``NAME`` (as `USER`) and ``NAME-nodocker``
    (as `OTHER`); ``models`` is an empty folder with the same path inside and outside.
    """

    name: str
    port: int
    container: str
    config: Path
    identity: Path
    known_hosts: Path
    home: Path
    other_home: Path
    models: Path

    def ssh(self, *words: str, host: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command there with OpenSSH's client; the words are joined by spaces, as it does."""
        argv = ["ssh", "-F", str(self.config), host or self.name, "--", *words]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def spark(folder: Path, *, name: str = "spark-1", known: bool = True) -> Iterator[Spark]:
    """Run a host while the block runs.

    Args:
        folder: An empty folder for keys, homes and models.
        name: The host's name, and that in the client's configuration.
        known: Whether the client's known_hosts has its key; else the file is empty.
    """
    need(shutil.which("ssh") is not None, "ssh is missing (apt-get install openssh-client)")
    need(engine().startswith("unix:"), "the host's engine must be reached by a socket to mount")
    ref = image("spark")
    remove_orphans()
    host = _lay_out(folder, name, known)
    docker_run("run", *_container(host, folder), ref)
    try:
        greets_soon(host.port, host.container)
        yield host
    finally:
        docker_run("rm", "--force", "--volumes", host.container)


def remove_orphans() -> None:
    """Remove the hosts whose test session was killed before it could."""
    shown = '{{.ID}} {{.Label "' + OWNER + '"}}'
    for line in docker_run("ps", "--all", "--filter", f"label={OWNER}", "--format", shown).split(
        "\n"
    ):
        container, _, owner = line.partition(" ")
        pid, _, start = owner.partition("-")
        if container and started(int(pid)) != start:
            docker_run("rm", "--force", "--volumes", container)


def _lay_out(folder: Path, name: str, known: bool) -> Spark:
    host = Spark(
        name=name,
        port=free_port(),
        container=f"bringup-lab-{name}-{uuid.uuid4().hex[:8]}",
        config=folder / "ssh_config",
        identity=folder / "id_ed25519",
        known_hosts=folder / "known_hosts",
        home=folder / "homes" / USER,
        other_home=folder / "homes" / OTHER,
        models=folder / "models",
    )
    for path in (host.home, host.other_home, host.models):
        path.mkdir(parents=True)
    for home in (host.home, host.other_home):
        shutil.copyfile(FOLDER / "spark" / "bashrc", home / ".bashrc")
    if os.getuid() == 0:
        for path, uid in (
            (host.home, _uid()),
            (host.models, _uid()),
            (host.other_home, _uid() + 1),
        ):
            for file in (path, *path.iterdir()):
                os.chown(file, uid, uid)
    for key in (host.identity, folder / "host_key"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(key)]
        subprocess.run(argv, check=True, capture_output=True, timeout=30)
    public = (folder / "host_key.pub").read_text()
    host.known_hosts.write_text(f"[127.0.0.1]:{host.port} {public}" if known else "")
    host.config.write_text(_client_config(host))
    return host


def _client_config(host: Spark) -> str:
    common = [
        "  HostName 127.0.0.1",
        f"  Port {host.port}",
        f"  IdentityFile {host.identity}",
        "  IdentitiesOnly yes",
        f"  UserKnownHostsFile {host.known_hosts}",
        "  GlobalKnownHostsFile /dev/null",
        "  BatchMode yes",
        "  StrictHostKeyChecking yes",
    ]
    lines = [f"Host {host.name}", f"  User {USER}", *common, ""]
    return "\n".join([*lines, f"Host {host.name}-{OTHER}", f"  User {OTHER}", *common, ""])


def _container(host: Spark, folder: Path) -> list[str]:
    """Return the words of ``docker run``, without the image."""
    settings = {
        "LAB_PORT": str(host.port),
        "LAB_UID": str(_uid()),
        "LAB_HOME": str(host.home),
        "LAB_OTHER_HOME": str(host.other_home),
        "LAB_HOST_KEY": (folder / "host_key").read_text().strip(),
        "LAB_PUBLIC_KEY": (folder / "id_ed25519.pub").read_text().strip(),
    }
    mounts = [f"{engine().removeprefix('unix://')}:/var/run/docker.sock"]
    mounts += [f"{path}:{path}" for path in (host.home, host.other_home, host.models)]
    return [
        *("--detach", "--name", host.container, "--hostname", host.name, "--network", "host"),
        *("--label", f"{OWNER}={os.getpid()}-{started(os.getpid())}"),
        *(word for mount in mounts for word in ("--volume", mount)),
        *(word for item in settings.items() for word in ("--env", "=".join(item))),
    ]


def _uid() -> int:
    """Return the number of `USER`; that of the tests' own person, if that is not root."""
    return os.getuid() or 1000


def greets_soon(port: int, container: str) -> None:
    """Wait until a container's sshd greets.

    Raises:
        RuntimeError: it does not, or the container has ended; with its log.
    """
    end = time.monotonic() + UP_S
    while not _greets(port):
        running = docker_run("inspect", "--format", "{{.State.Running}}", container).strip()
        if running != "true" or time.monotonic() > end:
            raise RuntimeError(f"no sshd:\n{docker_run('logs', container)}")
        time.sleep(0.05)


def _greets(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as link:
            return link.recv(4) == b"SSH-"
    except OSError:
        return False


def free_port() -> int:
    """Return a port of loopback on which nothing listens now."""
    with socket.socket() as link:
        link.bind(("127.0.0.1", 0))
        return int(link.getsockname()[1])
