"""Short ways to use the ssh connector on a lab's server, for tests."""

from __future__ import annotations

import os
import pwd
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.sshd import Sshd
from tools.command import Command, Result
from tools.connectors.ssh import Ssh
from tools.connectors.ssh_key_files import Keyring
from tools.errors import ConnectionFailed

ME = pwd.getpwuid(os.getuid()).pw_name


def connector(
    sshd: Sshd,
    address: str = "spark",
    alive_s: float | None = None,
    keyring: Keyring | None = None,
) -> Ssh:
    """A connector whose only configuration is the server's own."""
    file = str(sshd.config)
    return Ssh(address, name="spark", config_file=file, alive_s=alive_s, keyring=keyring)


@contextmanager
def agent_at(path: Path) -> Iterator[str]:
    """Run an ssh-agent that holds nothing; yields its socket."""
    words = ["ssh-agent", "-D", "-a", str(path)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
        try:
            while not path.exists():
                assert process.poll() is None
                time.sleep(0.01)
            yield str(path)
        finally:
            process.terminate()


def sh(host: Ssh, script: str, *words: str, timeout_s: float = 10.0) -> Result:
    return host.run(Command.of("sh", "-c", script, "sh", *words, timeout_s=timeout_s))


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def failure(sshd: Sshd, address: str = "spark") -> str:
    host = connector(sshd, address)
    begun = time.monotonic()
    with pytest.raises(ConnectionFailed) as caught:
        sh(host, "true")
    host.close()
    assert time.monotonic() - begun < 8
    assert caught.value.target == "spark"
    return str(caught.value)
