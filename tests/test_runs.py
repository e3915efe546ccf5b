"""Run folders: made once, found by name, and never outside their folder."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent import runs
from agent.events import NoteAdded, RunEnded, RunStarted
from agent.redact import Redactor
from agent.runs import RunError, RunFolder
from agent.settings import Settings
from agent.transcript import Transcript
from agent.values import Outcome

NOW = datetime(2026, 11, 30, 14, 22, 33, tzinfo=UTC)
NOTHING = Redactor({}, {})


def started(run: RunFolder, at: str) -> RunStarted:
    return RunStarted(
        run_id=run.id,
        started_at=at,
        seed="5eed",
        version="0.1.0",
        goal={"model": "m"},
        brain="playbook",
        mode="auto",
        interactive=False,
    )


def write(run: RunFolder, at: str, *, end: bool = True, notes: int = 0) -> Transcript:
    transcript = Transcript.create(run.transcript, NOTHING)
    transcript.append(started(run, at), *[NoteAdded(text="n" * 1000)] * notes)
    if end:
        transcript.append(RunEnded(outcome=Outcome.READY, exit_code=0, summary="ready"))
    return transcript


def test_where_runs_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("BRINGUP_RUNS_DIR", raising=False)
    monkeypatch.setenv("BRINGUP_CONFIG", "")
    default = runs.runs_dir(Settings())
    assert default.name == "runs"
    assert tmp_path in default.parents
    assert runs.runs_dir(Settings(runs_dir=Path("~/r"))) == tmp_path / "r"
    assert runs.runs_dir(Settings(runs_dir=Path("r"))) == Path.cwd() / "r"


def test_ids_come_from_time_and_seed(tmp_path: Path) -> None:
    first = runs.new_run(tmp_path / "runs", seed="a", now=NOW)
    assert first.id == "20261130-142233-ca97"
    assert runs.new_run(tmp_path / "runs", seed="a", now=NOW).id == "20261130-142233-ca978"
    assert runs.new_run(tmp_path / "runs", seed="b", now=NOW).id == "20261130-142233-3e23"
    assert runs.new_run(tmp_path / "runs").id != runs.new_run(tmp_path / "runs").id
    assert runs.new_seed() != runs.new_seed()


def test_folders_and_files_are_private(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        run = runs.new_run(tmp_path / "runs", "mine")
        run.write_private({"home": "/home/u"})
        run.write_private({"home": "/home/v"})
        write(run, "2026-11-30T14:22:33Z").close()
    finally:
        os.umask(old)
    modes = {item.name: stat.S_IMODE(item.stat().st_mode) for item in run.folder.iterdir()}
    assert modes == {"transcript.jsonl": 0o600, "private.json": 0o600, "lock": 0o600}
    assert stat.S_IMODE(run.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "runs").stat().st_mode) == 0o700
    assert run.read_private() == {"home": "/home/v"}


def test_a_run_without_a_private_file_and_with_a_damaged_one(tmp_path: Path) -> None:
    run = runs.new_run(tmp_path)
    assert run.read_private() == {}
    for text in ("", "[1]", '{"paths": 3}', "{}"):
        run.private.write_text(text)
        with pytest.raises(RunError, match=r"private.json: damaged: "):
            run.read_private()


BAD_NAMES = ["../x", "..", ".", "/etc", "a/b", "a\0b", "a\nb", "a\n", "-x", "ä", "x" * 81, "a b"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    (tmp_path / "x").mkdir()
    with pytest.raises(RunError, match="cannot name a run"):
        runs.new_run(folder, name)
    with pytest.raises(RunError, match="cannot name a run"):
        runs.find_run(folder, name)
    assert list(folder.iterdir()) == []


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    run = runs.new_run(tmp_path, "mine")
    assert run == RunFolder(tmp_path / "mine", "mine")
    with pytest.raises(RunError, match=r"mine: exists already; choose another name"):
        runs.new_run(tmp_path, "mine")
    with pytest.raises(RunError, match="cannot name a run"):
        runs.new_run(tmp_path, "last")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="BRINGUP_RUNS_DIR"):
        runs.new_run(tmp_path / "file" / "runs")
    with pytest.raises(RunError, match="cannot list the runs"):
        runs.find_run(tmp_path / "file", "x")


def test_links_are_refused(tmp_path: Path) -> None:
    folder, outside = tmp_path / "runs", tmp_path / "outside"
    write(RunFolder(outside, "outside"), "2026-11-30T14:22:33Z").close()
    run = runs.new_run(folder, "inner")
    run.transcript.symlink_to(outside / "transcript.jsonl")
    (folder / "link").symlink_to(outside)
    for name in ("link", "inner"):
        with pytest.raises(RunError, match="a link, and a run is a real folder"):
            runs.find_run(folder, name)
    (only,) = runs.list_runs(folder)
    assert (only.run.id, only.state) == ("inner", "unreadable")


def test_find(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no runs here yet; `bringup deploy GOAL` starts one"):
        runs.find_run(tmp_path / "none", "last")
    for name, at in [
        ("20261130-1", "2026-11-30T10:00:00+01:00"),
        ("20261130-12", "2026-11-30T09:30:00Z"),
        ("named", "2026-11-30T12:00:00+03:00"),
    ]:
        write(runs.new_run(tmp_path, name), at).close()
    assert runs.find_run(tmp_path, "20261130-1").id == "20261130-1"
    assert runs.find_run(tmp_path, "20261130-12").id == "20261130-12"
    assert runs.find_run(tmp_path, "na").folder == tmp_path / "named"
    assert runs.find_run(tmp_path, "last").id == "20261130-12"
    with pytest.raises(RunError, match=r"2026 fits 2 runs: 20261130-1, 20261130-12; type more"):
        runs.find_run(tmp_path, "2026")
    with pytest.raises(RunError, match="no run is called nope; `bringup runs` lists them"):
        runs.find_run(tmp_path, "nope")


def test_list_tells_how_runs_stand(tmp_path: Path) -> None:
    write(runs.new_run(tmp_path, "ended"), "2026-11-30T14:00:05Z", notes=200).close()
    write(runs.new_run(tmp_path, "broken"), "2026-11-30T14:00:04Z", end=False).close()
    torn = runs.new_run(tmp_path, "torn")
    write(torn, "2026-11-30T14:00:03Z").close()
    with torn.transcript.open("ab") as file:
        file.write(b'{"seq":' + b"9" * 300_000)
    damaged = runs.new_run(tmp_path, "damaged")
    damaged.transcript.write_bytes(b"\x80\x04pickle\n")
    runs.new_run(tmp_path, "empty")
    (tmp_path / "a file").touch()
    live = write(runs.new_run(tmp_path, "live"), "2026-11-30T14:00:06Z", end=False)
    found = runs.list_runs(tmp_path)
    live.close()
    assert [(item.run.id, item.state) for item in found] == [
        ("live", "running"),
        ("ended", "ready"),
        ("broken", "broken off"),
        ("torn", "ready"),
        ("empty", "unreadable"),
        ("damaged", "unreadable"),
    ]
    assert found[0].pid == os.getpid()
    assert found[1].last is not None
    assert found[1].last.seq == 201
    assert runs.list_runs(tmp_path)[0].state == "broken off"
