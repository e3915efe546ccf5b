"""Commands in a real LXC container, by ``lxc-attach`` and by ``pct``, from here and over ssh."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.lxc import add_pct, container, lxc
from tests.lab.sshd import server
from tests.ssh_host import connector
from tools.command import Command, Ending, Result
from tools.connectors.base import Connector
from tools.connectors.local import Local
from tools.connectors.lxc import Lxc, Program
from tools.errors import ConnectionFailed

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with container(tmp_path_factory.mktemp("lxc")) as name:
        yield name


@pytest.fixture
def place(guest: str) -> Lxc:
    return Lxc(guest, Local())


def sh(host: Connector, script: str, *words: str, timeout_s: float = 10.0) -> Result:
    return host.run(Command.of("sh", "-c", script, "sh", *words, timeout_s=timeout_s))


def running(name: str) -> str:
    return lxc("attach", name, "--", "ps", "-o", "args").stdout


@pytest.mark.parametrize("by", ["lxc", "pct"])
@pytest.mark.parametrize("far", [False, True], ids=["here", "ssh"])
def test_a_command_in_a_container_is_like_one_on_a_host(
    guest: str, by: Program, far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_pct(tmp_path)
    path = f"{tmp_path}:{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("OF_THE_HOST", "1")
    with server(tmp_path / "sshd", SetEnv=f"SHLVL=2 PATH={path}") as sshd:
        via: Connector = connector(sshd) if far else Local()
        host = Lxc(guest, via, by)
        assert host.name == f"{via.name}/{guest}"
        awkward = ["a b", "'", '"', "$HOME", "`id`", "\\", "", "\n", "é", "-n", "*"]
        result = host.run(Command.of("printf", "[%s]", *awkward))
        assert result.stdout == "".join(f"[{word}]" for word in awkward)
        script = 'cat; pwd; echo "$TOKEN" >&2; cat /etc/where; echo "$OF_THE_HOST"; exit 3'
        argv = ("sh", "-c", script)
        result = host.run(Command.of(*argv, stdin="in\n", cwd="/etc", env={"TOKEN": "a  b\n$c"}))
        assert (result.ending, result.code) == (Ending.EXITED, 3)
        assert (result.stdout, result.stderr) == ("in\n/etc\ninside\n\n", "a  b\n$c\n")
        assert sh(host, 'echo "$HOME $PAGER"; id -u').stdout == "/root cat\n0\n"
        late = sh(host, "sleep 71 & setsid sleep 72 >&- 2>&- & sleep 73", timeout_s=1)
        left = [line for line in running(guest).splitlines() if " 7" in line]
        via.close()
    assert (late.ending, late.code) == (Ending.TIMED_OUT, None)
    assert [it.split(maxsplit=1)[1] for it in late.survivors] == ["sleep 72"], "named, as ours"
    assert left == ["sleep 72"]
    sh(Lxc(guest, Local()), 'kill "$1"', late.survivors[0].split()[0])


def test_bytes_pass_as_they_are(place: Lxc) -> None:
    text = "".join(map(chr, range(256))) * 8000
    result = place.run(Command.of("md5sum", stdin=text))
    assert result.stdout.split()[0] == _md5(text)
    result = sh(
        place,
        r"printf 'caf\351 \342\202'; sleep 0.2; printf '\254'; head -c 9000000 $1",
        "/dev/zero",
    )
    assert result.stdout.startswith("caf\N{REPLACEMENT CHARACTER} €\0\0")
    assert result.stdout_omitted > 8_000_000
    told: list[tuple[str, str]] = []
    place.run(Command.of("sh", "-c", "echo a; sleep 0.2; echo b >&2"), lambda *it: told.append(it))
    assert told == [("stdout", "a\n"), ("stderr", "b\n")], "and nothing of ours"


def _md5(text: str) -> str:
    done = subprocess.run(["md5sum"], input=text.encode(), capture_output=True, check=True)
    return done.stdout.split()[0].decode()


def test_standard_input_is_closed(place: Lxc) -> None:
    result = place.run(Command.of("cat", timeout_s=5))
    assert (result.ending, result.stdout) == (Ending.EXITED, "")


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (("nonsense",), 127, "nonsense"),
        (("/etc",), 126, "/etc"),
        (("echo", "a\0b"), 126, "null byte"),
        (("echo", "\udcff"), 126, "cannot be started"),
        (("sh", "-c", "echo Failed to get init pid >&2; exit 1"), 1, "Failed to get init pid"),
        (("sh", "-c", "kill -9 $$"), 137, ""),
    ],
)
def test_an_exit_code_is_the_commands_own(
    place: Lxc, argv: tuple[str, ...], code: int, words: str
) -> None:
    result = place.run(Command.of(*argv))
    assert (result.ending, result.code) == (Ending.EXITED, code)
    assert words in result.stderr


def test_what_ignores_sigterm_is_ended(place: Lxc, guest: str) -> None:
    late = sh(place, "trap '' TERM; (sleep 81 &); sleep 82; sleep 83", timeout_s=1)
    assert (late.ending, late.survivors) == (Ending.TIMED_OUT, ())
    assert "sleep 8" not in running(guest)
    assert late.duration_s < 8


def test_a_background_child_does_not_hold_the_call(place: Lxc, guest: str) -> None:
    result = sh(place, "sleep 91 & echo $!")
    assert (result.code, result.duration_s < 5) == (0, True)
    assert any("sleep 91" in it for it in result.survivors)
    assert "sleep 91" in running(guest)
    sh(place, 'kill "$1"', result.stdout.strip())


def test_a_container_without_setsid(tmp_path: Path) -> None:
    with container(tmp_path) as name:
        (tmp_path / "root/bin/setsid").unlink()
        late = sh(Lxc(name, Local()), "sleep 61 & sleep 62", timeout_s=1)
        assert (late.ending, late.survivors) == (Ending.TIMED_OUT, ())
        assert "sleep 6" not in running(name)


def test_ctrl_c_ends_the_command_inside(guest: str) -> None:
    program = f"""
