"""A run's long outputs: named in its record, kept in its folder, shown, and redacted in both."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import approval, dispatch, session
from agent.brains.playbook import Playbook
from agent.events import CallSampled
from agent.runs import new_run
from agent.timeline import plain
from agent.transcript import read
from agent.values import ToolCall
from tests.lab.runs import serve_goal

HIDDEN = "a-token-nobody-knows"


def begin(folder: Path) -> session.Session:
    goal = serve_goal(folder, folder / "env")
    return session.begin(
        goal,
        approval.policy_for(goal, "auto"),
        new_run(folder / "runs"),
        brain=Playbook(),
        interactive=False,
        environ={"HF_TOKEN": HIDDEN},
    )


def say(begun: session.Session, number: int, script: str) -> None:
    call = ToolCall(id=f"t{number}", tool="shell", target="local", args={"command": script})
    ready = dispatch.prepare(begun.run, call)
    dispatch.queue(begun.run, ready, "brain")
    dispatch.execute(begun.run, ready)


def test_a_record_names_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    begun = begin(tmp_path)
    folder = begun.folder
    say(begun, 1, f"for n in $(seq 20000); do echo line $n {HIDDEN} {tmp_path}/env/x; done")
    say(begun, 2, "seq 200")
    begun.close()
    again = session.take_up(folder, environ={"HF_TOKEN": HIDDEN})
    say(again, 3, f"for n in $(seq 20000); do echo line $n {HIDDEN} {tmp_path}/env/x; done")
    again.close()
    events = read(folder.transcript).events
    first, second, third = (event.result for event in events if isinstance(event, CallSampled))
    assert second.stdout_kept is None
    assert first.stdout_kept is not None
    assert third.stdout_kept == first.stdout_kept, "the same output is kept once"
    (path,) = (folder.folder / "outputs").iterdir()
    text = path.read_text()
    assert text == "".join(f"line {n} «secret:HF_TOKEN» «env»/x\n" for n in range(1, 20001))
    assert (path.name, path.stat().st_size) == (first.stdout_kept.sha256, first.stdout_kept.bytes)
    assert HIDDEN not in folder.transcript.read_text()
    shown = plain(events, width=200)
    assert shown.count(f"the whole stdout: outputs/{path.name}") == 2


def test_nothing_is_kept_where_nothing_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRINGUP_KEPT_OUTPUT_MIB", "0")
    (tmp_path / "model").mkdir()
    begun = begin(tmp_path)
    say(begun, 1, "seq 200000")
    (sample,) = (event for event in begun.transcript.events if isinstance(event, CallSampled))
    begun.close()
    assert sample.result.stdout_kept is None
    assert sample.result.stdout_omitted > 0
    assert not (begun.folder.folder / "outputs").exists()
