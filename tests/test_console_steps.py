"""Steps of a preparation: lines on a pipe, one place on a terminal, silence where all is gone."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest
from rich.console import Console

from agent.console_steps import Steps
from tests.lab.terminal import CONTROLS, terminal


def test_lines_on_a_pipe() -> None:
    file = io.StringIO()
    steps = Steps(Console(file=file, width=40))
    with steps.step("install a package with quite a long name [red]"):
        steps.detail("not shown")
    with pytest.raises(KeyboardInterrupt), steps.step("load"):
        raise KeyboardInterrupt
    assert re.sub(r"\d+ s", "0 s", file.getvalue()) == (
        "  install a package with quite a long name [red] ...\n"
        "  install a package with quite a long name [red]  0 s\n"
        "  load ...\n"
        "  load  broke off after 0 s\n"
    )


def test_one_place_on_a_terminal() -> None:
    console, written = terminal()
    steps = Steps(console)
    with steps.step("install"):
        steps.detail("Collecting \x1b[2Jtorch " + "x" * 200)
    assert "\x1b[2J" not in written()
    shown = [line for line in CONTROLS.sub("", written()).split("\n") if line]
    assert shown[-2].startswith("    Collecting torch xxx")
    assert max(map(len, shown)) <= 80
    assert shown[-1] == "  install  0 s"


def test_ascii_on_a_terminal_that_knows_no_more() -> None:
    console, written = terminal("ascii")
    with Steps(console).step("«install»"):
        pass
    assert written().isascii()


def test_nobody_reads() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    file = os.fdopen(theirs, "w")
    with pytest.raises(KeyboardInterrupt), Steps(Console(file=file)).step("load"):
        raise KeyboardInterrupt
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), theirs)
    file.close()
