"""Short ways to use the ssh connector on a lab's server, for tests."""

from __future__ import annotations

import os
import pwd
import time
from pathlib import Path

import pytest

from tests.lab.sshd import Sshd
from tools.command import Command, Result
from tools.connectors.ssh import Ssh
from tools.errors import ConnectionFailed

ME = pwd.getpwuid(os.getuid()).pw_name


def connector(sshd: Sshd, address: str = "spark", alive_s: float | None = None) -> Ssh:
    """A connector whose only configuration is the server's own."""
    return Ssh(address, name="spark", config_file=str(sshd.config), alive_s=alive_s)


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
