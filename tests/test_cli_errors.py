"""Bad input: one clear line that says what, where and what to do; exit code 2; no traceback."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.cli import main
from tests.lab.command import Desk, desk
from tests.lab.need import need

Typed = Callable[..., str]
SITE = "model: model\ncandidates:\n  - venv: env\n"


@pytest.fixture
def here(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path, tmp_path_factory.getbasetemp() / "kept-desk") as made:
        yield made


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Typed:
    """Type a line in a folder of its own, with and without --json; return what it complains of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BRINGUP_RUNS_DIR", str(tmp_path / "runs"))

    def type_line(*words: str) -> str:
        assert main([*words]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith("bringup: ")
        assert shown.err.count("\n") == 1, "one line"
        assert main([*words, "--json"]) == 2
        as_json = capsys.readouterr()
        assert as_json.err == ""
        complaint = json.loads(as_json.out)
        assert complaint == {"error": complaint["error"], "exit_code": 2}
        assert shown.err == f"bringup: {complaint['error']}\n"
        return str(complaint["error"])

    return type_line


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("frob", "unknown verb `frob`; `bringup --help` lists the verbs"),
        ("deplo", "unknown verb `deplo`; did you mean `deploy`?"),
        ("--frob", "unknown option `--frob`; `bringup --help` lists the verbs"),
        ("deploy", "deploy: missing argument 'GOAL'; `bringup deploy --help` shows how"),
        ("deploy a b", "deploy: got unexpected extra argument(s) (b); "),
        ("runs --frob", "runs: no such option: --frob; `bringup runs --help` shows how"),
        ("demo --port x", "demo: invalid value for '--port': "),
        ("demo --port 0", "demo: port: input should be greater than or equal to 1 (got 0)"),
        ("demo --mode fast", "--mode: input should be 'read-only', 'supervised' or 'auto'"),
        ("demo --brain gut", "there is no brain `gut`; known: playbook"),
        ("deploy goal.yaml --mode fast", "--mode: input should be 'read-only', 'supervised' or"),
        ("deploy goal.yaml --on-ask guess", "--on-ask: input should be 'park' or 'deny'"),
        ("deploy goal.yaml --brain gut", "there is no brain `gut`; known: playbook"),
        ("show nope", "/runs: no run is called nope; `bringup runs` lists them"),
        ("show last", "/runs: no runs here yet; `bringup deploy GOAL` starts one"),
        ("show a/b.jsonl", "a/b.jsonl: no such file; name a transcript, or a run"),
        ("show ./", "./: not a file; name a transcript, or a run"),
        ("show ;rm", "';rm' cannot name a run: use letters, digits, '.', '_' and '-'"),
        ("resume nope", "no run is called nope"),
        ("approve nope", "no run is called nope"),
        ("stop nope", "no run is called nope"),
        ("verify nope", "no run is called nope"),
    ],
)
def test_wrong_usage(typed: Typed, line: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "goal.yaml").write_text(SITE, encoding="utf-8")
    assert complaint in typed(*line.split())
    assert not list((tmp_path / "runs").glob("*")), "no run has begun"


def test_a_value_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["deploy", "goal.yaml", "--mode"]) == 2
    words = "bringup: deploy: option '--mode' requires an argument; `bringup deploy --help`"
    assert capsys.readouterr().err.startswith(words)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: [1,\n", "goal.yaml, line 2: "),
        ("", "goal.yaml: a goal is a mapping of keys; see `bringup deploy --help`"),
        ("- a\n", "goal.yaml: a goal is a mapping of keys; see `bringup deploy --help`"),
        ("\udcff\udcfe", "goal.yaml: cannot read the goal file: not UTF-8 text"),
        (f"{SITE}model: other\n", "goal.yaml, line 4: the key `model` stands twice"),
        ("model: m\ncandidats: []\n", "unknown key `candidats`; did you mean `candidates`?"),
        (f"{SITE}    engin: x\n", "unknown key `candidates.0.engin`; did you mean `engine`?"),
        (f"{SITE}    engine: transfomers\n", "unknown engine `transfomers`; did you mean"),
        (f"{SITE}    engine: custom\n", "an engine `custom` needs `serve`"),
        (f"{SITE}port: 70000\n", "port: input should be less than or equal to 65535 (got 70000)"),
        (f"{SITE}port: many\n", "port: input should be a valid integer"),
        (f"{SITE}checks: [healt]\n", "unknown check `healt`; did you mean `health`?"),
        (f"{SITE}kind: train\n", "kind: train is not built yet; use serve or diagnose"),
        ("model: m\ncandidates:\n  - venv: ~nobody-here/env\n", "there is no such user"),
        ("model: m\n", "the key `candidates` is missing"),
        (f"model: [{'x,' * 5000}]\n", "model: input should be a valid string (got ['x', 'x'"),
    ],
)
def test_a_goal_that_cannot_be_used(
    typed: Typed, text: str, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "goal.yaml").write_bytes(text.encode("utf-8", "surrogateescape"))
    found = typed("deploy", "goal.yaml")
    assert complaint in found
    assert len(found) < 200
    assert not (tmp_path / "runs").exists(), "nothing has been done"


