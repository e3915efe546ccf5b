"""The tools for files, grep and the shell on this machine."""

from __future__ import annotations

import os
import random
import runpy
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tools.base import CallContext, Risk, Tool
from tools.command import Ending
from tools.connectors.local import Local
from tools.errors import ToolFailed
from tools.files import FilePiece, ReadFile, ReadFileArgs
from tools.search import LONGEST_LINE, Grep
from tools.shell import Shell, ShellArgs

CALL = CallContext(run_id="r", call_id="c", marker="mark-51c9", host_dir="/nonexistent")
PY = sys.executable
PROBES = Path(__file__).parent.parent / "tools" / "probes"


def use(tool: Tool[Any, Any], **args: object) -> Any:
    """Run a tool on this machine and return its observation."""
    checked = tool.args_type.model_validate(args)
    return tool.parse(checked, CALL, Local().run(tool.command(checked, CALL)))


# --- files


def read_all(path: Path, limit: int) -> str:
    text, offset = "", 0
    while True:
        args = {"path": str(path), "offset_bytes": offset, "limit_bytes": limit}
        piece: FilePiece = use(ReadFile(), python=PY, **args)
        assert len(piece.text.encode()) <= limit
        assert piece.left_out_bytes == piece.size_bytes - len(piece.text.encode())
        text += piece.text
        if piece.end_bytes == piece.size_bytes:
            return text
        assert piece.end_bytes > offset
        offset = piece.end_bytes


def test_a_file_read_in_pieces_is_the_file(tmp_path: Path) -> None:
    file = tmp_path / "größe; 日本 $(x).txt"
    text = "é日本語🙂 plain\r\n" * 4
    file.write_bytes(text.encode())
    for limit in (5, 11, 40_000):
        assert read_all(file, limit) == text


def test_any_bytes_are_cut_only_between_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))  # the script takes out what is not Python's
    read = runpy.run_path(str(PROBES / "file.py"))["read"]
    source = random.Random(7)  # noqa: S311
    file = tmp_path / "x"
    for _ in range(300):
        file.write_bytes("".join(source.choices("aé日🙂", k=12)).encode())
        piece = read(str(file), source.randrange(20), source.randrange(4, 12))
        assert "\ufffd" not in piece["text"]
        file.write_bytes(bytes(source.choices(range(1, 256), k=40)))
        offset = source.randrange(39)
        assert read(str(file), offset, source.randrange(1, 50))["end_bytes"] > offset


