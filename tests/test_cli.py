"""The command line as on a terminal: what is typed, what comes back word for word, the exit code.

In what is compared, times, run ids, paths and ports have names in brackets.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.cli import VERBS, main
from tests.lab.command import BRINGUP, RUN, Desk, desk
from tests.lab.terminal import CONTROLS, Pty

FULL = "bringup: standard output: cannot write: No space left on device\n"
HELP = """\
Brings up LLM servers on machines you name, and proves that they are up.

Usage: bringup VERB [OPTIONS] ...    (bringup VERB --help shows an example)

Runs:
  deploy    bring a goal's server up, and prove it
  provision make a bare host ready: Python, Docker, GPUs, limits
  demo      do the main job here, on a small true model
  resume    go on with a run that was parked or broke off
  approve   answer what a parked run asks, and go on
  stop      stop what a run left running
  undo      take back what a run has done to a host
  clean     remove what runs have left on a host
  verify    run a finished run's checks again, without a brain

Looking back:
  runs      list the runs
  show      show a run or a transcript as a timeline
  replay    play transcripts again offline and compare

Questions:
  doctor    what machines are, what is wrong there, and what to do

Files:
  copy      copy files to, from or between hosts; what broke off goes on

Exit codes of runs: 0 ready, 1 not reached, 2 wrong usage or input, 3 parked,
4 limit, 5 unreachable, 130 interrupted.
"""

PARKED = """\
[TIME] asks: a1: Start a server as a detached job; watch_server tells when it answers.
PARKED
It waits for an answer; nothing is lost.
a1: Start a server as a detached job; watch_server tells when it answers.
command: sh -s -- [MARKER] [HOME]/.local/state/bringup/runs/[RUN]/host/jobs [RUN]-t2.1 '' \
[HERE]/env/bin/python [SERVER] [PORT] 0
touches: job custom, port [PORT], program [HERE]/env/bin/python
why: What it needs is there. Starting the server on port [PORT].
asked as: supervised: every change is asked about
answer: bringup approve [RUN]
bringup show [RUN]
[HOME]/.local/state/bringup/runs/[RUN]/transcript.jsonl
"""

READY = """\
[TIME] claims: All checks hold; asking for the verdict.
[TIME] check: ✓ process_up: pid [PID]
[TIME] check: ✓ health: healthy after [TIME]
[TIME] check: ✓ chat: a well-formed answer of 1 tokens
READY
http://127.0.0.1:[PORT]
ready after [TIME] · loaded in [TIME]
[RATE] tokens/s
✓ process_up: pid [PID]
✓ health: healthy after [TIME]
✓ chat: a well-formed answer of 1 tokens
still runs: [RUN]-t2.1 (bringup stop [RUN] ends it)
curl http://127.0.0.1:[PORT]/v1/chat/completions -H 'Content-Type: application/json' \
-d '{"model": "[HERE]/model", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 32}'
bringup show [RUN]
[HOME]/.local/state/bringup/runs/[RUN]/transcript.jsonl
"""


@pytest.fixture
def here(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path, tmp_path_factory.getbasetemp() / "kept-desk") as made:
        yield made


def session(here: Desk, *lines: str) -> str:
    """Type commands one after the other; return what a terminal would show, and exit codes."""
    shown = []
    for line in lines:
        done = here.bringup(*line.split())
        shown.append(f"$ bringup {line}\n{here.text(done.out + done.err)}exit {done.code}\n")
    return "".join(shown)


def test_help(here: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    done = here.bringup("--help")
    assert (done.code, done.out, done.err) == (0, HELP, "")
    for words, code in (["-h"], 0), (["help"], 0), ([], 2):
        assert main(words) == code
        assert capsys.readouterr().out == HELP


def test_version(here: Desk) -> None:
    done = here.bringup("--version")
    assert (done.code, done.out) == (0, f"bringup {importlib.metadata.version('bringup')}\n")


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    page = capsys.readouterr().out
    assert main([verb, "-h"]) == 0
    assert capsys.readouterr().out == page
    assert max(map(len, page.splitlines())) <= 80
    assert re.search(rf"(?m)xample:\n\n      bringup {verb}", page), "it has an example"
    options = re.findall(r"(?m)^  (?:-h, )?(--[a-z-]+)(?: <\w+>)?(.*)", page)
    assert {"--help", "--json"} <= {name for name, _ in options}
    assert all(len(text.split()) >= 3 for _, text in options), "every option is explained"


def test_a_run_from_question_to_stop(here: Desk) -> None:
    here.goal()
    parked = here.bringup("deploy", "goal.yaml")
    assert (parked.code, parked.out) == (3, "")
    assert here.text(parked.err).endswith(PARKED)
    assert session(here, "runs", "approve --answer maybe", "approve --approval a9", "resume") == (
        "$ bringup runs\n"
        "[RUN]  parked       [HERE]/model\n"
        "exit 0\n"
        "$ bringup approve --answer maybe\n"
        "bringup: a1: maybe: answer one of yes, no, stop\n"
        "exit 2\n"
        "$ bringup approve --approval a9\n"
        "bringup: a9 is not waiting for an answer\n"
        "exit 2\n"
        f"$ bringup resume\n{here.text(parked.err)}exit 3\n"
    )
    assert here.bringup("show").out.endswith(f": bringup approve {name(parked.err)}\n")

    ready = here.bringup("approve")
    assert (ready.code, ready.out) == (0, "")
    assert here.text(ready.err).endswith(READY)
    verified = session(here, "runs", "approve", "verify", "replay last", "stop", "verify")
    assert re.sub(r"\d+ events", "[N] events", verified) == (
        "$ bringup runs\n"
        "[RUN]  ready        [HERE]/model\n"
        "exit 0\n"
        "$ bringup approve\n"
        "bringup: [RUN]: the run has ended (ready); `bringup deploy` begins a new one, which "
        "finds what is there\n"
        "exit 2\n"
        "$ bringup verify\n"
        "holds  process_up: pid [PID]\n"
        "holds  health: healthy after [TIME]\n"
        "holds  chat: a well-formed answer of 1 tokens\n"
        "exit 0\n"
        "$ bringup replay last\n"
        "same     last: [N] events\n"
        "exit 0\n"
        "$ bringup stop\n"
        "[RUN]: stopped [RUN]-t2.1\n"
        "exit 0\n"
        "$ bringup verify\n"
        "fails  process_up: no server of this run is up\n"
        "fails  health: no server of this run is up\n"
        "fails  chat: no server of this run is up\n"
        "exit 1\n"
    )


def name(text: str) -> str:
    """Return the id of the run that a text speaks of."""
    found = RUN.search(text)
    assert found is not None, text
    return found[0]


def test_what_is_refused_is_named(here: Desk) -> None:
    here.goal()
    denied = here.bringup("deploy", "goal.yaml", "--on-ask", "deny")
    assert denied.code == 1
    cause = "starting the server was refused: policy said no: nobody can be asked, and --on-ask"
    assert f"NOT REACHED\n{cause} deny says that this means no\n" in denied.err
    parked = name(here.bringup("deploy", "goal.yaml").err)
    shutil.copytree(here.runs / parked, here.runs / "copy")
    refused = here.bringup("approve", parked, "--answer", "no", "--note", "not \x1b[2J[red]today")
    assert refused.code == 1
    assert "person said no: not [red]today" in refused.err
    stopped = here.bringup("approve", "copy", "--answer", "stop")
    assert (stopped.code, "INTERRUPTED" in stopped.err) == (130, True)
    states = {row["id"]: row["state"] for row in here.bringup("runs", "--json").data["runs"]}
    assert states[parked] == "not_reached"
    assert states["copy"] == "interrupted"


def test_a_run_that_may_only_look(here: Desk) -> None:
    here.goal(candidates=[{"venv": "nowhere"}])
    done = here.bringup("deploy", "goal.yaml", "--mode", "read-only")
    assert done.code == 1
    cause = "there is no usable Python environment at [HERE]/nowhere/bin/python"
    assert f"NOT REACHED\n{cause}\nseen in: e9\nadvice: Make it first" in here.text(done.err)


def test_json(here: Desk) -> None:
    here.goal()
    run = here.bringup("deploy", "goal.yaml", "--yes", "--json")
    assert (run.code, run.err) == (0, "")
    assert [event["seq"] for event in run.events] == list(range(len(run.events)))
    assert run.events[0]["goal"]["model"] == str(here.folder / "model")
    assert (run.events[-1]["outcome"], run.events[-1]["exit_code"]) == ("ready", 0)
    (row,) = here.bringup("runs", "--json").data["runs"]
    assert row == {"id": row["id"], "state": "ready", "model": str(here.folder / "model")}
    shown = here.bringup("show", "--json").data
    assert shown["path"] == str(here.runs / row["id"] / "transcript.jsonl")
    assert shown["events"] == run.events
    assert shown["problems"] == []
    checks = here.bringup("verify", "--json").data
    passed = [check["name"] for check in checks["checks"] if check["passed"]]
    assert passed == ["process_up", "health", "chat"]
    (replayed,) = here.bringup("replay", row["id"], "--json").data["replays"]
    assert (replayed["same"], replayed["difference"]) == (True, None)
    job = f"{row['id']}-t2.1"
    none: dict[str, Any] = {"run": row["id"], "left": [], "still_stopped": []}
    assert here.bringup("stop", "--json").data == {**none, "stopped": [job]}
    assert here.bringup("stop", "--json").data == {**none, "stopped": []}


def test_streams_and_terminals_of_any_kind(here: Desk) -> None:
    here.goal()
    plain = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    parked = here.bringup("deploy", "goal.yaml", **plain)
    assert parked.code == 3
    assert (parked.err + here.bringup("show", **plain).out).isascii()
    assert here.bringup("--help", **plain, PYTHONCOERCECLOCALE="0").out == HELP
    narrow = here.bringup("show", COLUMNS="40").out
    assert max(map(len, narrow.split("\ntime: ")[0].splitlines())) <= 40
    coloured = here.bringup("show", NO_COLOR="1", FORCE_COLOR="1").out
    assert not re.search(r"\x1b\[\d*(3|9)\dm", coloured)
    homeless = here.bringup("runs", HOME=None, BRINGUP_RUNS_DIR=str(here.runs))
    assert (homeless.code, homeless.out.count("\n")) == (0, 1)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("bringup --help | true", 141),
        ("bringup show --help | true", 141),
        ("bringup runs | true", 141),
        ("bringup runs >&-", 0),
        ("bringup runs >/dev/full", 2),
        ("bringup --help >/dev/full", 2),
        ("bringup show nope 2>/dev/full", 2),
        ("bringup nope 2>&-", 2),
        ("bringup deploy goal.yaml --json | head -n 1 >/dev/null", 1),
        ("bringup deploy goal.yaml 2>&1 | head -n 1 >/dev/null", 1),
        ("bringup deploy goal.yaml 2>/dev/full", 1),
        ("bringup deploy goal.yaml --json >&- 2>&- <&-", 1),
    ],
)
def test_a_stream_that_is_gone(here: Desk, line: str, code: int) -> None:
    """The verb's own output is lost and no more: a run goes on to its end."""
    here.goal(candidates=[{"venv": "nowhere"}])
    (here.runs / "20260101-000000-aaaa").mkdir(parents=True)
    done = here.shell(f"set -o pipefail; {line}")
    assert done.code == code
    assert done.err == ("" if code != 2 or "2>" in line else FULL)
    if "deploy" in line:
        ends = [row["state"] for row in here.bringup("runs", "--json").data["runs"]]
        assert ends == ["not_reached", "unreadable"]


def test_answers_are_typed_on_a_terminal(here: Desk) -> None:
    here.goal()
    with Pty() as screen:
        with subprocess.Popen(
            [BRINGUP, "deploy", "goal.yaml"],
            cwd=here.folder,
            env=here.environment({"TERM": "xterm-256color"}),
            stdin=screen.theirs,
            stdout=screen.theirs,
            stderr=screen.theirs,
        ) as process:
            screen.wait_for("a1? ")
            screen.enter("perhaps\n")
            screen.wait_for("That is no answer.")
            screen.wait_for("a1? ", times=2)
            screen.enter("y\n")
            assert process.wait(timeout=30) == 0
        shown = CONTROLS.sub("", screen.text)
    assert shown.index("yes, by person") < shown.index("READY") < shown.index("bringup show")
    assert here.bringup("stop").code == 0