from tools.command import Command
from tools.connectors.local import Local
from tools.connectors.lxc import Lxc
try:
    Lxc({guest!r}, Local()).run(Command.of("sh", "-c", "echo go; sleep 51 & sleep 52"),
        lambda stream, text: print(text, end="", flush=True))
except KeyboardInterrupt:
    print("interrupted")
"""
    argv = [sys.executable, "-c", program]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "go\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
    assert "sleep 5" not in running(guest)


def test_why_a_container_is_not_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_pct(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def reason(host: Lxc) -> str:
        with pytest.raises(ConnectionFailed) as caught:
            host.run(Command.of("true"))
        assert caught.value.target == host.name
        return caught.value.reason

    with container(tmp_path / "guest") as name:
        plain, pct = Lxc(name, Local()), Lxc(name, Local(), "pct")
        as_nobody(tmp_path, "lxc-attach")
        assert "may not enter the container; log in to local as root" in reason(plain)
        (tmp_path / "lxc-attach").unlink()
        (tmp_path / "guest/root/bin/env").unlink()
        assert "has no `env` and `sh`" in reason(plain)
        lxc("stop", name, "-k")
        assert f"not running; `lxc-start {name}` starts it: lxc-attach: " in reason(plain)
        assert f"not running; `pct start {name}` starts it" in reason(pct)
    assert f"there is no container {name} on local" in reason(plain)
    assert f"there is no container {name} on local" in reason(pct)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert "`lxc-attach` cannot be used on local; is it a host of LXC?" in reason(plain)


def as_nobody(folder: Path, program: str) -> None:
    """Let a program run as a user who may nothing."""
    line = f"exec setpriv --reuid=65534 --regid=65534 --clear-groups {shutil.which(program)}"
    (folder / program).write_text(f'#!/bin/sh\n{line} "$@"\n')
    (folder / program).chmod(0o755)


def test_a_frozen_container_is_no_exit_code(place: Lxc, guest: str) -> None:
    timer = threading.Timer(3, lxc, ["unfreeze", guest])
    lxc("freeze", guest)
    timer.start()
    begun = time.monotonic()
    assert sh(place, "echo late", timeout_s=20).stdout == "late\n", "it waits for the container"
    timer.join()
    assert time.monotonic() - begun < 15


def test_a_container_that_stays_frozen(
    place: Lxc, guest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.connectors.lxc.LATE_S", 0.5)
    lxc("freeze", guest)
    result = sh(place, "true", timeout_s=0.5)
    lxc("unfreeze", guest)
    assert (result.ending, result.code) == (Ending.LOST, None)
    assert "is it frozen?" in result.stderr


def test_a_stream_of_bytes(place: Lxc) -> None:
    stream = place.open_stream(("cat",))
    view = memoryview(bytes(range(256)))
    got = b""
    while view:
        view = view[stream.write(view, 5) :]
    stream.end_input()
    while piece := stream.read(5):
        got += piece
    stream.close()
    assert got == bytes(range(256))


def test_a_container_that_stops_meanwhile_is_lost(tmp_path: Path) -> None:
    with container(tmp_path) as name:
        timer = threading.Timer(1, lxc, ["stop", name, "-k"])
        timer.start()
        result = sh(Lxc(name, Local()), "echo begun; sleep 60", timeout_s=20)
        timer.join()
    assert (result.ending, result.code, result.stdout) == (Ending.LOST, None, "begun\n")
    assert "the container has stopped while it ran" in result.stderr


def test_the_host_s_key_is_asked_for_and_the_home_is_that_inside(
    guest: str, tmp_path: Path
) -> None:
    connect = Command.of("connect", via="connection")
    with server(tmp_path) as sshd:
        place = Lxc(guest, connector(sshd))
        seen = json.loads(place.run(connect).stdout)
        assert (seen["kind"], seen["host_key"], seen["home"]) == ("ssh", "known", "/root")
        place.close()
        sshd.known_hosts.unlink()
        seen = json.loads(place.run(connect).stdout)
        assert (seen["host_key"], seen["home"], seen["shell_ok"]) == ("unknown", "", False)
        trust = Command.of("trust-host-key", sshd.fingerprint(), via="connection")
        assert place.run(trust).ok
        assert sh(place, "cat /etc/where").stdout == "inside\n"
        place.close()


def test_the_engine_and_the_connection(place: Lxc) -> None:
    refused = place.run(Command.of("docker", "pull", "a", via="engine"))
    assert (refused.code, "not possible in a container" in refused.stderr) == (126, True)
    answer = json.loads(place.run(Command.of("connect", via="connection")).stdout)
    assert answer == {"kind": "local", "home": "/root", "shell_ok": True}
    wrong = place.run(Command.of("reboot", via="connection"))
    assert wrong.code == 2
