"""Keys with a passphrase: asked for once, on a terminal, and nowhere to be found afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.command import BRINGUP
from tests.lab.sshd import Sshd, server
from tests.lab.terminal import Pty
from tests.ssh_host import connector, failure, sh
from tools.connectors.ssh_key_files import Keyring
from tools.errors import ConnectionFailed

pytestmark = pytest.mark.lab
WORDS = "open sesame 4711"


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[Sshd]:
    with server(tmp_path / "sshd") as sshd:
        words = ["ssh-keygen", "-q", "-p", "-N", WORDS, "-f", str(sshd.key)]
        subprocess.run(words, check=True, capture_output=True)
        yield sshd


class Person:
    """Answers in turn, and remembers what was asked."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, bool]] = []

    def __call__(self, path: str, again: bool) -> str | None:
        self.asked.append((path, again))
        return self.answers.pop(0)


def test_it_is_asked_once_for_all_hosts_and_connections(spark: Sshd) -> None:
    person = Person(WORDS)
    keyring = Keyring(person)
    hosts = [connector(spark, keyring=keyring) for _ in range(4)]
    said: list[str] = []
    workers = [
        threading.Thread(target=lambda it: said.append(sh(it, "echo in").stdout), args=(host,))
        for host in hosts
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for host in hosts:
        host.close()
        assert sh(host, "echo in").stdout == "in\n", "connected to anew"
        host.close()
    assert said == ["in\n"] * 4
    assert person.asked == [(str(spark.key), False)]


def test_a_wrong_one_is_asked_again_and_then_given_up_for_the_run(spark: Sshd) -> None:
    person = Person("wrong", WORDS)
    host = connector(spark, keyring=Keyring(person))
    assert sh(host, "echo in").stdout == "in\n"
    host.close()
    assert [again for _, again in person.asked] == [False, True]
    person = Person("a", "b", "c")
    keyring = Keyring(person)
    for _ in range(2):
        host = connector(spark, keyring=keyring)
        with pytest.raises(ConnectionFailed, match="typed 3 times is none of it"):
            sh(host, "true")
        host.close()
    assert len(person.asked) == 3


def test_nobody_answers(spark: Sshd) -> None:
    text = failure(spark)
    assert f"{spark.key}: has a passphrase; add it to an agent: ssh-add {spark.key}" in text
    host = connector(spark, keyring=Keyring(Person(None)))
    with pytest.raises(ConnectionFailed, match="has a passphrase; add it to an agent"):
        sh(host, "true")
    host.close()


def test_nobody_is_asked_where_another_key_works(spark: Sshd, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(plain)]
    subprocess.run(words, check=True)
    with (spark.folder / "authorized_keys").open("a") as file:
        file.write(Path(f"{plain}.pub").read_text())
    spark.configure(f"IdentityFile {plain}")
    person = Person()
    host = connector(spark, keyring=Keyring(person))
    assert sh(host, "echo in").stdout == "in\n"
    host.close()
    assert person.asked == []


def test_a_host_that_does_not_wait_is_connected_to_again(tmp_path: Path) -> None:
    with server(tmp_path / "sshd", LoginGraceTime="1") as sshd:
        words = ["ssh-keygen", "-q", "-p", "-N", WORDS, "-f", str(sshd.key)]
        subprocess.run(words, check=True, capture_output=True)
        gone = threading.Event()

        def slow(path: str, again: bool) -> str:
            gone.wait(2.5)  # longer than the host waits for a login
            return WORDS

        host = connector(sshd, keyring=Keyring(slow))
        assert sh(host, "echo in").stdout == "in\n"
        host.close()


PROGRAM = """
import sys
from agent.connect import connector_to
from agent.goal_parts import Host
from tools.command import Command
from tools.errors import ConnectionFailed
for name in ("spark", "spark"):
    host = connector_to(Host(name=name, address=name))
    try:
        script = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | grep -c s[e]same"
        print("found", host.run(Command.of("sh", "-c", script)).stdout.strip(), flush=True)
    except ConnectionFailed as error:
        print("failed", error, flush=True)
    host.close()
print("over", flush=True)
"""


def environment(spark: Sshd, tmp_path: Path) -> dict[str, str]:
    settings = {"BRINGUP_SSH_CONFIG": str(spark.config), "HOME": str(tmp_path)}
    root = str(Path(__file__).parent.parent)
    return {**os.environ, **settings, "PYTHONPATH": root, "SSH_AUTH_SOCK": ""}


def test_on_a_terminal_it_is_neither_shown_nor_in_any_process(spark: Sshd, tmp_path: Path) -> None:
    with Pty() as screen:
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=screen.theirs,
            stdout=screen.theirs,
            stderr=screen.theirs,
            env=environment(spark, tmp_path),
            start_new_session=True,
        )
        screen.wait_for(f"Passphrase for {spark.key}: ")
        screen.enter("nonsense\n")
        screen.wait_for(f"That is not it. Passphrase for {spark.key}: ")
        screen.enter(f"{WORDS}\n")
        screen.wait_for("over")
        assert child.wait(10) == 0
        assert screen.text.count("found 0") == 2
        assert screen.text.count("Passphrase for") == 2
        assert "sesame" not in screen.text


def test_a_run_that_is_shown_live_asks_and_keeps_nothing(spark: Sshd, tmp_path: Path) -> None:
    goal = tmp_path / "goal.yaml"
    goal.write_text(
        "kind: diagnose\nmodel: /nonexistent/config.json\nhosts: [spark]\n"
        "candidates:\n  - venv: /nonexistent/env\n"
    )
    folder = {"BRINGUP_RUNS_DIR": str(tmp_path / "runs"), "TERM": "xterm"}
    with Pty() as screen:
        child = subprocess.Popen(
            [str(BRINGUP), "deploy", str(goal), "--mode", "read-only"],
            stdin=screen.theirs,
            stdout=screen.theirs,
            stderr=screen.theirs,
            env=environment(spark, tmp_path) | folder,
            start_new_session=True,
        )
        screen.wait_for(f"Passphrase for {spark.key}: ")
        screen.enter(f"{WORDS}\n")
        code = child.wait(60)
        assert code == 1, screen.text
        assert screen.text.count("Passphrase for") == 1
        assert "sesame" not in screen.text
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "transcript.jsonl" for path in files)
    assert not [path for path in files if b"open sesame" in path.read_bytes()]


def test_without_a_terminal_it_is_said_what_to_do(spark: Sshd, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment(spark, tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert ran.stdout.count(f"has a passphrase; add it to an agent: ssh-add {spark.key}") == 2
    assert ran.stderr == ""
