"""Copies that take long go on: each side, and we, hear that the others still work."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.slow_machine import SLOW_DISK, SLOW_SUMS, python_on
from tests.transfer_desk import at, big_file, copied, here, interrupt_at, parts, wait_for
from tools.connectors.local import Local
from tools.errors import ConnectionFailed
from tools.transfer_side import Place

MIB = 1 << 20
DIRECT = pytest.mark.parametrize("direct", ["", "127.0.0.1"])


@pytest.fixture
def slow(tmp_path: Path) -> str:
    return python_on(tmp_path, SLOW_SUMS)


@pytest.mark.parametrize("side", ["source", "sink"])
def test_sums_that_take_longer_than_the_limit_of_silence(
    tmp_path: Path, slow: str, side: str
) -> None:
    data = big_file(tmp_path / "data", 9)
    (tmp_path / "copy").write_bytes(data.read_bytes())
    os.utime(tmp_path / "copy", (1, 1))
    pythons = {"source": sys.executable, "sink": sys.executable, side: slow}
    done = copied(
        Place(Local(), str(data), pythons["source"]),
        Place(Local(), str(tmp_path / "copy"), pythons["sink"]),
        quiet_s=1.0,
    )
    assert (done.sent_files, done.same_files) == (0, 1)


@DIRECT
@pytest.mark.parametrize("side", ["source", "sink"])
def test_so_it_is_with_what_an_earlier_try_has_left(
    tmp_path: Path, slow: str, side: str, direct: str
) -> None:
    data = big_file(tmp_path / "data", 9)
    with pytest.raises(KeyboardInterrupt):
        copied(here(data), here(tmp_path / "copy"), tell=interrupt_at(tmp_path))
    parts(tmp_path)[0].write_bytes(data.read_bytes()[: 8 * MIB])
    pythons = {"source": sys.executable, "sink": sys.executable, side: slow}
    done = copied(
        Place(Local(), str(data), pythons["source"]),
        Place(Local(), str(tmp_path / "copy"), pythons["sink"]),
        quiet_s=1.0,
        direct=direct,
    )
    assert done.resumed_bytes == 8 * MIB
    assert done.route.startswith("direct" if direct else "relayed")
    assert (tmp_path / "copy").read_bytes() == data.read_bytes()


@DIRECT
def test_a_disk_that_takes_long_to_write_down_what_came(tmp_path: Path, direct: str) -> None:
    """The source's pipe is full meanwhile, and it waits."""
    tree = tmp_path / "from"
    tree.mkdir()
    for name in ("one", "two"):
        with (tree / name).open("wb") as file:
            file.truncate(40 * MIB)
    to = Place(Local(), str(tmp_path / "to"), python_on(tmp_path, SLOW_DISK))
    done = copied(here(tree), to, quiet_s=1.0, direct=direct)
    assert done.route.startswith("direct" if direct else "relayed")
    assert sorted(path.name for path in (tmp_path / "to").iterdir()) == ["one", "two"]


class Named(Local):
    """This machine, by another name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def test_the_side_that_hangs_is_named(tmp_path: Path) -> None:
    data = big_file(tmp_path / "data", 32)

    def stop(text: str) -> None:
        wait_for(lambda: bool(parts(tmp_path)))
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            if path.read_bytes().rstrip(b"\0").endswith(os.fsencode(data)):
                os.kill(int(path.parent.name), signal.SIGSTOP)

    source, to = at(Named("spark-1"), data), at(Named("spark-2"), tmp_path / "copy")
    with pytest.raises(ConnectionFailed, match="spark-1: nothing moved for 1 s"):
        copied(source, to, tell=stop, quiet_s=1.0)
