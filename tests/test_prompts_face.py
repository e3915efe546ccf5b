"""Questions on a real terminal: only a deliberate answer counts, and nothing is hidden."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import TextIO

import pytest
from rich.console import Console

from agent.events import ApprovalAsked
from agent.prompts_face import TerminalAsker, spelled, understood
from agent.run import Live
from tests.lab.checkout import ROOT
from tests.lab.sample_run import ASKED, CAUSE, INSTALL, play, steps
from tests.lab.terminal import CONTROLS, Pty

Answers = dict[str, dict[str, str]]
QUESTION = ASKED.model_copy(
    update={"title": "Which port?", "choices": ("8001", "8002"), "undo": ""}
)


def asking(pty: Pty, *asked: ApprovalAsked, events: bool = False) -> Callable[[], Answers]:
    """Ask in the background; the result is what was answered."""
    answers: list[Answers] = []
    console = Console(file=writer(pty), force_terminal=True, width=80, color_system=None)
    asker = TerminalAsker(console, reader(pty))
    if events:
        play(asker, [step for step in steps() if not isinstance(step, Live)])
    thread = threading.Thread(target=lambda: answers.append(asker.ask(asked)), daemon=True)
    thread.start()

    def result() -> Answers:
        thread.join(timeout=10)
        assert not thread.is_alive(), pty.text
        return answers[0]

    return result


def reader(pty: Pty) -> TextIO:
    return os.fdopen(pty.theirs, closefd=False)


def writer(pty: Pty) -> TextIO:
    return os.fdopen(pty.theirs, "w", closefd=False)


def answer(word: str, note: str = "") -> dict[str, str]:
    return {"answer": word, "by": "person", "note": note}


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("y\n", answer("yes")),
        ("YES\n", answer("yes")),
        ("n\n", answer("no")),
        ("no: use 4.58 instead\n", answer("no", "use 4.58 instead")),
        ("s\n", answer("stop")),
        ("\x04", answer("stop", "the input ended")),
        ("\n\nmaybe\ny\n", answer("yes")),
    ],
)
def test_answers(typed: str, expected: dict[str, str]) -> None:
    with Pty() as pty:
        result = asking(pty, ASKED)
        for times, line in enumerate(typed.splitlines(keepends=True), start=1):
            pty.wait_for("a1? ", times)
            pty.enter(line)
        assert result() == {"a1": expected}


def test_what_was_typed_before_the_question_is_thrown_away() -> None:
    with Pty() as pty:
        pty.enter("y\ny\ny")
        pty.wait_for("y\r\ny\r\ny")
        result = asking(pty, ASKED)
        pty.wait_for("a1? ")
        pty.enter("n because\n")
        assert result() == {"a1": answer("no", "because")}


def test_a_paste_is_no_answer() -> None:
    with Pty() as pty:
        result = asking(pty, ASKED)
        pty.wait_for("a1? ")
        pty.enter("y\nls\necho done\n")
        pty.wait_for("That is no answer.")
        pty.wait_for("a1? ", 2)
        pty.enter("n\n")
        assert result() == {"a1": answer("no")}


def test_several_questions_and_a_stop_among_them() -> None:
    second, third = (ASKED.model_copy(update={"approval_id": name}) for name in ("a2", "a3"))
    with Pty() as pty:
        result = asking(pty, ASKED, second, third)
        for name, word in (("a1", "y\n"), ("a2", "stop\n")):
            pty.wait_for(f"{name}? ")
            pty.enter(word)
        assert result() == {"a1": answer("yes"), "a2": answer("stop")}


def test_a_question_with_choices() -> None:
    with Pty() as pty:
        result = asking(pty, QUESTION)
        for times, line in enumerate(("y\n", "3\n", "²\n", "2\n"), start=1):
            pty.wait_for("a1? ", times)
            pty.enter(line)
        assert result() == {"a1": answer("8002")}
    assert "1 8001   2 8002   s stop the run" in pty.text


def test_a_terminal_that_goes_away_is_a_stop() -> None:
    with Pty() as pty:
        result = asking(pty, ASKED)
        pty.wait_for("a1? ")
        pty.hang_up()
        assert result()["a1"]["answer"] == "stop"


def test_ctrl_c_comes_through() -> None:
    script = """
import os
os.open(os.ttyname(0), os.O_RDWR)  # becomes the controlling terminal
from rich.console import Console
from agent.prompts_face import TerminalAsker
from tests.lab.sample_run import ASKED
try:
    TerminalAsker(Console()).ask([ASKED])
except KeyboardInterrupt:
    print("interrupted")
"""
    with Pty() as pty:
        command = [sys.executable, "-c", script]
        with subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=pty.theirs,
            stdout=pty.theirs,
            stderr=pty.theirs,
            start_new_session=True,
        ) as process:
            pty.wait_for("a1? ")
            pty.enter("\x03")
            assert process.wait(timeout=10) == 0
        pty.wait_for("interrupted")


def test_everything_that_matters_is_shown() -> None:
    with Pty() as pty:
        result = asking(pty, ASKED, events=True)
        pty.wait_for("a1? ")
        pty.enter("n\n")
        result()
    text = " ".join(CONTROLS.sub("", pty.text).split())
    for words in (
        f"$ {INSTALL}",
        "Install packages with pip.",
        "on local",
        "risk change",
        "touches environment /srv/env",
        "why the model needs it",
        f"cause d1: {CAUSE}",
        "seen in e12, e15",
        "undo the previous versions are installed again",
        "asked as supervised: every change is asked about",
    ):
        assert words in text


def test_nothing_is_hidden_in_a_command() -> None:
    hidden = "pip\u200b install [red]x\u202e\x1b[8m\t" + " " * 200 + "; rm -rf \u3164x" + "a" * 3000
    with Pty() as pty:
        result = asking(pty, ASKED.model_copy(update={"command": hidden, "title": "\x1b[2Jt"}))
        pty.wait_for("a1? ")
        pty.enter("n\n")
        result()
    text = pty.text.replace("\r\n", "\n")
    assert "$ pip\\u200b install [red]x\\u202e\\x1b[8m\\t<200 blanks>; rm -rf \\u3164x" in text
    assert "a" * 3000 in text, "all of it, on one line"
    assert "Characters that would not show are spelled out." in text
    assert "\\x1b[2Jt" in text
    assert "\x1b[8m" not in text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("y", ("yes", "")),
        ("yes please", None),
        ("yn", None),
        ("no", ("no", "")),
        ("not now", None),
        ("n, later", ("no", "later")),
        ("", None),
        ("  S ", ("stop", "")),
    ],
)
def test_what_counts_as_an_answer(line: str, expected: tuple[str, str] | None) -> None:
    assert understood(line, ("yes", "no")) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2", ("8002", "")),
        ("8002", ("8002", "")),
        ("2, but only after noon", ("8002", "but only after noon")),
        ("1:it is free", ("8001", "it is free")),
        ("1,", ("8001", "")),
        ("3, why not", None),
        ("0, none", None),
        ("21, none", None),
        ("2 but only after noon", None),
        ("²", None),
        ("neither", None),
        ("stop", ("stop", "")),
    ],
)
def test_what_counts_as_a_choice(line: str, expected: tuple[str, str] | None) -> None:
    assert understood(line, ("8001", "8002")) == expected


def test_plain_text_stays_as_it_is() -> None:
    assert list(spelled("pip install 'x' é \\u200b")) == [("pip install 'x' é \\u200b", False)]
