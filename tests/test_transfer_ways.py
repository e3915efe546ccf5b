"""Directly from one host to another: who may connect, what is proved, and what happens else."""

from __future__ import annotations

import importlib
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lab.sshd import server
from tests.ssh_host import connector
from tests.transfer_desk import at, big_file, copied, coreutils, odd_tree, seen, wait_for
from tools.connectors.local import Local
from tools.connectors.ssh import Ssh
from tools.connectors.streams import Pipes
from tools.errors import ToolFailed
from tools.transfer_side import Place, Side
from tools.transfer_ways import private

LINES: Any = importlib.import_module("tools.probes.transfer_lines")
TOKEN = bytes(range(32))


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Ssh, Ssh]]:
    with server(tmp_path / "one") as one, server(tmp_path / "other") as other:
        pair = connector(one), connector(other)
        yield pair
        for host in pair:
            host.close()


@pytest.mark.parametrize("address", ["", "127.0.0.1"])
def test_a_folder_goes_from_host_to_host(
    tmp_path: Path, hosts: tuple[Ssh, Ssh], address: str
) -> None:
    tree = odd_tree(tmp_path / "from")
    big_file(tree / "weights", 5)
    done = copied(at(hosts[0], tree), at(hosts[1], tmp_path / "to"), direct=address)
    assert seen(tmp_path / "to") == seen(tree)
    assert done.route == ("direct, not encrypted, to 127.0.0.1" if address else "relayed")
    assert done.sent_bytes == done.bytes


def test_a_host_that_cannot_be_reached_is_reached_through_us(
    tmp_path: Path, hosts: tuple[Ssh, Ssh]
) -> None:
    (tmp_path / "data").write_text("data")
    told: list[str] = []
    # An address of documentation, which no machine has: it cannot be listened on.
    done = copied(
        at(hosts[0], tmp_path / "data"),
        at(hosts[1], tmp_path / "copy"),
        tell=told.append,
        direct="192.0.2.7",
    )
    assert (tmp_path / "copy").read_text() == "data"
    assert (done.route, done.is_new) == ("relayed", True)
    assert "not directly" in done.why
    assert "through this machine instead" in told[0]


def test_a_host_without_python_is_reached_through_us(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("data")
    few = coreutils(tmp_path / "programs")
    done = copied(at(few, tmp_path / "data"), at(few, tmp_path / "copy"), direct="127.0.0.1")
    assert (tmp_path / "copy").read_text() == "data"
    assert "it has no Python" in done.why


WORLD = ["8.8.8.8", "2001:4860:4860::8888", "0.0.0.0", "224.0.0.1"]  # noqa: S104 - refused


@pytest.mark.parametrize("address", WORLD)
def test_nothing_goes_unencrypted_to_an_address_of_the_world(address: str) -> None:
    with pytest.raises(ToolFailed, match="no private address"):
        private(address)


@pytest.mark.parametrize("address", ["spark-1", "", "10.0.0.1; rm"])
def test_a_direct_way_needs_an_address(address: str) -> None:
    with pytest.raises(ToolFailed, match="no IP address"):
        private(address)


@pytest.mark.parametrize("address", ["10.0.0.2", "192.168.1.9", "fd00::1", "169.254.1.1"])
def test_private_addresses(address: str) -> None:
    private(address)


class Overheard(Local):
    """This machine; the words of what it starts are kept."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def open_stream(self, argv: tuple[str, ...]) -> Pipes:
        self.words += argv
        return super().open_stream(argv)


@contextmanager
def listening(tmp_path: Path, limit_s: float = 20) -> Iterator[tuple[Side, int]]:
    """A sink that waits for the connection of a source."""
    place = Place(Overheard(), str(tmp_path / "copy"))
    side = Side("sink", place, "tag", 10.0)
    try:
        side.say(["file . 4 1000000000 644", "plan", f"go 127.0.0.1 {limit_s:g} {TOKEN.hex()}"])
        port = next(int(row[1]) for row in side.rows() if row[0] == "port")
        yield side, port
    finally:
        side.close()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 5)


def test_who_does_not_know_the_token_is_sent_away_and_the_source_still_comes(
    tmp_path: Path,
) -> None:
    with listening(tmp_path) as (side, port):
        with connect(port) as stranger, pytest.raises((LINES.Cut, OSError)):
            LINES.greet(stranger, bytes(32), "source")
        with connect(port) as silent:
            silent.close()
        with connect(port) as link:
            key = LINES.greet(link, TOKEN, "source")
            data = b"file . 0\ndata 4\ndata"
            digest = "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7"
            link.sendall(data + f"end {digest} {LINES.mac(key, 'end', '.', digest)}\n".encode())
            link.sendall(f"bye {LINES.mac(key, 'bye')}\n".encode())
            assert next(row for row in side.rows() if row[0] == "bye")
    assert (tmp_path / "copy").read_text() == "data"


def test_a_stream_without_the_seal_makes_no_file(tmp_path: Path) -> None:
    """Who could write to the link, but does not know the token, brings nothing in."""
    with listening(tmp_path) as (side, port), connect(port) as link:
        LINES.greet(link, TOKEN, "source")
        digest = "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7"
        link.sendall(f"file . 0\ndata 4\ndataend {digest} {'0' * 64}\n".encode())
        row = next(row for row in side.rows() if row[0] not in ("at", "port"))
        assert row == ["wrong", "."]
    assert not (tmp_path / "copy").exists()


def test_the_listener_ends_by_itself(tmp_path: Path) -> None:
    with listening(tmp_path, limit_s=0.2) as (side, _):
        row = next(row for row in side.rows() if row[0] == "refused")
        assert "nobody" in row[1]


def test_both_sides_prove_that_they_know_the_token() -> None:
    one, other = socket.socketpair()
    keys: list[bytes] = []
    thread = threading.Thread(target=lambda: keys.append(LINES.greet(other, TOKEN, "sink")))
    thread.start()
    keys.append(LINES.greet(one, TOKEN, "source"))
    thread.join(5)
    one.close()
    other.close()
    assert keys[0] == keys[1] != TOKEN


def test_the_token_is_in_no_argument_list(tmp_path: Path) -> None:
    from_, to = Overheard(), Overheard()
    (tmp_path / "data").write_text("data")
    copied(at(from_, tmp_path / "data"), at(to, tmp_path / "copy"), direct="127.0.0.1")
    assert not [word for word in from_.words + to.words if re.search(r"[0-9a-f]{64}", word)]


def test_nothing_is_left_running(tmp_path: Path, hosts: tuple[Ssh, Ssh]) -> None:
    data = big_file(tmp_path / "data", 64)

    def stop(text: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copied(at(hosts[0], data), at(hosts[1], tmp_path / "copy"), tell=stop, direct="127.0.0.1")
    wait_for(lambda: not _runs(str(tmp_path / "copy")) and not _runs(str(data)))


def _runs(word: str) -> bool:
    """Whether a process has this word among its own."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += path.read_bytes().split(b"\0")
        except OSError:
            continue
    return word.encode() in found
