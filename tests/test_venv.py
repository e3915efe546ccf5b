"""Commands in a real virtual environment, here, over ssh and in a container."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker_host import container, use_engine
from tests.lab.sshd import server
from tests.ssh_host import connector
from tools.command import Command, Ending
from tools.connectors.base import Connector
from tools.connectors.docker import Docker
from tools.connectors.local import Local
from tools.connectors.venv import Venv
from tools.errors import ConnectionFailed

LOOK = 'echo "$VIRTUAL_ENV ${PYTHONHOME-unset}"; command -v python; pwd; cat; exit 3'
PREFIX = Command.of("python", "-c", "import sys; print(sys.prefix, sys.base_prefix == sys.prefix)")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "an env"
    argv = [sys.executable, "-m", "venv", "--without-pip", str(made)]
    subprocess.run(argv, check=True, env={})
    return made


@pytest.fixture(params=["here", pytest.param("ssh", marks=pytest.mark.lab)])
def via(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Connector]:
    monkeypatch.setenv("PYTHONHOME", "/nonexistent")
    if request.param == "here":
        yield Local()
        return
    with server(tmp_path / "sshd", SetEnv="SHLVL=2 PYTHONHOME=/nonexistent") as sshd:
        host = connector(sshd)
        yield host
        host.close()


def test_the_environment_is_active(via: Connector, folder: Path) -> None:
    place = Venv(str(folder), via)
    assert place.name == f"{via.name}:{folder}"
    awkward = ["a b", "'", '"', "$HOME", "\\", "", "\n", "é", "-n", "*"]
    assert place.run(Command.of("printf", "[%s]", *awkward)).stdout == "".join(
        f"[{word}]" for word in awkward
    )
    result = place.run(Command.of("sh", "-c", LOOK, stdin="in", cwd="/usr"))
    expected = f"{folder} unset\n{folder}/bin/python\n/usr\nin"
    assert (result.code, result.stdout) == (3, expected)
    assert place.run(PREFIX).stdout == f"{folder} False\n"
    own = {"PATH": "/usr/bin:/bin", "VIRTUAL_ENV": "/other", "A": "b c"}
    result = place.run(Command.of("sh", "-c", 'echo "$PATH $VIRTUAL_ENV $A"', env=own))
    assert result.stdout == f"{folder}/bin:/usr/bin:/bin {folder} b c\n"
    assert place.run(Command.of("no-such-program")).code == 127
    late = place.run(Command.of("sleep", "60", timeout_s=0.5))
    assert (late.ending, late.duration_s < 6) == (Ending.TIMED_OUT, True)
    connect = Command.of("connect", via="connection")
    assert place.run(connect).stdout == via.run(connect).stdout


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("rm -r .", "there is no such folder"),
        ("rm bin/python && ln -s /no/python3.9 bin/python", "its Python is gone"),
        ("rm bin/python", "no bin/python that can be run"),
        ("rm pyvenv.cfg", "it has no pyvenv.cfg"),
    ],
)
def test_an_environment_that_is_none(via: Connector, folder: Path, harm: str, words: str) -> None:
    if harm == "rm -r .":
        shutil.rmtree(folder)
    else:
        subprocess.run(["sh", "-c", harm], cwd=folder, check=True)
    place = Venv(str(folder), via)
    for command in (Command.of("true"), Command.of("connect", via="connection")):
        with pytest.raises(ConnectionFailed) as caught:
            place.run(command)
        assert words in caught.value.reason
        assert caught.value.target == f"{via.name}:{folder}"


def test_a_python_that_does_not_run_is_seen_when_it_is_connected_to(folder: Path) -> None:
    (folder / "bin/python").unlink()
    (folder / "bin/python").write_text("#!/bin/sh\necho no libpython here >&2; exit 127\n")
    (folder / "bin/python").chmod(0o755)
    place = Venv(str(folder), Local())
    assert place.run(Command.of("true")).ok, "a command that needs no Python"
    with pytest.raises(ConnectionFailed, match=r"does not run \(exit 127\): no libpython here"):
        place.run(Command.of("connect", via="connection"))


def test_a_refusal_is_not_taken_from_a_command(folder: Path) -> None:
    script = "echo bringup-0123456789abcdef there is no such folder >&2; exit 126"
    result = Venv(str(folder), Local()).run(Command.of("sh", "-c", script))
    assert (result.ending, result.code) == (Ending.EXITED, 126)


@pytest.mark.lab
def test_an_environment_in_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    use_engine(monkeypatch)
    make = "python3 -m venv --without-pip /env 2>/dev/null || python3 -m virtualenv /env"
    with container("sleep", "600") as name:
        inside = Docker(name, Local())
        made = inside.run(Command.of("sh", "-c", make, timeout_s=60))
        assert made.ok, made.tail
        place = Venv("/env", inside)
        assert place.name == f"local/{name}:/env"
        assert place.run(PREFIX).stdout == "/env False\n"
        assert place.run(Command.of("connect", via="connection")).ok
        with pytest.raises(ConnectionFailed, match="no such folder"):
            Venv("/other", inside).run(Command.of("true"))
        begun = time.monotonic()
        late = place.run(Command.of("sleep", "60", timeout_s=1))
        assert (late.ending, time.monotonic() - begun < 10) == (Ending.TIMED_OUT, True)
