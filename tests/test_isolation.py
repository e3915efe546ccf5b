"""The tests' own walls hold: no other machine, no home of the person's, no missing lab in CI."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest

from tests.lab.isolation import OutsideNetwork, is_loopback
from tests.lab.need import REQUIRE_LAB, need

FAR = ("192.0.2.1", 9)  # an address reserved for documentation


def test_connecting_to_another_machine_is_refused() -> None:
    with socket.socket() as connection, pytest.raises(OutsideNetwork, match=FAR[0]):
        connection.connect(FAR)


def test_a_datagram_to_another_machine_is_refused() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as sender, pytest.raises(OutsideNetwork):
        sender.sendto(b"x", FAR)


def test_loopback_is_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (("127.9.9.9", 1), True),
        (("::1", 1, 0, 0), True),
        (("::ffff:127.0.0.1", 1, 0, 0), True),
        ("/run/some.sock", True),
        ((0, 0), True),
        (("localhost", 1), True),
        (("host.invalid", 1), False),
        (("10.0.0.1", 1), False),
        (("fe80::1%eth0", 1, 0, 0), False),
        (("::ffff:10.0.0.1", 1, 0, 0), False),
    ],
)
def test_which_addresses_stay_here(address: object, expected: bool) -> None:
    assert is_loopback(address) is expected


def test_home_and_state_are_the_tests_own(homes: Path) -> None:
    assert Path.home().is_relative_to(homes)
    assert Path(platformdirs.user_state_dir("bringup")).is_relative_to(homes)
    assert not any(Path.home().iterdir())


def test_settings_of_the_person_are_not_seen() -> None:
    ours = {name for name in os.environ if name.startswith("BRINGUP_")}
    assert ours <= {REQUIRE_LAB}


def test_a_missing_part_of_the_lab_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REQUIRE_LAB, raising=False)
    need(True, "unused")
    with pytest.raises(pytest.skip.Exception, match="tmux is missing"):
        need(False, "tmux is missing")


def test_a_missing_part_of_the_lab_fails_where_all_must_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(REQUIRE_LAB, "1")
    with pytest.raises(pytest.fail.Exception, match="tmux is missing"):
        need(False, "tmux is missing")


def test_a_recorded_file_that_differs_fails(
    golden: Callable[[Path, str], None], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    recorded = tmp_path / "file.txt"
    recorded.write_text("old\n", encoding="utf-8")
    golden(recorded, "old\n")
    if not request.config.getoption("--update"):
        with pytest.raises(AssertionError, match="make golden"):
            golden(recorded, "new\n")
