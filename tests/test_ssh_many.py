"""Many commands on many hosts: each gets its own answer, and nothing is left over."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docker_host import container, use_engine
from tests.lab.sshd import Sshd, server
from tests.ssh_host import connector
from tools.command import Command, Result
from tools.connectors.base import Connector
from tools.connectors.docker import Docker
from tools.connectors.local import Local

pytestmark = pytest.mark.lab
SETTINGS = (
    {"Banner": "/etc/hostname"},
    {"MaxSessions": "2"},
    {"ForceCommand": 'echo noise; exec sh -c "$SSH_ORIGINAL_COMMAND"'},
    {"Ciphers": "aes256-ctr", "MACs": "hmac-sha2-256"},
)
"""What the hosts have of their own."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Sshd]]:
    with ExitStack() as stack:
        made = []
        for number, options in enumerate(SETTINGS):
            folder = tmp_path_factory.mktemp(f"host{number}")
            kind = ("ed25519", "ecdsa", "rsa")[number % 3]
            sshd = stack.enter_context(
                server(folder, kind, SetEnv=f"SHLVL=2 N={number}", **options)
            )
            sshd.configure(f"ServerAliveInterval {number + 1}\nConnectTimeout {number + 3}")
            made.append(sshd)
        yield made


def test_hosts_at_once_have_each_their_own_settings_and_answers(fleet: list[Sshd]) -> None:
    hosts = [connector(sshd) for sshd in fleet]
    told: dict[tuple[int, int], list[str]] = {}

    def one(place: tuple[int, int]) -> Result:
        number, turn = place
        lines = told[place] = []
        script = 'read word; echo "$N $1 $TURN $word $PWD"; echo "$1" >&2; exit $1'
        command = Command(
            ("sh", "-c", script, "sh", str(turn)),
            f"word-{number}-{turn}\n",
            {"TURN": f"t{turn}"},
            ("/usr", "/etc", "/tmp", "/")[number],  # noqa: S108 - a folder that all hosts have
            timeout_s=30,
        )
        return hosts[number].run(command, lambda stream, text: lines.append(f"{stream} {text}"))

    places = [(number, turn) for turn in range(20) for number in range(len(hosts))]
    with ThreadPoolExecutor(len(places)) as pool:
        results = dict(zip(places, pool.map(one, places), strict=True))
    for host in hosts:
        host.close()
    for (number, turn), result in results.items():
        folder = ("/usr", "/etc", "/tmp", "/")[number]  # noqa: S108 - as above
        line = f"{number} {turn} t{turn} word-{number}-{turn} {folder}\n"
        assert (result.code, result.stdout, result.stderr) == (turn, line, f"{turn}\n")
        assert sorted(told[number, turn]) == [f"stderr {turn}\n", f"stdout {line}"]
    assert [sshd.logins() for sshd in fleet] == [1] * len(fleet)


def held() -> tuple[int, int]:
    """How many descriptors and threads this process has."""
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def constant(times: int, ask: Callable[[], object], spare: int = 0) -> None:
    """Ask a few times, then often: nothing may have grown."""
    for _ in range(10):
        ask()
    before = held()
    for _ in range(times):
        ask()
    deadline = time.monotonic() + 5  # threads of closed connections end by and by
    while held() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    files, threads = held()
    assert files <= before[0] + spare
    assert threads <= before[1]


def test_500_commands_over_ssh_hold_nothing(fleet: list[Sshd]) -> None:
    host = connector(fleet[0])

    def ask() -> None:
        assert host.run(Command.of("true")).ok

    constant(500, ask, spare=2)  # channels that are opened ahead have one each
    host.close()


def test_connections_that_are_opened_and_closed_hold_nothing(fleet: list[Sshd]) -> None:
    def ask() -> None:
        host = connector(fleet[3])
        assert host.run(Command.of("true")).ok
        host.close()

    constant(20, ask)


@pytest.mark.parametrize("far", [False, True], ids=["here", "ssh"])
def test_commands_in_a_container_and_its_engine_hold_nothing(
    fleet: list[Sshd], far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_engine(monkeypatch)
    address = os.environ["DOCKER_HOST"]
    fleet[1].stop()
    fleet[1].start("ecdsa", SetEnv=f"SHLVL=2 N=1 DOCKER_HOST={address}", MaxSessions="10")
    via: Connector = connector(fleet[1]) if far else Local()
    pull = Command.of("docker", "pull", "127.0.0.1:9/none:1", via="engine", timeout_s=10)
    with container("sleep", "600") as name:
        inside = Docker(name, via)
        constant(25, lambda: inside.run(Command.of("true")), spare=2)
    constant(50, lambda: via.run(pull), spare=2)
    via.close()
