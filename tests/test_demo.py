"""The demo as people meet it: real packages, a home of its own, a terminal of 80 x 24, Ctrl-C.

One home goes through all of it, in order: each Ctrl-C leaves a place in which the next demo works.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator

import pytest

from tests.lab.command import BRINGUP, Desk, desk, gone, processes_of
from tests.lab.tmux import screen

pytestmark = pytest.mark.lab

SLOW_S = 240.0
"""How long a step of the demo may take on a busy machine."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(
        tmp_path_factory.mktemp("demo"), tmp_path_factory.getbasetemp() / "kept-desk"
    ) as made:
        yield made


def ctrl_c(here: Desk, sign: str) -> str:
    """Begin a demo, press Ctrl-C at a sign, and return all that the screen has shown."""
    line = f"{BRINGUP} demo --port {here.port}"
    with screen(here.folder, line, here.environment({})) as terminal:
        terminal.wait_for(sign, SLOW_S)
        terminal.press("C-c")
        terminal.wait_for(r"EXIT \d+", 10)
        text = terminal.shown(history=True)
    assert "EXIT 130" in text
    assert "Traceback" not in text
    assert "\x1b" not in text
    assert gone(here.home), processes_of(here.home)
    return text


def check_record(here: Desk) -> set[str]:
    """See that the last run's transcript can be read and replays; return the tools it started."""
    shown = here.bringup("show")
    assert shown.code == 0
    assert "interrupted" in shown.out
    replayed = here.bringup("replay", "last")
    assert (replayed.code, replayed.out[:5]) == (0, "same "), replayed.out
    events = here.bringup("show", "--json").data["events"]
    assert (events[-1]["type"], events[-1]["exit_code"]) == ("run_ended", 130)
    tools = {event["call"]["id"]: event["call"]["tool"] for event in events if "call" in event}
    return {tools[event["call_id"]] for event in events if event["type"] == "call_started"}


def last_screen(text: str) -> list[str]:
    lines = text.rstrip().splitlines()
    assert max(map(len, lines)) <= 80
    return lines[-24:]


def test_ctrl_c_while_pip_prepares(here: Desk) -> None:
    lines = last_screen(ctrl_c(here, r"install torch \S+ .*\n\s+\w"))
    assert lines[0].startswith("demo: everything is made in /")
    assert re.fullmatch(r"  install torch 2\S+ \(\d+ MB\)  broke off after \d+ s", lines[-3])
    assert lines[-2:] == ["bringup: interrupted", "EXIT 130"]
    assert here.bringup("runs").out == ""


def test_ctrl_c_during_the_survey(here: Desk) -> None:
    text = ctrl_c(here, r"\d\d:\d\d\s+bringup ")
    assert "INTERRUPTED" in "\n".join(last_screen(text))
    assert not check_record(here) & {"pip_install", "start_server"}


def test_ctrl_c_while_pip_installs(here: Desk) -> None:
    text = ctrl_c(here, r"act\s+pip install")
    assert "INTERRUPTED" in "\n".join(last_screen(text))
    assert "pip install" in text
    started = check_record(here)
    assert "pip_install" in started
    assert "start_server" not in started


def test_ctrl_c_while_the_server_loads(here: Desk) -> None:
    text = ctrl_c(here, r"act\s+watch server")
    assert "INTERRUPTED" in "\n".join(last_screen(text))
    assert {"start_server", "watch_server", "stop_job"} <= check_record(here)


def test_the_demo_works_twice_and_leaves_nothing(here: Desk) -> None:
    first = here.bringup("demo", "--port", str(here.port))
    assert first.code == 0, first.err[-3000:]
    assert first.out == ""
    assert f"READY\nhttp://127.0.0.1:{here.port}\n" in first.err
    assert "fix f1: verified: transformers 4.57.6 does not know the model type" in first.err
    assert answer(here).isascii()
    assert here.bringup("show").code == 0
    assert here.bringup("replay", "last").out.startswith("same ")
    verified = here.bringup("verify")
    assert (verified.code, verified.out.count("holds")) == (0, 4)
    assert here.bringup("runs").out.splitlines()[0].split()[1] == "ready"

    again = here.bringup("demo", "--port", str(here.port), "--json")
    assert again.code == 0, again.err[-3000:]
    assert "demo: stopped " in again.err.splitlines()[0]
    assert again.events[-1]["outcome"] == "ready"
    assert again.events[-1]["report"]["address"] == f"http://127.0.0.1:{here.port}"
    stopped = here.bringup("demo", "--stop")
    assert (stopped.code, stopped.err.startswith("demo: stopped ")) == (0, True)
    assert gone(here.home), processes_of(here.home)
    nothing = here.bringup("demo", "--stop")
    assert (nothing.code, nothing.err) == (0, "demo: its server is not running\n")


def answer(here: Desk) -> str:
    """Ask the demo's server as the person is told to."""
    model = here.home / ".local" / "share" / "bringup" / "demo" / "model"
    asked = {"model": str(model), "messages": [{"role": "user", "content": "Hi"}]}
    request = urllib.request.Request(
        f"http://127.0.0.1:{here.port}/v1/chat/completions",
        data=json.dumps(asked | {"max_tokens": 8}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310  (our own address)
        return str(json.load(reply)["choices"][0]["message"]["content"])


def test_two_demos_in_one_folder(here: Desk) -> None:
    folder = here.home / ".local" / "share" / "bringup" / "demo"
    with here.running("demo", "--port", str(here.port), until="install transformers") as process:
        second = here.bringup("demo")
        words = f"bringup: {folder}: another `bringup demo` (process {process.pid}) is at work"
        assert (second.code, second.err.startswith(words)) == (2, True)
    assert process.wait(timeout=20) == 130
    assert gone(here.home), processes_of(here.home)


def test_a_run_that_is_gone(here: Desk) -> None:
    last = here.home / ".local" / "share" / "bringup" / "demo" / "last-run"
    last.parent.mkdir(parents=True, exist_ok=True)
    last.write_text(f"{here.runs / 'gone'}\n", encoding="utf-8")
    done = here.bringup("demo", "--stop", "--json")
    assert done.code == 1
    assert "its last run is gone" in done.data["error"]
