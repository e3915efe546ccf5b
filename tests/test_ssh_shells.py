"""Whatever login shell a host has, and whatever it prints."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.lab.sshd import server
from tests.ssh_host import connector, is_alive, sh
from tools.command import Command, Ending
from tools.connectors import ssh_start
from tools.errors import ConnectionFailed
from tools.script import script_text

pytestmark = pytest.mark.lab


def present(*shells: str) -> list[str]:
    """Those of the shells that are installed here; nobody needs all of them."""
    return [shell for shell in shells if shutil.which(shell.split()[0])]


def test_noise_is_no_output(tmp_path: Path) -> None:
    (tmp_path / "banner").write_text("AUTHORIZED USERS ONLY\n")
    noisy = tmp_path / "noisy"
    noisy.write_text(
        '#!/bin/sh\necho "Welcome!"; printf "no line break"; echo "warning" >&2\n'
        'exec sh -c "$SSH_ORIGINAL_COMMAND"\n'
    )
    noisy.chmod(0o755)
    options = {"Banner": str(tmp_path / "banner"), "ForceCommand": str(noisy)}
    with server(tmp_path / "sshd", **options) as sshd:
        host = connector(sshd)
        told: list[str] = []
        result = host.run(
            Command.of("sh", "-c", "echo a; echo b >&2"), lambda _, text: told.append(text)
        )
        channel = host.open_channel(("echo", "raw"), 5)
        raw = channel.recv(100)
        host.close()
    assert (result.stdout, result.stderr) == ("a\n", "b\n")
    assert sorted(told) == ["a\n", "b\n"]
    assert raw == b"raw\n"


def test_a_login_shell_that_starts_nothing(tmp_path: Path) -> None:
    with server(tmp_path, ForceCommand="echo this account is closed; exit 0") as sshd:
        host = connector(sshd)
        with pytest.raises(ConnectionFailed, match=r"starts?.*exit 0.*this account is closed"):
            host.run(Command.of("true"))
        with pytest.raises(ConnectionFailed, match="cannot start `docker`"):
            host.open_channel(("docker", "system", "dial-stdio"), 5)
        seen = host.run(Command.of("connect", via="connection"))
        host.close()
    assert '"shell_ok": false' in seen.stdout
    assert '"home": ""' in seen.stdout


@pytest.mark.parametrize(
    "shell", present("dash", "bash", "tcsh -f", "fish", "zsh -f", "busybox sh")
)
def test_any_login_shell_will_do(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell.split()[0])
    line = f'exec {program} {shell.partition(" ")[2]} -c "$SSH_ORIGINAL_COMMAND"'
    with server(tmp_path, ForceCommand=line) as sshd:
        host = connector(sshd)
        awkward = ["a b", "'", "\\", "\\\\", "!!", "$x", "\n", "é"]
        result = host.run(Command.of("printf", "[%s]", *awkward, env={"A": "'\\!"}))
        bare = host.run(Command.of("printf", "[%s]", *awkward))
        plain = host.run(Command.of("printf", "%s.", 'a "$HOME" `id`;&|<>(){}*?[#~^', "", cwd="/"))
        lost = host.run(Command.of("true", cwd="/no/such place"))
        slow = sh(host, "sleep 60 & echo $!; wait", timeout_s=0.5)
        host.close()
    assert result.stdout == bare.stdout == "".join(f"[{word}]" for word in awkward)
    assert plain.stdout == 'a "$HOME" `id`;&|<>(){}*?[#~^..'
    assert lost.code == 126
    assert lost.stderr.endswith("\n/no/such place: cannot be used as working folder\n")
    assert slow.ending is Ending.TIMED_OUT
    assert not is_alive(int(slow.stdout))


@pytest.mark.parametrize("shell", present("sh", "dash", "bash", "busybox sh"))
def test_the_line_is_read_alike_by_every_sh(shell: str) -> None:
    """What the login shell starts as ``sh`` may be any of these."""
    words = ["a b", "'", "\n\n", "".join(chr(code) for code in range(1, 256)), "Ё"]
    command = Command.of("printf", "[%s]", *words, env={"A": "b\n"}, cwd="/usr")
    line = ssh_start.start_line(command, "marker")
    read = 'read -r bringup_line && eval "$bringup_line"'
    ran = subprocess.run([*shell.split(), "-c", read], input=line, capture_output=True)
    assert ran.stdout.partition(b"\n")[2].decode() == "".join(f"[{word}]" for word in words)
    cut = subprocess.run([*shell.split(), "-c", read], input=line[:-1], capture_output=True)
    assert (cut.stdout, cut.returncode) == (b"", 1), "a line that is cut short is not run"


def test_a_login_shell_that_stays(tmp_path: Path) -> None:
    """The command then leads no group; what belongs to it is ended all the same, and only that."""
    line = 'sleep 60 & echo $!; sh -c "$SSH_ORIGINAL_COMMAND"; code=$?; kill $!; exit $code'
    with server(tmp_path, ForceCommand=line) as sshd:
        host = connector(sshd)
        assert sh(host, "exit 3").code == 3
        result = sh(host, "sleep 60 & echo $!; (sleep 60; :)", timeout_s=0.5)
        host.close()
    assert result.ending is Ending.TIMED_OUT
    assert not is_alive(int(result.stdout))
    assert result.survivors == ()


@pytest.mark.parametrize("shell", present("sh", "dash", "bash", "busybox sh"))
def test_every_sh_can_end_a_group(shell: str) -> None:
    script = (
        "trap '' TERM; setsid sh -c 'echo; exec sleep 61' & sleep 60 & echo $!; "
        "while :; do sleep 0.1; done"
    )
    with subprocess.Popen(
        ["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        child = int((process.stdout.readline() + process.stdout.readline()).strip())
        words = [*shell.split(), "-s", "--", str(process.pid), "end"]
        ran = subprocess.run(words, input=script_text("end_command").encode(), capture_output=True)
        assert process.wait(5) == -9
    pid, command = ran.stdout.decode().split(maxsplit=1)
    os.kill(int(pid), signal.SIGKILL)
    assert command.strip() == "sleep 61"
    assert (ran.stderr, ran.returncode) == (b"", 0)
    assert not is_alive(child)
