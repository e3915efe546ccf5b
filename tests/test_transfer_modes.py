"""Of a file's mode the nine permission bits travel alone, on any kind of target."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_transfer_hostile import EMPTY, KINDS
from tests.transfer_desk import at, copied
from tools.errors import ConnectionFailed, ToolFailed
from tools.transfer_side import Side, refusal

ODD = ["u+s", "--reference=/bin/sh", "=", "9", "0755,u+s"]
kinds = pytest.mark.parametrize("kind", KINDS)


def heard(side: Side, last: str) -> list[list[str]]:
    rows = []
    for row in side.rows():
        refusal("it", row)
        rows.append(row)
        if row[0] == last:
            break
    return rows


def sink(folder: Path, kind: str) -> Side:
    return Side("sink", at(KINDS[kind](folder / "programs"), folder / "to"), "tag", 5.0)


def bits(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@kinds
def test_a_source_names_no_more_than_permissions(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "from"
    (folder / "dir").mkdir(parents=True)
    for path, mode in (
        (folder / "dir/tool", 0o6755),
        (folder / "few", 0o4400),
        (tmp_path / "outer", 0o2711),
    ):
        path.touch()
        path.chmod(mode)
    (folder / "dir").chmod(0o3775)
    (folder / "link").symlink_to(tmp_path / "outer")
    side = Side("source", at(KINDS[kind](tmp_path / "programs"), folder), "tag", 5.0)
    try:
        listed = {row[1]: row[-1] for row in heard(side, "listed")}
        side.say(["get dir/tool 0 -", "go"])
        sent = next(row for row in heard(side, "bye") if row[0] == "file")
    finally:
        side.close()
    assert {name: listed[name] for name in ("dir", "dir/tool", "link", "few")} == {
        "dir": "775",
        "dir/tool": "755",
        "link": "711",
        "few": "400",
    }
    assert sent[-1] == "755"


@kinds
def test_a_sink_takes_no_more_than_permissions(tmp_path: Path, kind: str) -> None:
    """The source lies: in its list, and once more where the file comes."""
    (tmp_path / "to").mkdir()
    (tmp_path / "to/old").touch()
    side = sink(tmp_path, kind)
    try:
        plan = ["dir d 1000000000 6755", "file d/f 0 1000000000 4711", "file old 0 1000000000 2640"]
        side.say([*plan, "plan"])
        heard(side, "planned")
        stream = ["file d/f 0 0 1000000000 4711", f"end {EMPTY} -", "bye -"]
        side.say(["touch old 1000000000 2640", "go", *stream])
        heard(side, "bye")
    finally:
        side.close()
    found = {name: bits(tmp_path / "to" / name) for name in ("d", "d/f", "old")}
    assert found == {"d": 0o755, "d/f": 0o711, "old": 0o640}


@pytest.mark.parametrize("what", ["dir", "file"])
@pytest.mark.parametrize("mode", ODD)
@kinds
def test_what_is_no_mode_is_refused(tmp_path: Path, kind: str, mode: str, what: str) -> None:
    stream = [f"file f 0 0 1000000000 {mode}", f"end {EMPTY} -"]
    plans = {"dir": [f"dir d 1000000000 {mode}"], "file": [f"file f 0 1000000000 {mode}"]}
    side = sink(tmp_path, kind)
    try:
        side.say([*plans[what], "plan", "go", *(stream if what == "file" else ()), "bye -"])
        with pytest.raises((ToolFailed, ConnectionFailed)):
            heard(side, "bye")
    finally:
        side.close()
    assert not (tmp_path / "to/f").exists()
    assert not (tmp_path / "to/d").exists()


@pytest.mark.parametrize("to", KINDS)
@kinds
def test_a_copied_program_is_no_setuid_program(tmp_path: Path, kind: str, to: str) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o6755)
    copied(
        at(KINDS[kind](tmp_path / "programs"), tool), at(KINDS[to](tmp_path / "to"), tmp_path / "x")
    )
    assert bits(tmp_path / "x") == 0o755