def test_a_log_reads_the_same_where_the_locale_is_ascii(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").write_bytes("\x1b[31mé🙂\x1b[0m [red]".encode() + b"\xe9\n")
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    piece = use(ReadFile(), python=PY, path=str(tmp_path / "log"))
    assert piece.text == "\x1b[31mé🙂\x1b[0m [red]\ufffd\n"


def test_what_is_no_readable_text_file_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(b"\x10\0\0\0{}" + os.urandom(4096))
    os.mkfifo(tmp_path / "pipe")
    for name, words in {
        "w.safetensors": "is binary",
        "pipe": "is a device, pipe or socket",
        "": "is a directory",
        "absent": "No such file or directory",
        "w.safetensors/x": "Not a directory",
    }.items():
        path = str(tmp_path / name)
        with pytest.raises(ToolFailed, match=words) as caught:
            use(ReadFile(), python=PY, path=path)
        assert str(caught.value).startswith(path + ": ")


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv") or not Path("/usr/bin/python3").exists(),
    reason="needs root, setpriv and a Python that others may run",
)
def test_a_file_of_somebody_else_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "secret").touch(mode=0o600)
    other = tmp_path / "python"
    other.write_text('#!/bin/sh\nexec setpriv --reuid=65534 --clear-groups /usr/bin/python3 "$@"\n')
    other.chmod(0o755)
    with pytest.raises(ToolFailed, match=r"/secret: Permission denied"):
        use(ReadFile(), python=str(other), path=str(tmp_path / "secret"))


def test_a_link_is_read_and_its_target_named(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    piece = use(ReadFile(), python=PY, path=f"{tmp_path}/a/../link".replace("/a/..", "/."))
    assert piece.real_path == str(tmp_path / "real")
    assert piece.headline().startswith(piece.real_path)


def test_paths_are_absolute_and_dots_are_one_subject() -> None:
    for path in ("relative", "~/x", "~root/x", "", "/nul\0", "/half\ud800"):
        with pytest.raises(ValidationError):
            ReadFileArgs(path=path)
    same = [
        ReadFile().subjects(ReadFileArgs(path=path)) for path in ("/a/b", "/a/x/../b", "/a//./b")
    ]
    assert same[0] == same[1] == same[2]


# --- grep


def test_matches_have_path_line_and_text(tmp_path: Path) -> None:
    file = tmp_path / "a:3:b - c.log"
    file.write_bytes(b"one\r\nERROR: two\xe9\nError three\n")
    found = use(Grep(), pattern="ERROR|zzz", path=str(tmp_path))
    (match,) = found.matches
    assert (match.path, match.line, match.text) == (str(file), 2, "ERROR: two\ufffd")
    assert not found.truncated
    both = use(Grep(), pattern="^error", path=str(file), ignore_case=True).matches
    assert [match.line for match in both] == [2, 3]


def test_no_match_is_an_answer_and_a_failed_search_is_none(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("--help\n")
    os.mkfifo(tmp_path / "pipe")
    assert use(Grep(), pattern="absent", path=str(tmp_path)).matches == ()
    assert len(use(Grep(), pattern="--help", path=str(tmp_path)).matches) == 1
    assert use(Grep(), pattern="x", path=str(tmp_path / "pipe")).matches == ()
    for bad in ({"pattern": "(", "path": "/"}, {"pattern": "x", "path": "/absent"}):
        with pytest.raises(ToolFailed, match=r"grep could not search .* \(exit 2\): grep: "):
            use(Grep(), **bad)


def test_a_search_may_be_for_some_files_only(tmp_path: Path) -> None:
    for name in ("a.pth", "b.py"):
        (tmp_path / name).write_text("import x\n")
    found = use(Grep(), pattern="import", path=str(tmp_path), include="*.pth")
    assert [match.path for match in found.matches] == [str(tmp_path / "a.pth")]
    for bad, words in (
        ({"pattern": ""}, "an empty pattern matches every line"),
        ({"pattern": "x", "include": "sub/*.pth"}, "folders belong into the path"),
    ):
        with pytest.raises(ValidationError, match=words):
            use(Grep(), path=str(tmp_path), **bad)


def test_a_search_shows_so_many_matches_and_says_that_there_are_more(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("".join(f"{i} hit\n{i} miss\n" for i in range(9)))
    exact = use(Grep(), pattern="hit", path=str(tmp_path / "x"), max_matches=9)
    assert (len(exact.matches), exact.truncated) == (9, False)
    few = use(Grep(), pattern="hit", path=str(tmp_path / "x"), max_matches=2, context_lines=1)
    shown = [(match.line, match.context) for match in few.matches if match.line <= 4]
    assert shown == [(1, False), (2, True), (3, False), (4, True)]
    assert few.truncated


def test_long_lines_and_floods_are_clipped_with_their_count(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(("y" * 2000 + "\n") * 900)
    found = use(Grep(), pattern="y", path=str(tmp_path / "x"), max_matches=1000)
    assert found.truncated
    assert [match.line for match in found.matches] == list(range(1, len(found.matches) + 1))
    assert {len(match.text) for match in found.matches} == {LONGEST_LINE}
    assert {match.omitted for match in found.matches} == {2000 - LONGEST_LINE}


# --- the shell


def test_a_failing_command_is_an_observation() -> None:
    seen = use(Shell(), command="echo out; echo err >&2; exit 3")
    assert (seen.ending, seen.code, seen.stdout, seen.stderr) == ("exited", 3, "out\n", "err\n")
    assert seen.headline() == "exit 3: err"
    assert use(Shell(), command="false | cat").code == 1
    assert use(Shell(), command="kill -9 $$").signal == "SIGKILL"


def test_a_shell_keeps_head_tail_and_count(tmp_path: Path) -> None:
    seen = use(Shell(), command="seq 50000; echo FAILED; exit 1", cwd=str(tmp_path))
    assert seen.stdout.startswith("1\n2\n")
    assert seen.stdout.endswith("\n50000\nFAILED\n")
    assert f"{seen.stdout_omitted} bytes left out" in seen.stdout
    assert use(Shell(), command="head -c 4096 /dev/urandom; pwd", cwd=str(tmp_path)).code == 0


def test_a_shell_ends_in_time() -> None:
    begun = time.monotonic()
    seen = use(Shell(), command="sleep 30 & sleep 30", timeout_s=0.3)
    assert seen.ending is Ending.TIMED_OUT
    assert time.monotonic() - begun < 5
    assert use(Shell(), command="true", cwd="/absent").code == 126


@pytest.mark.parametrize("command", ['{"command": "ls"}', "{'command': 'ls'}", ' ["ls", "-l"]'])
def test_data_is_no_command(command: str) -> None:
    with pytest.raises(ValidationError, match="not a shell command"):
        ShellArgs(command=command)


def test_a_shell_always_asks_and_may_destroy() -> None:
    assert (
        use(Shell(), command="{ echo a; }").stdout == use(Shell(), command="[ 1 ] && echo a").stdout
    )
    args = ShellArgs(command="ls")
    assert (Shell().always_asks, Shell().risk_of(args)) == (True, Risk.DESTROY)
    assert [str(subject) for subject in Shell().subjects(args)] == ["host host"]
