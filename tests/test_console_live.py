"""The live region: what it shows, and that nothing ever waits for it."""

from __future__ import annotations

import io
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from agent import events as e
from agent.console import LiveFace
from agent.console_live import Present
from agent.run import Live
from tests.lab.checkout import ROOT
from tests.lab.need import need
from tests.lab.sample_run import (
    FOOTER,
    Step,
    called,
    header,
    numbered,
    play,
    queued,
    ready,
)
from tests.lab.terminal import CONTROLS, terminal


def started(call_id: str, tool: str) -> list[Step]:
    return numbered([header(), queued(call_id, tool), e.CallStarted(call_id=call_id)])


def region(
    present: Present, width: int = 80, height: int = 24, encoding: str = "utf-8"
) -> list[str]:
    console, written = terminal(encoding, width=width, height=height)
    console.print(present)
    *lines, last = CONTROLS.sub("", written()).splitlines() or [""]
    assert last == "", "the cursor's own line"
    return lines


def test_the_region_shows_what_runs_now() -> None:
    clock = [100.0]
    present = Present(lambda: clock[0])
    play(present, started("t2.2", "pip_install"))
    for n in range(9):
        present.on_live(Live("t2.2", "output", f"\nCollecting p{n}\n 10%\r 90% of p{n}"))
    present.on_live(Live("other", "output", "not its output\n"))
    clock[0] += 65
    lines = region(present)
    assert re.match(r" +01:06  \S act +pip install +01:05$", lines[0])
    assert lines[1].strip().startswith("$ /srv/env/bin/python -m pip install")
    assert [line.strip() for line in lines[2:]] == ["90% of p7", "Collecting p8", "90% of p8"]
    assert max(map(cell_len, lines)) <= 80
    assert len(region(present, height=9)) == 2
    assert max(map(cell_len, region(present, width=40))) <= 40
    present.on_live(Live("t2.2", "progress", "Loading weights: 45%"))
    assert region(present)[-1].strip() == "━━━━━━━━━┄┄┄┄┄┄┄┄┄┄┄ Loading weights: 45%"
    assert region(present, encoding="ascii")[-1].strip().startswith("#########....")
    present.on_event(ready())
    assert region(present) == []


def test_a_probe_s_answer_is_not_shown_as_output() -> None:
    present = Present()
    play(present, [queued("s1", "host_facts", "survey"), e.CallStarted(call_id="s1")])
    present.on_live(Live("s1", "output", 'a banner\n@0123456789abcdef {"data": 1}\n'))
    text = "\n".join(region(present)[2:])
    assert "a banner" in text
    assert "data" not in text


