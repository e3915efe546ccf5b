"""A source that means harm: what it names cannot leave the folder, on any kind of target."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.transfer_desk import at, big_file, busybox, copied, coreutils, here, parts, wait_for
from tools.connectors.base import Connector
from tools.connectors.local import Local
from tools.errors import BadReply, ConnectionFailed, ToolFailed
from tools.transfer_rows import Manifest, word
from tools.transfer_side import Place, Side, refusal

KINDS: dict[str, Callable[[Path], Connector]] = {
    "python": lambda folder: Local(),
    "coreutils": coreutils,
    "busybox": busybox,
}
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
FILE = "file {0} 0 0 1000000000 644\nend " + EMPTY + " -"
HOSTILE = {
    "a path that goes up": ["file ../up 0 1000000000 644", "plan"],
    "an absolute path": ["file /up 0 1000000000 644", "plan"],
    "a path with a step up inside": ["dir a 1 755", "file a/../../up 0 1000000000 644", "plan"],
    "a link that goes up": ["link l ..", "plan", "go"],
    "an absolute link": ["link l /etc", "plan", "go"],
    "a link that goes up from where a link has led": [
        *("dir a 1 755", "dir a/b 1 755", "dir a/b/c 1 755", "link a/b/c/d ../../../a"),
        *("link a/b/c/d/l ../../up", "plan", "go"),
    ],
    "a file that was not in the plan": ["plan", "go", FILE.format("../up")],
}


@pytest.mark.parametrize("rows", HOSTILE.values(), ids=list(HOSTILE))
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_written_outside(tmp_path: Path, kind: str, rows: list[str]) -> None:
    (tmp_path / "inner").mkdir()
    place = at(KINDS[kind](tmp_path / "programs"), tmp_path / "inner/to")
    side = Side("sink", place, "tag", 5.0)
    try:
        side.say(rows)
        with pytest.raises((ToolFailed, ConnectionFailed)):
            _hear(side)
    finally:
        side.close()
    assert {path.name for path in tmp_path.iterdir()} - {"programs"} == {"inner"}
    assert {path.name for path in (tmp_path / "inner").iterdir()} <= {"to"}
    for path in tmp_path.rglob("inner/**/*"):
        assert str(path.resolve()).startswith(str(tmp_path / "inner/to"))


def _hear(side: Side) -> None:
    for row in side.rows():
        refusal("it", row)


@pytest.mark.parametrize("target", ["/etc", "../../x", "a/../../../x"])
def test_a_link_of_the_list_that_leads_out_is_refused_by_us(target: str) -> None:
    rows = Manifest(is_folder=True)
    with pytest.raises(ToolFailed, match="leads elsewhere"):
        rows.take(["link", word(b"sub/link"), word(target.encode())])


def test_no_folder_is_made_behind_a_link(tmp_path: Path) -> None:
    """Neither in it nor where it leads."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "to").mkdir()
    (tmp_path / "to/cache").symlink_to("../outside")
    side = Side("sink", here(tmp_path / "to"), "tag", 5.0)
    try:
        side.say(["dir cache/deep 1 755", "plan", "go"])
        with pytest.raises(ToolFailed, match="leads out of the folder"):
            _hear(side)
    finally:
        side.close()
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.parametrize(
    "row",
    [
        ["file", "a", "a[$(touch owned)]", "1", "644"],
        ["file", "a", "-1", "1", "644"],
        ["file", "a", "1", "1;x", "644"],
        ["file", "a", "1", "", "644"],
        ["file", "a", "1", "1", "u+s"],
        ["file", "a", "1", "1", "888"],
        ["dir", "a", "x", "755"],
        ["dir", "a", "1", "a+w"],
    ],
)
def test_what_is_no_number_is_passed_on_to_nobody(row: list[str]) -> None:
    with pytest.raises(ToolFailed, match="no number"):
        Manifest(is_folder=True).take(row)


def test_a_time_before_1970_is_one() -> None:
    assert Manifest(is_folder=True).take(["file", "a", "1", "-1500000000", "644"])


def test_a_source_that_sends_before_it_is_linked_is_no_source(tmp_path: Path) -> None:
    told = "transfer 1\\nroot file\\nfile . 4 1000000000 644\\nlisted 1\\nfile . 0\\nlinked\\n"
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nprintf '{told}'\nexec sleep 60\n")
    program.chmod(0o755)
    source = Place(Local(), "/x", str(program))
    with pytest.raises(BadReply, match="not known here: file"):
        copied(source, here(tmp_path / "copy"), direct="127.0.0.1", quiet_s=2.0)


def test_a_source_without_python_sends_no_content_as_words(tmp_path: Path) -> None:
    """It cannot send directly, and a file may hold the very word that would say so."""
    (tmp_path / "data").write_text("x\nlinked\nmore\n")
    few = coreutils(tmp_path / "programs")
    done = copied(at(few, tmp_path / "data"), here(tmp_path / "copy"), direct="127.0.0.1")
    assert (done.route, (tmp_path / "copy").read_text()) == ("relayed", "x\nlinked\nmore\n")


def test_a_source_that_dies_is_named_at_once(tmp_path: Path) -> None:
    data = big_file(tmp_path / "data", 32)

    def kill(text: str) -> None:
        wait_for(lambda: bool(parts(tmp_path)))
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            if path.read_bytes().rstrip(b"\0").endswith(os.fsencode(data)):
                os.kill(int(path.parent.name), signal.SIGKILL)

    with pytest.raises(ConnectionFailed, match="our program there ended too early"):
        copied(here(data), here(tmp_path / "copy"), tell=kill)
    assert not (tmp_path / "copy").exists()
    copied(here(data), here(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == data.read_bytes()
