"""What hosts without Python do where a source lies, a disk fails, or an earlier try was killed."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tests.test_transfer_breaks import small_disk  # noqa: F401 - a fixture
from tests.transfer_desk import at, busybox, copied, coreutils, here, parts
from tools.connectors.base import Connector
from tools.connectors.local import Local
from tools.errors import ToolFailed
from tools.transfer_side import Side, programs, refusal

KINDS: dict[str, Callable[[Path], Connector]] = {"coreutils": coreutils, "busybox": busybox}
TIME = 1_000_000_000
HELLO = sha256(b"hello").hexdigest()
FILE = f"file a 5 {TIME} 644"
BEGUN = f"file a 0 5 {TIME} 644"
LIES = {
    "a number that a shell would run": [FILE, "plan", "go", BEGUN, "data a[$(>owned)]"],
    "a size that a shell would run": ["file a a[$(>owned)] 1 644", "plan"],
    "a start that a shell would run": [FILE, "plan", "go", "file a a[$(>owned)] 5 1 644"],
    "a file that was not planned": [FILE, "plan", "go", BEGUN.replace(" a ", " b/c ")],
    "a file of another size": [FILE, "plan", "go", BEGUN.replace(" 5 ", " 6 ")],
    "a start behind what is there": [FILE, "plan", "go", f"file a 65536 5 {TIME} 644"],
    "more than was said": [FILE, "plan", "go", BEGUN, "data 5\nhellodata 1\n!"],
    "bytes of no file": [FILE, "plan", "go", "data 5\nhello"],
    "the end of no file": [FILE, "plan", "go", f"end {HELLO} -"],
}


@pytest.fixture(params=KINDS)
def few(tmp_path: Path, request: pytest.FixtureRequest) -> Connector:
    return KINDS[request.param](tmp_path / "programs")


def heard(few: Connector, to: Path, rows: list[str]) -> list[list[str]]:
    side = Side("sink", at(few, to), "tag", 5.0)
    said = []
    try:
        side.say(rows)
        for row in side.rows():
            refusal("it", row)
            said.append(row)
            if row[0] == "bye":
                return said
    finally:
        side.close()
    return said


@pytest.mark.parametrize("rows", LIES.values(), ids=list(LIES))
def test_a_source_that_lies_is_refused(
    tmp_path: Path, few: Connector, rows: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ToolFailed, match="it: "):
        heard(few, tmp_path / "to", [*rows, "bye -"])
    assert not (tmp_path / "owned").exists()
    assert not {path.name for path in (tmp_path / "to").glob("**/*")} & {"a", "b", "c"}


def test_bash_runs_nothing_that_stands_in_a_number(tmp_path: Path) -> None:
    shell = tmp_path / "sink.sh"
    shell.write_bytes(programs("sink")[0])
    stream = Local().open_stream(("bash", str(shell), "5", "tag", str(tmp_path / "to")))
    try:
        rows = [FILE, "plan", "go", BEGUN, f"data a[$(>{tmp_path}/owned)]", ""]
        stream.write(memoryview("\n".join(rows).encode()), 5.0)
        said = b""
        while data := stream.read(5.0):
            said += data
    finally:
        stream.close()
    assert b"refused" in said
    assert not (tmp_path / "owned").exists()


def test_words_that_only_tell_that_we_are_there(tmp_path: Path, few: Connector) -> None:
    rows = ["idle", FILE, "idle", "plan", "idle", "go", "idle", BEGUN, "idle", "data 5"]
    said = heard(few, tmp_path / "to", [*rows, f"helloend {HELLO} -", "idle", "bye -"])
    assert ["done", "a", HELLO] in said
    (tmp_path / "from").write_text("hello")
    side = Side("source", at(few, tmp_path / "from"), "tag", 5.0)
    try:
        side.say(["idle", "hash .", "idle", "get . 0 -", "hash .", "idle", "go"])
        answers = side.rows()
        kinds = [next(answers)[0] for _ in range(8)]
    finally:
        side.close()
    expected = ["transfer", "root", "file", "listed", "sum", "sum", "file", "data"]
    assert kinds == expected, "the content comes after the go"


@pytest.mark.parametrize("row", ["dir cache 5 711", "dir cache/deep 5 711"])
def test_a_folder_behind_a_link_is_neither_made_nor_changed(
    tmp_path: Path, few: Connector, row: str
) -> None:
    (tmp_path / "outside").mkdir(mode=0o700)
    (tmp_path / "to").mkdir()
    (tmp_path / "to/cache").symlink_to(tmp_path / "outside")
    before = (tmp_path / "outside").stat()
    with pytest.raises(ToolFailed, match="leads out of the folder"):
        heard(few, tmp_path / "to", [row, "plan", "go", "bye -"])
    after = (tmp_path / "outside").stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert not list((tmp_path / "outside").iterdir())


def part_of(folder: Path, size: int) -> Path:
    sign = sha256(b"%d %d data" % (size, TIME)).hexdigest()[:12]
    return folder / f"data.part-{sign}"


def source(folder: Path, size: int) -> Path:
    data = folder / "data"
    data.write_bytes(bytes(size))
    os.utime(data, ns=(TIME, TIME))
    return data


@pytest.mark.parametrize("lock", ["", f"{os.getpid()} 1\n", "999999999 1\n"])
def test_a_lock_whose_holder_is_gone_holds_nobody(
    tmp_path: Path, few: Connector, lock: str
) -> None:
    """Empty of a full disk, or with a number that the machine gave to another one since."""
    (tmp_path / "from").mkdir()
    (tmp_path / "to").mkdir()
    data = source(tmp_path / "from", 200_000)
    part = part_of(tmp_path / "to", 200_000)
    part.write_bytes(bytes(70_000))
    part.with_name(part.name + ".lock").write_text(lock)
    done = copied(here(data), at(few, tmp_path / "to/data"))
    assert done.resumed_bytes == 65536
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["data"]


def test_a_full_disk_leaves_no_lock(
    tmp_path: Path,
    few: Connector,
    small_disk: Path,  # noqa: F811
) -> None:
    data = source(tmp_path, 200_000)
    part_of(small_disk, 200_000).write_bytes(bytes(131_072))
    filler = small_disk / "filler"
    room = os.statvfs(small_disk)
    filler.write_bytes(bytes(room.f_bavail * room.f_frsize))
    with pytest.raises(ToolFailed, match="are free"):
        copied(here(data), at(few, small_disk / "data"))
    filler.unlink()
    assert copied(here(data), at(few, small_disk / "data")).resumed_bytes == 131_072


def test_a_disk_that_does_not_take_it_makes_no_file(tmp_path: Path) -> None:
    few = coreutils(tmp_path / "programs")
    dd = tmp_path / "programs/dd"
    real = dd.readlink()
    dd.unlink()
    dd.write_text(f'#!/bin/sh\ncase $* in *fsync*) exit 1 ;; esac\nexec {real} "$@"\n')
    dd.chmod(0o755)
    (tmp_path / "data").write_text("hello")
    with pytest.raises(ToolFailed, match="cannot be brought to the disk"):
        copied(here(tmp_path / "data"), at(few, tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()


def test_replacing_where_only_the_way_through_us_is_left(tmp_path: Path, few: Connector) -> None:
    for name, text in (("from", "newer"), ("to", "old")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text(text)
    to = at(few, tmp_path / "to")
    done = copied(here(tmp_path / "from"), to, replace=True, direct="127.0.0.1", tag="x")
    assert (done.route, (tmp_path / "to/a").read_text()) == ("relayed", "newer")
    assert (tmp_path / "to/a.before-x").read_text() == "old"


def test_only_what_an_earlier_try_left_is_left_out(tmp_path: Path, few: Connector) -> None:
    tree = tmp_path / "from"
    tree.mkdir()
    for name in ("a", "b.part-0123456789ab", "c.part-0123456", "d.part-0123456789ab.txt"):
        (tree / name).write_text(name)
    copied(at(few, tree), here(tmp_path / "to"))
    found = {path.name for path in (tmp_path / "to").iterdir()}
    assert found == {"a", "c.part-0123456", "d.part-0123456789ab.txt"}
    assert not parts(tmp_path / "to")


def test_a_link_whose_aim_looks_like_an_option(tmp_path: Path, few: Connector) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from/-rf").write_text("data")
    (tmp_path / "from/link").symlink_to("-rf")
    copied(at(few, tmp_path / "from"), at(few, tmp_path / "to"))
    assert (tmp_path / "to/link").readlink() == Path("-rf")