def test_thousands_of_pieces_from_threads_do_not_stall() -> None:
    console, written = terminal()
    began = time.monotonic()
    with LiveFace(console, footer=FOOTER) as face:
        play(face, started("t1.1", "grep"))
        piece = Live("t1.1", "output", "x" * 4000 + "\n")
        threads = [threading.Thread(target=play, args=(face, [piece] * 2500)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=10)
        play(face, [ready()])
    assert time.monotonic() - began < 2
    assert written().endswith("\n")
    assert "READY" in written()
    assert written().rindex("\x1b[?25h") > written().rindex("\x1b[?25l"), "the cursor is back"
    assert not [thread for thread in threading.enumerate() if thread.name == "console"]


def test_a_thousand_short_commands_do_not_stall() -> None:
    run = [header(), *(step for n in range(1000) for step in called(f"c{n}", "grep", f"line {n}"))]
    began = time.monotonic()
    console, written = terminal()
    with LiveFace(console) as face:
        play(face, run)
    assert time.monotonic() - began < 10
    lines = {line.strip() for line in CONTROLS.sub("", written()).splitlines()}
    assert {f"line {n}" for n in range(1000)} <= lines


class Stuck(io.StringIO):
    """A terminal that takes nothing until it is let go, as after Ctrl-S."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped, self.go_on = threading.Event(), threading.Event()

    def write(self, text: str) -> int:
        if self.stopped.is_set():
            self.go_on.wait(timeout=10)
        return super().write(text)


def test_output_never_waits_for_the_terminal() -> None:
    file = Stuck()
    console = Console(file=file, force_terminal=True, force_interactive=True, width=80)
    with LiveFace(console) as face:
        play(face, started("t1.1", "grep"))
        file.stopped.set()
        time.sleep(0.3)
        began = time.monotonic()
        for _ in range(100):
            face.on_live(Live("t1.1", "output", "a line\n"))
        waited = time.monotonic() - began
        file.go_on.set()
    assert waited < 0.2


def test_a_pause_leaves_the_terminal_alone() -> None:
    console, written = terminal()
    with LiveFace(console) as face:
        play(face, started("t1.1", "grep"))
        with face.paused():
            before = written()
            assert before.rindex("\x1b[?25h") > before.rindex("\x1b[?25l")
            face.on_live(Live("t1.1", "output", "a line\n"))
            time.sleep(0.4)
            assert written() == before
        time.sleep(0.4)
        assert "a line" in written()[len(before) :]


def test_an_interrupt_restores_the_terminal() -> None:
    console, written = terminal()

    def interrupted() -> None:
        with LiveFace(console, footer=FOOTER) as face:
            play(face, [header()])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert written().rindex("\x1b[?25h") > written().rindex("\x1b[?25l")
    assert FOOTER[0] in written()
    assert not [thread for thread in threading.enumerate() if thread.name == "console"]


PLAYED = """
import time
from rich.console import Console
from agent.console import LiveFace
from tests.lab.sample_run import FOOTER, play, steps
with LiveFace(Console(), footer=FOOTER) as face:
    for step in steps():
        play(face, [step])
        time.sleep(0.01)
"""


class Tmux:
    """A real terminal of 80 columns and 24 lines, in a server of its own."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux")

    def __call__(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", self._socket, *words],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
        return done.stdout


def wait_for(tmux: Tmux, text: str) -> str:
    deadline = time.monotonic() + 20
    while text not in (screen := tmux("capture-pane", "-p", "-S", "-")):
        assert time.monotonic() < deadline, screen
        time.sleep(0.02)
    return screen


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    need(shutil.which("tmux") is not None, "tmux is missing (apt-get install tmux)")
    run = Tmux(tmp_path)
    yield run
    run("kill-server")


INTERRUPTED = """
import time
from rich.console import Console
from agent import events as e
from agent.console import LiveFace
from agent.run import Live
from tests.lab.sample_run import header, numbered, play, queued
with LiveFace(Console()) as face:
    play(face, numbered([header(), queued("t1", "grep"), e.CallStarted(call_id="t1")]))
    face.on_live(Live("t1", "output", "x" * 500))
    time.sleep(30)
"""


@pytest.mark.lab
def test_ctrl_c_leaves_nothing_of_the_region(tmux: Tmux) -> None:
    words = shlex.join([sys.executable, "-c", INTERRUPTED])
    shell = f"trap : INT; cd {shlex.quote(str(ROOT))}; LC_ALL=C.UTF-8 {words}; exec cat"
    tmux("new-session", "-d", "-x", "80", "-y", "24", "sh", "-c", shell)
    wait_for(tmux, "xxxx")
    tmux("send-keys", "abc", "C-c")
    screen = wait_for(tmux, "KeyboardInterrupt")
    assert "grep" not in screen
    assert "xxx" not in screen


@pytest.mark.lab
def test_a_real_terminal_is_left_clean(tmux: Tmux) -> None:
    words = shlex.join([sys.executable, "-c", PLAYED])
    shell = f"cd {shlex.quote(str(ROOT))} && LC_ALL=C.UTF-8 {words}; echo; echo over; exec cat"
    tmux("new-session", "-d", "-x", "80", "-y", "24", "sh", "-c", shell)
    deadline = time.monotonic() + 20
    regions = 0
    while "\nover\n" not in (screen := tmux("capture-pane", "-p", "-S", "-")):
        regions += bool(re.search(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] act", screen))
        assert time.monotonic() < deadline, screen
        time.sleep(0.02)
    assert regions, "the region was never seen"
    assert not re.search(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", screen), "something is left of the region"
    whole = tmux("capture-pane", "-p", "-J", "-S", "-")
    assert re.search(r"^curl http://127\.0\.0\.1:8000/v1/chat/completions -H .*'$", whole, re.M)
    assert whole.count("host facts") == 1
    assert whole.count("✓ chat") == 2
    assert "\n\n\n" not in whole.partition("over")[0]
    assert tmux("display-message", "-p", "#{cursor_flag}").strip() == "1"
