"""Start-up files of the account that read, replace the shell, or never end: a real bash reads them.

bash reads ``.bashrc`` for a command over ssh, unless it runs below another shell (``SHLVL``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.sshd import Sshd, server
from tests.ssh_host import connector, sh
from tools.command import Command, Ending
from tools.errors import ConnectionFailed

pytestmark = pytest.mark.lab
Write = Callable[[str], Sshd]


@pytest.fixture
def with_file(tmp_path: Path) -> Iterator[Write]:
    """Writes the account's ``.bashrc``, and returns its server."""
    line = f'HOME={tmp_path} SHLVL=0 exec bash -c "$SSH_ORIGINAL_COMMAND"'

    with server(tmp_path / "sshd", ForceCommand=line) as sshd:

        def write(text: str) -> Sshd:
            (tmp_path / ".bashrc").write_text(f"touch {tmp_path}/read\n{text}\n")
            return sshd

        yield write
        assert (tmp_path / "read").exists(), "bash has not read it: this shows nothing"


@pytest.mark.parametrize("text", ["echo hello; echo >&2", "export A=1; false", "cd /usr; set -u"])
def test_what_does_no_harm(with_file: Write, text: str) -> None:
    host = connector(with_file(text))
    result = host.run(Command.of("sh", "-c", "cat; exit 3", stdin="in"))
    host.close()
    assert (result.code, result.stdout, result.stderr) == (3, "in", "")


def test_a_file_that_reads_takes_nothing_from_a_bare_command(with_file: Write) -> None:
    host = connector(with_file("read answer"))
    begun = time.monotonic()
    assert sh(host, "echo in").stdout == "in\n"
    with pytest.raises(ConnectionFailed, match="login shell there ends without starting anything"):
        host.run(Command.of("cat", stdin="one line\n", timeout_s=5))
    host.close()
    assert time.monotonic() - begun < 8


@pytest.mark.parametrize("text", ["exec cat", "exit 0", "exec /no/such/zsh"])
def test_a_file_that_ends_the_shell(with_file: Write, text: str) -> None:
    host = connector(with_file(text))
    begun = time.monotonic()
    with pytest.raises(ConnectionFailed, match="login shell there ends without starting anything"):
        sh(host, "true")
    host.close()
    assert time.monotonic() - begun < 8


def test_a_file_that_never_ends(with_file: Write) -> None:
    host = connector(with_file("echo wait; exec sleep 9"))
    result = sh(host, "true", timeout_s=1)
    host.close()
    assert (result.ending, result.code) == (Ending.LOST, None)
    assert result.duration_s < 8
    assert "login shell has not started it" in result.stderr
