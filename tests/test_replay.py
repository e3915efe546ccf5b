"""Replay: whatever was changed in a recording is found where it begins to matter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.engine import loop
from agent.replay import Difference, replay
from agent.session import Session
from agent.transcript import TranscriptError
from tests.lab.world_runs import play
from tests.lab.worlds import World
from tests.test_replay_runs import graph, same

Line = dict[str, Any]


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return play(tmp_path_factory.mktemp("ready"), World(load_s=0.2))


def lines(run: Session) -> list[Line]:
    return [json.loads(line) for line in run.folder.transcript.read_text("utf-8").splitlines()]


def index(rows: list[Line], kind: str, call_id: str) -> int:
    """The place of a call's event of that type."""
    ids = [(row["type"], row.get("call_id") or row.get("call", {}).get("id")) for row in rows]
    return ids.index((kind, call_id))


def differs(folder: Path, rows: list[Line]) -> Difference:
    """Write a changed recording, play it, and return the first difference; both drivers agree."""
    path = folder / "changed.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = replay(path, loop).difference
    assert found is not None
    assert found == replay(path, graph).difference
    return found


def test_a_changed_result_shows_in_what_was_read_from_it(tmp_path: Path, ready: Session) -> None:
    rows = lines(ready)
    k = index(rows, "call_sampled", "t1.1")
    rows[k]["result"]["stdout"] = rows[k]["result"]["stdout"].replace("qwen3_5", "qwen9")
    found = differs(tmp_path, rows)
    assert found.event == f"e{k + 1}"
    assert found.field == "observation.model_type"
    assert (found.recorded, found.now) == ("qwen3_5_text", "qwen9_text")


def test_a_changed_exit_code_shows(tmp_path: Path, ready: Session) -> None:
    rows = lines(ready)
    k = index(rows, "call_sampled", "t3.2")
    rows[k]["result"] |= {"code": 1, "stdout": "", "stderr": "ERROR: no luck"}
    found = differs(tmp_path, rows)
    assert (found.event, found.field) == (f"e{k + 1}", "status")
    assert (found.recorded, found.now) == ("ok", "failed")


def test_a_changed_reply_shows_where_it_is_acted_on(tmp_path: Path, ready: Session) -> None:
    rows = lines(ready)
    k = next(i for i, row in enumerate(rows) if row["type"] == "reply" and row["turn"] == 3)
    pins = rows[k]["calls"][1]["args"]["requirements"]
    rows[k]["calls"][1]["args"]["requirements"] = [pin.replace("24", "23") for pin in pins]
    found = differs(tmp_path, rows)
    taken_up = index(rows, "call_queued", "t3.2")
    assert found.event == f"e{taken_up}"
    assert found.field == "call.args.requirements"
    assert "5.24.0" in found.recorded
    assert "5.23.0" in found.now


def test_a_changed_verdict_shows(tmp_path: Path, ready: Session) -> None:
    rows = lines(ready)
    k = next(i for i, row in enumerate(rows) if row["type"] == "fix_closed")
    rows[k]["verdict"] = "refuted"
    found = differs(tmp_path, rows)
    assert (found.event, found.field, found.now) == (f"e{k}", "verdict", "verified")


@pytest.mark.parametrize(
    ("kind", "call_id"),
    [
        ("call_queued", "t1.1"),
        ("call_started", "t1.1"),
        ("call_sampled", "t1.1"),
        ("call_ended", "t1.1"),
        ("call_queued", "s2"),
        ("call_started", "t3.2"),
    ],
)
def test_a_dropped_event_shows_at_its_place(
    tmp_path: Path, ready: Session, kind: str, call_id: str
) -> None:
    rows = lines(ready)
    k = index(rows, kind, call_id)
    del rows[k]
    found = differs(tmp_path, rows)
    assert found.event == f"e{k + 1}", "the event that stands there now"
    assert found.field in {"type", "command"}


@pytest.mark.parametrize("kind", ["request", "reply", "diagnosis", "fix_opened", "claim", "check"])
def test_a_dropped_event_of_the_run_shows(tmp_path: Path, ready: Session, kind: str) -> None:
    rows = lines(ready)
    k = next(i for i, row in enumerate(rows) if row["type"] == kind)
    del rows[k]
    found = differs(tmp_path, rows)
    assert found.event == f"e{k + 1}"
    assert found.field in {"type", "command"}


def test_an_added_command_shows(tmp_path: Path, ready: Session) -> None:
    rows = lines(ready)
    first, last = index(rows, "call_queued", "t1.1"), index(rows, "call_ended", "t1.1")
    added = json.loads(json.dumps(rows[first : last + 1]).replace("t1.1", "t1.2"))
    rows[last + 1 : last + 1] = added
    found = differs(tmp_path, rows)
    assert found.event == f"e{first}", "it stands where the first of the two stands"
    assert found.field == "type"
    assert found.recorded == "call_queued"


def test_a_command_that_the_recording_does_not_have_shows(tmp_path: Path, ready: Session) -> None:
    rows = lines(ready)
    k = index(rows, "call_sampled", "t3.2")
    rows[k]["argv"] = ["rm", "-r", "/"]
    found = differs(tmp_path, rows)
    assert (found.event, found.field) == (f"e{k}", "command")
    assert found.recorded == "rm -r /"
    assert "pip" in found.now


def test_a_changed_policy_shows(tmp_path: Path, ready: Session) -> None:
    rows = lines(ready)
    rows[0]["policy"]["mode"] = "supervised"
    found = differs(tmp_path, rows)
    assert (found.field, found.now) == ("type", "approval_asked")


def test_a_recording_that_ends_early_is_the_same_as_far_as_it_goes(
    tmp_path: Path, ready: Session
) -> None:
    path = tmp_path / "cut.jsonl"
    whole = ready.folder.transcript.read_bytes().splitlines(keepends=True)
    for k in range(20, len(whole), 7):
        path.write_bytes(b"".join(whole[:k]))
        same(path)


def test_what_is_no_recording_is_refused(tmp_path: Path, ready: Session) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("{}\n", encoding="utf-8")
    with pytest.raises(TranscriptError):
        replay(path)
    rows = ready.folder.transcript.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rows[1:]))
    with pytest.raises(TranscriptError, match="begins with run_started"):
        replay(path)
