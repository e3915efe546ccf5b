"""``bringup copy``: places as words, what it says, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cli import main
from agent.cli.copy import from_home
from tests.lab.sshd import server
from tests.transfer_desk import big_file, odd_tree, seen


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with server(tmp_path / "sshd") as sshd:
        monkeypatch.setenv("BRINGUP_SSH_CONFIG", str(sshd.config))
        yield


@pytest.mark.usefixtures("spark")
def test_to_a_host_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = odd_tree(tmp_path / "tiny model")
    assert main(["copy", str(tree), f"spark:{tmp_path}/there/"]) == 0
    assert seen(tmp_path / "there/tiny model") == seen(tree)
    assert "relayed" in capsys.readouterr().out
    assert main(["copy", f"spark:{tmp_path}/there/tiny model", str(tmp_path / "b"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["sent_files"] == said["files"] > 10
    assert seen(tmp_path / "b") == seen(tree)


@pytest.mark.usefixtures("spark")
def test_from_host_to_host_directly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    big_file(tmp_path / "data", 2)
    words = [f"spark:{tmp_path}/data", f"spark:{tmp_path}/copy", "--direct", "127.0.0.1"]
    assert main(["copy", *words]) == 0
    assert "direct, not encrypted" in capsys.readouterr().out
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "data").read_bytes()


def test_what_is_there_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("new", "old"):
        (tmp_path / name).write_text(f"{name}er")
    (tmp_path / "new").write_text("new one")
    ends = [str(tmp_path / "new"), str(tmp_path / "old")]
    assert main(["copy", *ends]) == 1
    assert "with other content" in capsys.readouterr().err
    assert main(["copy", "--replace", *ends]) == 0
    assert (tmp_path / "old").read_text() == "new one"
    (kept,) = tmp_path.glob("old.before-*")
    assert kept.read_text() == "older"


def test_a_host_that_is_away_is_exit_code_5(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").touch()
    assert main(["copy", str(tmp_path / "x"), "127.0.0.1:1:/srv/x", "--json"]) == 5
    assert json.loads(capsys.readouterr().out)["exit_code"] == 5


@pytest.mark.parametrize(
    ("path", "seen_from_home"),
    [("~", "."), ("~/", "."), ("", "."), ("~/a/~", "a/~"), ("~//a", "a"), ("/~", "/~"), ("a", "a")],
)
def test_the_logins_home_is_where_a_path_begins(path: str, seen_from_home: str) -> None:
    assert from_home(path, f"spark:{path}") == seen_from_home


@pytest.mark.usefixtures("spark")
def test_anothers_home_is_no_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["copy", "spark:~bob/x", "/nonexistent/y"]) == 2
    assert "only one's own ~ is known" in capsys.readouterr().err


@pytest.mark.parametrize(("source", "to"), [("/", "here/"), ("..", "x/")])
def test_a_source_without_a_name_needs_one(
    source: str, to: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["copy", source, to]) == 2
    assert "say which the copy gets" in capsys.readouterr().err
