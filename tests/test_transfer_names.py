"""How a file gets its name where the disk or the login can do less: never by a second copy."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import pytest

from tests.lab.need import need
from tests.slow_machine import CALLS, python_on, without
from tests.test_transfer_breaks import MIB, small_disk  # noqa: F401 - a fixture
from tests.transfer_desk import at, big_file, copied, here, parts
from tools.connectors.local import Local
from tools.connectors.streams import Pipes
from tools.errors import ToolFailed
from tools.transfer_side import Place


@pytest.fixture(params=["link", "link renameat2"])
def poor(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A Python to which the kernel gives no hard links, or no safe renaming either."""
    machine = platform.machine()
    need(machine in CALLS, f"the numbers of the kernel's calls are not known for {machine}")
    return python_on(tmp_path, without(machine, *request.param.split()))


def test_without_hard_links_a_file_is_moved(
    tmp_path: Path,
    poor: str,
    small_disk: Path,  # noqa: F811
) -> None:
    """There is no room for it twice."""
    data = big_file(tmp_path / "data", 5)
    copied(here(data), Place(Local(), str(small_disk / "copy"), poor))
    assert (small_disk / "copy").read_bytes() == data.read_bytes()
    assert [path.name for path in small_disk.iterdir()] == ["copy"]


def test_what_it_replaces_is_moved_too(
    tmp_path: Path,
    poor: str,
    small_disk: Path,  # noqa: F811
) -> None:
    data = big_file(tmp_path / "data", 3)
    (small_disk / "copy").write_bytes(bytes(4 * MIB))
    to = Place(Local(), str(small_disk / "copy"), poor)
    copied(here(data), to, replace=True, tag="run-7")
    assert (small_disk / "copy").read_bytes() == data.read_bytes()
    assert (small_disk / "copy.before-run-7").read_bytes() == bytes(4 * MIB)
    assert len(list(small_disk.iterdir())) == 2


def test_what_has_come_there_meanwhile_stays(tmp_path: Path, poor: str) -> None:
    data = big_file(tmp_path / "data", 16)

    def another(text: str) -> None:
        (tmp_path / "copy").write_text("another's")

    with pytest.raises(ToolFailed, match="is there meanwhile"):
        copied(here(data), Place(Local(), str(tmp_path / "copy"), poor), tell=another)
    assert (tmp_path / "copy").read_text() == "another's"
    assert parts(tmp_path)[0].read_bytes() == data.read_bytes()


class Plain(Local):
    """This machine, by a login that may not change what is another's."""

    def open_stream(self, argv: tuple[str, ...]) -> Pipes:
        return super().open_stream(("setpriv", "--bounding-set=-fowner", *argv))


def test_what_another_owns_keeps_its_time_and_the_rest_comes(tmp_path: Path) -> None:
    need(os.geteuid() == 0, "files of another owner can only be made by root")
    need(shutil.which("setpriv") is not None, "setpriv is missing (apt-get install util-linux)")
    for folder in ("from", "to"):
        (tmp_path / folder / "sub").mkdir(parents=True)
        (tmp_path / folder / "there").write_text("the same")
    (tmp_path / "from/sub/new").write_text("new")
    others = [tmp_path / "to", tmp_path / "to/sub", tmp_path / "to/there"]
    for path in others:
        os.utime(path, (5, 5))
        os.chown(path, 65534, 65534)
    done = copied(here(tmp_path / "from"), at(Plain(), tmp_path / "to"))
    assert (done.sent_files, done.same_files) == (1, 1)
    assert (tmp_path / "to/sub/new").read_text() == "new"
    assert (tmp_path / "to/there").stat().st_mtime == 5
