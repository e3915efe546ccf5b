"""`bringup doctor` on a terminal: progress, colours, questions in between, and Ctrl-C."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doctor_desk import doctor_desk
from tests.lab.command import BRINGUP, Desk
from tests.lab.fleet import Fleet, fleet
from tests.lab.sshd import new_key
from tests.lab.tmux import screen
from tests.lab.wire import wire

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet(tmp_path_factory.mktemp("fleet"), ["gpu01", "gpu02"]) as made:
        yield made


@pytest.fixture
def here(tmp_path: Path, hosts: Fleet) -> Desk:
    return doctor_desk(tmp_path, hosts)


def test_no_color_on_a_terminal(here: Desk) -> None:
    line = f"{BRINGUP} doctor gpu01 dead"
    with screen(here.folder, line, here.environment({"NO_COLOR": "1"})) as terminal:
        terminal.wait_for(r"(?m)^EXIT 5", 30)
        coloured = terminal.tmux("capture-pane", "-p", "-e")
    assert not re.search(r"\x1b\[[39][0-7]", coloured)


def test_a_terminal_shows_who_is_still_out(here: Desk, hosts: Fleet) -> None:
    with wire(hosts.servers["gpu02"].port) as silent:
        hosts.configure({"silent": silent.port})
        silent.freeze()
        line = f"{BRINGUP} doctor gpu01 silent --timeout 4"
        with screen(here.folder, line, here.environment({})) as terminal:
            terminal.wait_for(r"asking: 1 of 2, \d s; out: silent", 20)
            terminal.wait_for(r"(?m)^EXIT 5", 20)
            whole = terminal.shown(history=True)
    assert "asking" not in whole
    assert "2 hosts, 1 not reached: " in whole


@pytest.fixture
def locked(hosts: Fleet, here: Desk) -> str:
    """The client's key for all hosts has a passphrase; returns a line that asks two of them."""
    key = hosts.folder / "locked"
    new_key(key, passphrase="open sesame")  # noqa: S106 - of this test's own key
    for sshd in [*hosts.servers.values()][:2]:
        file = sshd.folder / "authorized_keys"
        file.write_text(file.read_text() + Path(f"{key}.pub").read_text())
    text = re.sub(r"IdentityFile .*", f"IdentityFile {key}", hosts.config.read_text())
    hosts.config.write_text(text)
    return f"{BRINGUP} doctor gpu01 gpu02 --timeout 15"


def test_a_passphrase_is_asked_for_once(here: Desk, locked: str) -> None:
    """The line of progress makes room for it, and the time that it takes is nobody's delay."""
    with screen(here.folder, locked, here.environment({})) as terminal:
        terminal.wait_for(r"Passphrase for .*locked:", 20)
        time.sleep(0.5)  # somebody looks for it: no progress is drawn meanwhile
        assert "asking" not in terminal.shown()
        terminal.tmux("send-keys", "-l", "open sesame")
        terminal.press("Enter")
        terminal.wait_for(r"(?m)^EXIT [01]$", 40)
        whole = terminal.shown(history=True)
    assert whole.count("Passphrase for") == 1
    assert re.search(r"(?m)^2 hosts: ", whole)


def test_ctrl_c_at_a_passphrase_leaves_a_terminal_that_echoes(here: Desk, locked: str) -> None:
    line = f"trap : INT; {locked}; echo CODE $?; stty -a"
    with screen(here.folder, line, here.environment({})) as terminal:
        terminal.wait_for(r"Passphrase for .*locked:", 20)
        terminal.press("C-c")
        shown = terminal.wait_for(r"(?m)^EXIT 0$", 20)
    assert "CODE 130" in shown
    assert re.search(r"\becho\b", shown)
    assert not re.search(r"-echo\b", shown)


def test_ctrl_c_ends_it_at_once(here: Desk, hosts: Fleet) -> None:
    with wire(hosts.servers["gpu02"].port) as silent:
        hosts.configure({"silent": silent.port})
        silent.freeze()
        with here.running("doctor", "silent", until="asking: 0 of 1") as process:
            begun = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 130
    assert time.monotonic() - begun < 4
