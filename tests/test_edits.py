"""A folder is listed, and a file changed or set aside: real files, real interpreters."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agent.approval import Word, decide, policy_for
from agent.records import CallRecord
from agent.undo import by_hand
from agent.values import CallStatus, ToolCall
from tests.environments import make_venv, see, site_packages, write_dist
from tests.lab.world_runs import goal
from tools.base import Risk, Subject, Tool
from tools.command import Command
from tools.connectors.local import Local
from tools.edits import FileChange, ReplaceInFile, ReplaceInFileArgs, SetAside, SetAsideArgs
from tools.errors import ToolFailed
from tools.folders import ListFolder, Listing
from tools.imports import ImportProbe
from tools.packages import PythonEnvironment

INI = "[server]\nhost = 10.0.0.7\nport = 8000\n"
WISH: dict[str, Any] = {"old": "10.0.0.7", "new": "127.0.0.1"}


def names(listing: Listing) -> list[str]:
    return [entry.name for entry in listing.entries]


@pytest.fixture
def ini(tmp_path: Path) -> Path:
    path = tmp_path / "größe $(x)" / "launcher.ini"
    path.parent.mkdir()
    path.write_text(INI)
    return path


# --- folders


def test_a_folder_says_names_kinds_sizes_times_and_links(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("four")
    os.utime(tmp_path / "b.txt", (1764000000, 1764000000))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "inner.pth").touch()
    (tmp_path / "c").symlink_to("a")
    os.mkfifo(tmp_path / "d")
    seen: Listing = see(ListFolder(), path=str(tmp_path))
    found = {entry.name: (entry.kind, entry.size_bytes, entry.target) for entry in seen.entries}
    assert found == {
        "a": ("folder", None, ""),
        "b.txt": ("file", 4, ""),
        "c": ("link", None, "a"),
        "d": ("other", None, ""),
    }
    assert names(seen) == sorted(names(seen))
    assert seen.entries[1].modified == "2025-11-24T16:00:00Z"
    deep = see(ListFolder(), path=str(tmp_path), depth=2, pattern="*.pth")
    assert names(deep) == ["a/inner.pth"], "a link to a folder is not followed"
    assert names(see(ListFolder(), path=str(tmp_path / "c"))) == ["inner.pth"]


def test_a_large_folder_is_cut_and_counted(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}").touch()
    seen = see(ListFolder(), path=str(tmp_path), max_entries=4)
    assert (names(seen), seen.left_out) == (["00", "01", "02", "03"], 26)
    assert "26 more left out" in seen.headline()


def test_what_is_no_folder_is_refused(tmp_path: Path, ini: Path) -> None:
    for path, words in ((ini, "is no folder"), (tmp_path / "absent", "No such file")):
        with pytest.raises(ToolFailed, match=words) as caught:
            see(ListFolder(), path=str(path))
        assert str(caught.value).startswith(f"{path}: ")
    with pytest.raises(ValidationError, match=r"folders belong into the path"):
        see(ListFolder(), path=str(tmp_path), pattern="a/*.pth")


# --- changes


def test_a_replacement_keeps_the_original_mode_and_owner(ini: Path) -> None:
    ini.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(ini, 12345, 23456)
    before = ini.stat()
    done: FileChange = see(ReplaceInFile(), path=str(ini), **WISH)
    assert ini.read_text() == INI.replace("10.0.0.7", "127.0.0.1")
    assert done.diff.splitlines()[2:4] == ["-host = 10.0.0.7", "+host = 127.0.0.1"]
    assert done.backup == f"{ini}.bringup-call-1"
    assert Path(done.backup).read_text() == INI
    for path in (ini, Path(done.backup)):
        now = path.stat()
        assert stat.S_IMODE(now.st_mode) == 0o640
        assert (now.st_uid, now.st_gid) == (before.st_uid, before.st_gid)
    assert Path(done.backup).stat().st_mtime_ns == before.st_mtime_ns
    assert ini.stat().st_mtime_ns > before.st_mtime_ns, "else its old bytecode would be used"
    assert len(list(ini.parent.iterdir())) == 2


def test_an_earlier_backup_stays(ini: Path) -> None:
    Path(f"{ini}.bringup-call-1").write_text("earlier")
    done: FileChange = see(ReplaceInFile(), path=str(ini), **WISH)
    assert Path(f"{ini}.bringup-call-1").read_text() == "earlier"
    assert Path(done.backup).name == "launcher.ini.bringup-call-1-2"
    again: FileChange = see(SetAside(), path=str(ini))
    assert Path(again.backup).name == "launcher.ini.bringup-call-1-3"


def test_bytes_that_are_not_meant_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"caf\xe9\r\n\xc3\xa9 = a\\1\r\nlast")
    see(ReplaceInFile(), path=str(file), old="é = a\\1", new="\\g<0>日")
    assert file.read_bytes() == "caf\udce9\r\n\\g<0>日\r\nlast".encode("utf-8", "surrogateescape")


def test_the_diff_counts_lines_and_is_capped(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("".join(f"line {number}\n" for number in range(1, 1001)))
    done = see(ReplaceInFile(), path=str(file), old="line 500\n", new="")
    assert done.diff.splitlines()[0] == "@@ -498,5 +498,4 @@"
    done = see(ReplaceInFile(), path=str(file), old="line", new="LINE", count=999)
    assert len(done.diff) < 4100
    assert done.diff.endswith("more characters)")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "not there": ({"old": "10.0.0.8"}, r"holds no such text, and count is 1"),
    "too often": ({"old": "0"}, r"that text 6 times \(lines 2, 2, 2, 3, 3, 3\), and count is 1"),
    "too seldom": ({"count": 2}, r"holds that text 1 times \(lines 2\), and count is 2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_text_that_is_not_there_so_often_changes_nothing(ini: Path, name: str) -> None:
    wish, words = REFUSED[name]
    with pytest.raises(ToolFailed, match=rf"{words}.*; nothing was changed"):
        see(ReplaceInFile(), path=str(ini), **(WISH | wish))
    assert [path.name for path in ini.parent.iterdir()] == [ini.name]
    assert ini.read_text() == INI


def test_only_text_files_of_a_fair_size_are_changed(tmp_path: Path, ini: Path) -> None:
    (tmp_path / "lib.so").write_bytes(b"ELF\x00 10.0.0.7")
    (tmp_path / "large").write_text("10.0.0.7" + "x" * 1_000_000)
    (tmp_path / "link").symlink_to(ini)
    os.mkfifo(tmp_path / "pipe")
    for name, words in {
        "lib.so": "is binary",
        "large": "has 1000008 bytes",
        "link": f"is a link to {ini}".replace("$", r"\$").replace("(x)", r"\(x\)"),
        "pipe": "is no regular file",
        "absent": "No such file",
        ".": "is no regular file",
    }.items():
        before = sorted(tmp_path.iterdir())
        with pytest.raises(ToolFailed, match=words):
            see(ReplaceInFile(), path=str(tmp_path / name), **WISH)
        assert sorted(tmp_path.iterdir()) == before


def test_a_folder_on_the_way_may_be_a_link_and_the_real_path_is_said(
    tmp_path: Path, ini: Path
) -> None:
    (tmp_path / "way").symlink_to(ini.parent)
    done = see(ReplaceInFile(), path=str(tmp_path / "way" / ini.name), **WISH)
    assert (done.path, done.headline().startswith(str(ini))) == (str(ini), True)


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv") or not Path("/usr/bin/python3").exists(),
    reason="needs root, setpriv and a Python that others may run",
)
def test_a_file_keeps_its_owner_or_is_not_changed(tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text('#!/bin/sh\nexec setpriv --reuid=65534 --clear-groups /usr/bin/python3 "$@"\n')
    other.chmod(0o755)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "x.ini").write_text(INI)
        (folder / "x.ini").chmod(0o644)
        with pytest.raises(ToolFailed, match="belongs to user 0, and only that user can change it"):
            see(ReplaceInFile(), other, path=str(folder / "x.ini"), **WISH)
        assert [path.name for path in folder.iterdir()] == ["x.ini"]
        folder.chmod(0o755)
        changes: list[tuple[Tool[Any, Any], dict[str, Any]]]
        changes = [(ReplaceInFile(), WISH), (SetAside(), {})]
        for tool, wish in changes:
            with pytest.raises(ToolFailed, match="Permission denied; nothing was changed"):
                see(tool, other, path=str(folder / "x.ini"), **wish)


def test_arguments_that_cannot_be_meant() -> None:
    for wish in ({"old": ""}, {"new": "10.0.0.7"}, {"new": "a\0"}, {"path": "x"}, {"count": 0}):
        with pytest.raises(ValidationError):
            ReplaceInFileArgs.model_validate({"path": "/x", **WISH, **wish})


# --- a broken environment is mended


def test_what_breaks_every_start_can_be_set_aside(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "v")
    site = site_packages(python)
    write_dist(site, "demo_hub-2.4.0", "demo-hub")
    (site / "sitecustomize.py").write_text("import os\nos._exit(9)\n")
    with pytest.raises(ToolFailed, match="exit 9"):
        see(PythonEnvironment(), python)
    assert "sitecustomize.py" in names(see(ListFolder(), python, path=str(site)))
    done = see(SetAside(), python, path=str(site / "sitecustomize.py"))
    assert see(PythonEnvironment(), python).versions == {"demo-hub": "2.4.0"}
    Path(done.backup).replace(done.path)
    with pytest.raises(ToolFailed, match="exit 9"):
        see(PythonEnvironment(), python)


def test_an_old_copy_that_comes_first_is_seen_and_set_aside(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "v")
    site = site_packages(python)
    for folder, version in ((site, "2.4.0"), (tmp_path / "tools", "0.4.0")):
        (folder / "demo_hub").mkdir(parents=True)
        (folder / "demo_hub" / "__init__.py").write_text(f"__version__ = '{version}'\n")
        write_dist(folder, f"demo_hub-{version}", "demo-hub")
    path_file = site / "first.pth"
    path_file.write_text(f"import sys; sys.path.insert(0, {str(tmp_path / 'tools')!r})\n")
    seen = see(ImportProbe(), python, modules=["demo_hub", "json"])
    words = f"demo_hub 0.4.0 imported from {tmp_path}/tools, but 2.4.0 is installed"
    assert (seen.odd, words in seen.headline()) == ([words], True)
    (item,) = see(PythonEnvironment(), python).startup
    assert item.source == str(path_file)
    see(SetAside(), python, path=item.source)
    seen = see(ImportProbe(), python, modules=["demo_hub"])
    assert (seen.modules["demo_hub"].version, seen.odd) == ("2.4.0", None)
    assert see(PythonEnvironment(), python).startup == []


# --- what a change touches, who allows it, and how it is taken back


SUBJECTS = {
    "/srv/env/lib/python3.12/site-packages/a.pth": ["/srv/env"],
    "/srv/env/lib64/python3.9/x.py": ["/srv/env"],
    "/srv/env/bin/serve": ["/srv/env"],
    "/srv/env/pip.conf": ["/srv/env"],
    "/srv/x/../env/pyvenv.cfg": ["/srv/env"],
    "/etc/pip.conf": [],
    "/home/ann/.config/pip/pip.conf": [],
    "/srv/launcher.ini": [],
    "/bin/serve": [],
}


@pytest.mark.parametrize("path", SUBJECTS)
def test_a_change_touches_the_file_and_its_environment(path: str) -> None:
    first, *more = SetAside().subjects(SetAsideArgs(path=path))
    assert first == Subject(kind="file", key=os.path.normpath(path))
    assert [(it.kind, it.key) for it in more] == [("environment", key) for key in SUBJECTS[path]]
    _, *said = SetAside().subjects(SetAsideArgs(path="/srv/a.ini", python="/srv/env/bin/python"))
    assert said == [Subject(kind="environment", key="/srv/env")]


@pytest.mark.parametrize("tool", [ReplaceInFile(), SetAside()], ids=lambda tool: tool.name)
def test_auto_never_grants_it_unasked(tool: Tool[Any, Any]) -> None:
    wanted = goal()
    path = f"{wanted.allow.paths[0]}/lib/python3.12/site-packages/x.pth"
    more = WISH if tool.name == "replace_in_file" else {}
    args = tool.args_type.model_validate({"path": path, **more})
    call = ToolCall(tool=tool.name, args=args.model_dump(mode="json"))
    decision = decide(policy_for(wanted, "auto"), call, tool.risk_of(args), tool.subjects(args))
    assert (decision.word, tool.risk_of(args)) == (Word.ASK, Risk.CHANGE)
    assert path in tool.title(args)
    assert f"mv {path}.bringup-" in (tool.undo_text(args) or "")


@pytest.mark.parametrize(("target", "prefix"), [("local", ""), ("h/box", "docker exec box ")])
def test_undo_names_the_command_which_does_it(ini: Path, target: str, prefix: str) -> None:
    done = see(SetAside(), sys.executable, path=str(ini))
    record = CallRecord(ToolCall(tool="set_aside", target=target), 1)
    assert by_hand(record) == "", "nothing is known to have happened"
    record.status, record.observation = CallStatus.OK, done.model_dump()
    words = by_hand(record)
    assert words.startswith(f"{prefix}mv ")
    assert not ini.exists()
    assert Local().run(Command.of("sh", "-c", words.removeprefix(prefix))).ok
    assert ini.read_text() == INI
