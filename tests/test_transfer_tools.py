"""The tool that copies: what it says before and after, and how a run's targets carry it out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agent.private_files import kept_private
from agent.values import Purpose, ToolCall
from tests.transfer_desk import big_file
from tools.base import CallContext, Risk
from tools.command import Command, Ending
from tools.connectors.local import Local
from tools.errors import ToolFailed
from tools.transfer import CopyFiles, CopyFilesArgs, FilesCopied
from tools.transfer_desk import carrying

CALL = CallContext(run_id="r1", call_id="t2.1", marker="m-1", host_dir="/nonexistent")
TOOL = CopyFiles()


def use(told: list[str] | None = None, **args: Any) -> FilesCopied:
    """Copy between this machine, and this machine as the target ``spark-1``."""
    checked = CopyFilesArgs.model_validate(args)
    target = carrying({"spark-1": Local()})["spark-1"]
    seen: list[str] = [] if told is None else told
    result = target.run(TOOL.command(checked, CALL), lambda stream, text: seen.append(text))
    return TOOL.parse(checked, CALL, result)


def test_there_and_back_with_progress_in_bytes(tmp_path: Path) -> None:
    big_file(tmp_path / "data", 3)
    told: list[str] = []
    sent = use(told, source=f"here:{tmp_path}/data", to=f"spark-1:{tmp_path}/copy")
    assert told[-1].startswith("copy: 100%, 3 of 3 MB, ")
    assert (sent.files, sent.bytes, sent.sent_bytes) == (1, 3 << 20, 3 << 20)
    back = use(source=f"spark-1:{tmp_path}/copy", to=f"here:{tmp_path}/back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "data").read_bytes()
    assert back.route == "relayed"
    assert "1 files" in back.headline()


def test_between_hosts_directly(tmp_path: Path) -> None:
    big_file(tmp_path / "data", 1)
    ends: dict[str, Any] = {"source": f"spark-1:{tmp_path}/data", "to": f"spark-1:{tmp_path}/copy"}
    done = use(**ends, direct="127.0.0.1")
    assert done.route == "direct, not encrypted, to 127.0.0.1"
    title = TOOL.title(CopyFilesArgs.model_validate({**ends, "direct": "127.0.0.1"}))
    assert "not encrypted" in title


def test_what_cannot_be_done_is_the_tools_no(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="no such file or folder"):
        use(source=f"here:{tmp_path}/none", to=f"spark-1:{tmp_path}/copy")
    with pytest.raises(ToolFailed, match="there is no host spark-7; known: here, spark-1"):
        use(source="spark-7:/x", to=f"spark-1:{tmp_path}/copy")


def test_it_ends_when_its_time_is_over(tmp_path: Path) -> None:
    big_file(tmp_path / "data", 1)
    args = CopyFilesArgs(source=f"here:{tmp_path}/data", to=f"spark-1:{tmp_path}/copy")
    command = replace(TOOL.command(args, CALL), timeout_s=0.01)
    result = carrying({"spark-1": Local()})["spark-1"].run(command)
    assert (result.ending, result.code) == (Ending.TIMED_OUT, None)
    assert "goes on from there" in result.stderr
    assert not (tmp_path / "copy").exists()


def test_other_commands_are_the_targets_own() -> None:
    target = carrying({"spark-1": Local()})["spark-1"]
    result = target.run(Command.of("sh", "-c", "echo one; exit 3"))
    assert (result.ending, result.code, result.stdout) == (Ending.EXITED, 3, "one\n")


def test_it_is_a_change_of_the_copy_alone() -> None:
    args = CopyFilesArgs(source="here:/a/b", to="spark-1:/srv/x/../b", replace=True)
    assert TOOL.risk_of(args) is Risk.CHANGE
    assert [str(it) for it in TOOL.subjects(args)] == ["file /srv/b"]
    assert "NAME.before-" in TOOL.undo_text(args)


def test_the_command_shows_people_what_goes_where() -> None:
    args = CopyFilesArgs(source="here:/a b", to="spark-1:/b", direct="10.0.0.2")
    command = TOOL.command(args, CALL)
    assert command.text == "copy --direct 10.0.0.2 -- 'here:/a b' spark-1:/b"
    assert json.loads(command.stdin or "")["tag"] == "r1-t2.1"


@pytest.mark.parametrize(
    "place", ["spark-1", "/a", "spark-1:a", ":/a", "-x:/a", "a:/b\0c", "a/:/b"]
)
def test_a_place_is_a_host_and_an_absolute_path(place: str) -> None:
    with pytest.raises(ValidationError):
        CopyFilesArgs(source=place, to="here:/x")


@pytest.mark.parametrize(
    ("source", "to"),
    [
        ("here:/root/.ssh/id_ed25519", "spark-1:/tmp/x"),
        ("spark-1:/etc/shadow", "here:/tmp/x"),
        ("here:/tmp/x", "spark-1:/root/.ssh/authorized_keys"),
        ("here:/root", "spark-1:/tmp/x"),
    ],
)
def test_keys_and_passwords_are_not_carried_away(source: str, to: str) -> None:
    call = ToolCall(
        id="t1.1",
        tool="copy_files",
        args={"source": source, "to": to},
        target="spark-1",
        purpose=Purpose(),
    )
    assert kept_private(call)


def test_weights_are_carried() -> None:
    args = {"source": "here:/data/models/tiny", "to": "spark-1:/srv/models/tiny"}
    call = ToolCall(id="t1.1", tool="copy_files", args=args, target="spark-1", purpose=Purpose())
    assert not kept_private(call)
