"""A bare Debian machine to reach by ssh, as a container: what runs need is not there yet."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.lab.engine import docker_run, started
from tests.lab.images import image
from tests.lab.spark import OWNER, free_port, greets_soon, remove_orphans

USERS = ("worker", "typist", "guest")
"""Sudo without a password, with one, and not at all."""
INSTALLED = (
    "dpkg-query -W -f '${db:Status-Status} ${binary:Package} ${Version}\\n' | grep ^installed"
)


@dataclass(frozen=True)
class Bare:
    """A running machine; ``config`` has a host of each user's name."""

    container: str
    port: int
    config: Path

    def root(self, script: str) -> str:
        """Run a line of shell there as root, and return what it prints."""
        return docker_run("exec", self.container, "sh", "-c", script)

    def packages(self) -> list[str]:
        """All packages that are installed now."""
        return self.root(INSTALLED).splitlines()


CAPABILITIES = ("SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE", "SYS_MODULE", "SYSLOG", "MKNOD")
"""What a Docker daemon needs besides what a container has."""


def _able(port: int) -> list[str]:
    """Return the words of ``docker run`` for a machine on which a Docker daemon can run."""
    words = ["--publish", f"127.0.0.1:{port}:{port}"]
    words += [f"--cap-add={name}" for name in CAPABILITIES]
    words += ["--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined"]
    return [*words, "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw", "--volume=/var/lib/docker"]


@contextmanager
def bare(folder: Path, *, able: bool = False) -> Iterator[Bare]:
    """Run a machine while the block runs.

    Args:
        folder: empty, for keys and configuration.
        able: whether a Docker daemon can run on it, with a network of its own.
    """
    ref = image("bare-host")
    remove_orphans()
    port = free_port()
    host = Bare(f"bringup-lab-bare-{uuid.uuid4().hex[:8]}", port, folder / "ssh_config")
    for key in ("id_ed25519", "host_key"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(argv, check=True, capture_output=True, timeout=30)
    public = (folder / "host_key.pub").read_text()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {public}")
    host.config.write_text("".join(_client(user, port, folder) for user in USERS))
    settings = {
        "LAB_PORT": str(port),
        "LAB_LISTEN": "0.0.0.0" if able else "127.0.0.1",  # noqa: S104
        "LAB_HOST_KEY": (folder / "host_key").read_text().strip(),
        "LAB_PUBLIC_KEY": (folder / "id_ed25519.pub").read_text().strip(),
    }
    docker_run(
        *("run", "--detach", "--init", "--name", host.container, "--hostname", "bare"),
        *("--label", f"{OWNER}={os.getpid()}-{started(os.getpid())}"),
        *(_able(port) if able else ["--network", "host"]),
        *(word for item in settings.items() for word in ("--env", "=".join(item))),
        ref,
    )
    try:
        greets_soon(port, host.container)
        yield host
    finally:
        docker_run("rm", "--force", "--volumes", host.container)


def _client(user: str, port: int, folder: Path) -> str:
    lines = [
        f"Host {user}",
        f"  User {user}",
        "  HostName 127.0.0.1",
        f"  Port {port}",
        f"  IdentityFile {folder / 'id_ed25519'}",
        "  IdentitiesOnly yes",
        f"  UserKnownHostsFile {folder / 'known_hosts'}",
        "  GlobalKnownHostsFile /dev/null",
        "  StrictHostKeyChecking yes",
        "",
    ]
    return "\n".join(lines)
