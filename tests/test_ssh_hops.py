"""Several hosts on the way to another one: each a real sshd with a key of its own."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.sshd import Sshd, server
from tests.ssh_host import connector, sh
from tools.command import Command, Ending
from tools.connectors.ssh import Ssh
from tools.connectors.ssh_key_files import Keyring
from tools.errors import ConnectionFailed

pytestmark = pytest.mark.lab


@dataclass
class Route:
    """``inner`` is reached by way of ``first``, then ``second``; only ``inner`` runs commands."""

    first: Sshd
    second: Sshd
    inner: Sshd

    @property
    def servers(self) -> dict[str, Sshd]:
        return {"first": self.first, "second": self.second, "inner": self.inner}

    def configure(self, **jumps: str) -> None:
        """Write the client's configuration: what stands in ``ProxyJump`` of each host."""
        lines = []
        for name, sshd in self.servers.items():
            lines += [f"Host {name}", "HostName 127.0.0.1", f"Port {sshd.port}"]
            lines += [f"ProxyJump {jumps[name]}"] if name in jumps else []
        lines += ["Host *", f"IdentityFile {self.inner.key}", "GlobalKnownHostsFile /dev/null"]
        lines += [f"UserKnownHostsFile {self.inner.known_hosts}"]
        self.inner.config.write_text("\n".join(lines) + "\n")

    def logins(self) -> tuple[int, ...]:
        return tuple(sshd.logins() for sshd in self.servers.values())


@pytest.fixture
def route(tmp_path: Path) -> Iterator[Route]:
    nothing = {"ForceCommand": "/bin/false"}
    with (
        server(tmp_path / "first", **nothing) as first,
        server(tmp_path / "second", **nothing) as second,
        server(tmp_path / "inner", AllowTcpForwarding="no") as inner,
    ):
        made = Route(first, second, inner)
        for sshd in (first, second):
            shutil.copy(f"{inner.key}.pub", sshd.folder / "authorized_keys")
        inner.known_hosts.write_text(
            "".join(f"[127.0.0.1]:{it.port} {it.host_key()}\n" for it in made.servers.values())
        )
        yield made


@pytest.fixture
def host(route: Route) -> Iterator[Ssh]:
    route.configure(inner="first,second")
    made = connector(route.inner, "inner")
    yield made
    made.close()


@pytest.mark.parametrize(
    "jumps",
    [{"inner": "first,second"}, {"inner": "second", "second": "first"}],
    ids=["a list", "one by one"],
)
def test_two_hosts_on_the_way(route: Route, jumps: dict[str, str]) -> None:
    route.configure(**jumps)
    host = connector(route.inner, "inner")
    for number in range(3):
        assert sh(host, "echo $1", str(number)).stdout == f"{number}\n"
    result = host.run(Command.of("head", "-c", "3000000", "/dev/zero"))
    assert result.stdout_omitted > 2_000_000
    late = sh(host, "sleep 60 & wait", timeout_s=0.5)
    assert (late.ending, late.survivors) == (Ending.TIMED_OUT, ())
    assert route.logins() == (1, 1, 1), "one connection to each"
    host.close()


def test_a_host_on_the_way_that_is_not_known_is_not_entered(route: Route, host: Ssh) -> None:
    lines = route.inner.known_hosts.read_text().splitlines(keepends=True)
    route.inner.known_hosts.write_text("".join(lines[::2]))
    with pytest.raises(ConnectionFailed) as caught:
        sh(host, "true")
    assert "by way of second: the host key of 127.0.0.1" in str(caught.value)
    assert route.logins() == (1, 0, 0)


def test_a_host_on_the_way_that_does_not_pass_on(route: Route, host: Ssh) -> None:
    route.inner.stop()
    with pytest.raises(ConnectionFailed, match=r"cannot connect to 127.0.0.1 .*Connect failed"):
        sh(host, "true", timeout_s=2)
    route.second.stop()
    with pytest.raises(ConnectionFailed, match=r"^spark: by way of second: cannot connect to "):
        sh(host, "true", timeout_s=2)


def test_a_lost_host_on_the_way_is_reached_anew(route: Route, host: Ssh) -> None:
    told: list[str] = []
    assert sh(host, "true").ok
    for sshd in (route.first, route.second):
        sshd.signal(9)
        time.sleep(0.5)  # until the others have passed it on
        result = host.run(Command.of("echo", "in"), lambda _, text: told.append(text))
        assert result.stdout == "in\n"
    assert "connection was lost" in told[0]
    assert route.logins() == (2, 3, 3)


def test_a_command_under_way_is_lost_with_any_of_them(route: Route, host: Ssh) -> None:
    assert sh(host, "true").ok
    timer = threading.Timer(0.5, route.first.signal, [9])
    timer.start()
    result = sh(host, "echo begun; exec sleep 3")
    timer.join()
    assert (result.ending, result.code, result.stdout) == (Ending.LOST, None, "begun\n")


def test_one_passphrase_for_all_of_them(route: Route) -> None:
    words = ["ssh-keygen", "-q", "-p", "-N", "some words", "-f", str(route.inner.key)]
    subprocess.run(words, check=True, capture_output=True)
    route.configure(inner="first,second")
    asked: list[str] = []

    def person(path: str, again: bool) -> str:
        asked.append(path)
        return "some words"

    host = connector(route.inner, "inner", keyring=Keyring(person))
    assert sh(host, "echo in").stdout == "in\n"
    host.close()
    assert asked == [str(route.inner.key)]