def test_a_goal_file_that_cannot_be_read(typed: Typed, tmp_path: Path) -> None:
    missing = "goal.yaml: cannot read the goal file: No such file or directory"
    assert typed("deploy", "goal.yaml") == missing
    (tmp_path / "goal.yaml").mkdir()
    folder = "goal.yaml: cannot read the goal file: Is a directory"
    assert typed("deploy", "goal.yaml") == folder


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "file: not a transcript of bringup, or torn: it is empty"),
        (b"\x00\xff\x00", "file: not a transcript of bringup, or torn: no whole event is in it"),
        (b"root:x:0:0\nand more\n", "file: not a transcript of bringup: Invalid JSON"),
        (b'{"type": "run_started", "format": 99}\n', "file: written in format 99, and this"),
    ],
)
def test_a_file_that_is_no_transcript(
    typed: Typed, text: bytes, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(text)
    assert complaint in typed("show", "file")
    assert main(["replay", "file"]) == 2


RUNS_DIRS = {"file": "a file is in its place", "file/runs": "Not a directory"}


@pytest.mark.parametrize("verb", ["deploy", "demo"])
@pytest.mark.parametrize("place", [*RUNS_DIRS, "/proc/bringup", "disk/runs"])
def test_a_runs_folder_that_cannot_be_made(
    typed: Typed, verb: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "goal.yaml").write_text(SITE, encoding="utf-8")
    (tmp_path / "file").touch()
    if place.startswith("disk"):
        mounted(tmp_path / "disk", "ro")
    monkeypatch.setenv("BRINGUP_RUNS_DIR", str(tmp_path / place))
    try:
        options = ["goal.yaml"] if verb == "deploy" else ["--folder", str(tmp_path / "demo")]
        complaint = typed(verb, *options)
    finally:
        if place.startswith("disk"):
            subprocess.run(["umount", tmp_path / "disk"], check=True)
    reason = RUNS_DIRS.get(place, "")
    assert f"{tmp_path / place}: cannot make the run's folder: {reason}" in complaint
    assert complaint.endswith("; make it writable, or set BRINGUP_RUNS_DIR to a folder that is")
    assert not (tmp_path / "demo").exists(), "nothing has been done"


def mounted(folder: Path, options: str) -> None:
    """Mount a file system in memory, or skip."""
    folder.mkdir()
    need(os.geteuid() == 0, "a tmpfs can only be mounted by root")
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    need(done.returncode == 0, f"a tmpfs cannot be mounted: {done.stderr.strip()}")


@pytest.mark.parametrize("place", ["file", "/proc/demo"])
def test_a_demo_folder_that_cannot_be_made(typed: Typed, place: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    complaint = typed("demo", "--folder", place)
    assert f"{tmp_path / place}: cannot write the demo's folder: " in complaint
    assert complaint.endswith("; make it writable, or name another with --folder")


def test_a_model_without_a_configuration(here: Desk) -> None:
    here.goal(model="home")
    done = here.bringup("deploy", "goal.yaml")
    assert done.code == 1
    cause = "there is no config.json at [HOME]"
    assert f"NOT REACHED\n{cause}\nseen in: e19\nadvice: Name a model" in here.text(done.err)


def test_a_run_whose_record_is_damaged(
    here: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line in turn is lost: what is left can be shown, and nothing ends in a traceback."""
    here.goal()
    assert here.bringup("deploy", "goal.yaml").code == 3
    (run,) = here.runs.iterdir()
    monkeypatch.setenv("BRINGUP_RUNS_DIR", str(here.runs))
    whole = (run / "transcript.jsonl").read_bytes().splitlines(keepends=True)
    refused = 0
    for number in range(1, len(whole)):
        lines = [*whole[:number], b"lost\n", *whole[number + 1 :]]
        (run / "transcript.jsonl").write_bytes(b"".join(lines))
        words = f"line {number + 1} cannot be read and is left out"
        assert main(["show", run.name]) == 0
        assert words in capsys.readouterr().out
        for verb in ("stop", "replay"):
            code = main([verb, run.name])
            said = capsys.readouterr().err
            assert code in (0, 1) or (code == 2 and words in said)
            refused += "it can be shown, and not" in said
    assert refused
    (run / "transcript.jsonl").write_bytes(b"".join(whole))
    check_without_paths(run, capsys)


def check_without_paths(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A record that came without the paths behind its placeholders can be shown, and no more."""
    (run / "private.json").unlink()
    assert main(["show"]) == 0
    assert main(["approve"]) == 2
    complaint = f"bringup: {run / 'private.json'}: does not tell the path of «bringup», «env»"
    assert complaint in capsys.readouterr().err
    (run / "private.json").write_text("{", encoding="utf-8")
    assert main(["runs"]) == 0
    assert main(["show"]) == 2
    assert "private.json: damaged" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["100k", "2m"])
def test_a_demo_without_room(here: Desk, size: str) -> None:
    disk = here.folder / "disk"
    mounted(disk, f"size={size}")
    try:
        done = here.bringup("demo", "--folder", "disk/demo")
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)
    assert done.code == 1
    last = done.err.splitlines()[-1]
    assert last.startswith(f"bringup: {disk}/demo")
    assert "No space left on device" in last
    assert "Traceback" not in done.err


def test_a_demo_without_an_index(here: Desk) -> None:
    nothing = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    done = here.bringup("demo", **nothing, PIP_EXTRA_INDEX_URL="", PIP_INDEX_URL="")
    assert done.code == 1
    assert done.err.splitlines()[-1].startswith("bringup: pip cannot find torch==")
    assert done.err.endswith("; see whether it reaches its index (`pip config list`)\n")
    assert not any(here.runs.iterdir()), "no run has begun"
