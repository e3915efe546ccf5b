"""Odd programs and odd ends, alike on this machine and over ssh."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.checkout import ROOT
from tests.lab.sshd import Sshd, server
from tests.ssh_host import connector, is_alive, sh
from tools.command import Command, Ending
from tools.connectors.base import Connector
from tools.connectors.local import Local
from tools.script import script_text

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with server(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


@pytest.fixture(params=["local", "ssh"])
def host(request: pytest.FixtureRequest, spark: Sshd) -> Iterator[Connector]:
    made: Connector = Local() if request.param == "local" else connector(spark)
    yield made
    made.close()


@pytest.mark.parametrize(
    "argv",
    [
        (sys.executable, "-c", "input()"),
        ("sh", "-c", "read -r line </dev/tty; echo $?"),
        ("sudo", "-S", "true"),
        ("ssh-keygen", "-f", "/nonexistent/key"),
    ],
)
def test_what_asks_a_person_ends_at_once(host: Connector, argv: tuple[str, ...]) -> None:
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    result = host.run(Command.of(*argv, timeout_s=10))
    assert result.ending is Ending.EXITED
    assert result.duration_s < 5


@pytest.mark.parametrize(
    "line", ["git log", "git diff HEAD~1", "less {file}", "more {file}", "man ls"]
)
def test_no_pager_takes_over(host: Connector, tmp_path: Path, line: str) -> None:
    program = line.split()[0]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    file = tmp_path / "file"
    file.write_text("".join(f"line {number}\n" for number in range(500)))
    me = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run(["git", *me, *words], cwd=tmp_path, check=True)
    file.write_text("other\n")
    subprocess.run(["git", *me, "commit", "-qam", "two"], cwd=tmp_path, check=True)
    words = line.format(file=file).split()
    result = host.run(Command.of(*words, cwd=str(tmp_path), timeout_s=10))
    assert result.ending is Ending.EXITED
    assert "\x1b" not in result.stdout


def test_a_terminal_that_is_asked_does_not_answer(host: Connector) -> None:
    script = r"printf '\033[6n\033[c\033]11;?\007'; cat; printf '\000end\n'"
    result = host.run(Command.of("sh", "-c", script, timeout_s=5))
    assert result.stdout == "\x1b[6n\x1b[c\x1b]11;?\x07\0end\n", "as it came, and nothing more"


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (r"printf '\377\376'; exit 3", 3),
        ("exec >&-; exit 3", 3),
        ("exec 0<&- 1>&- 2>&-; exit 3", 3),
        ("exec sh -c 'exit 4'", 4),
        ("set -e; false; echo no", 1),
        ("exec /nonexistent/program", 127),
        ("trap 'exit 6' EXIT; exit 5", 6),
    ],
)
def test_every_end_has_its_code_and_the_next_command_works(
    host: Connector, script: str, code: int
) -> None:
    assert host.run(Command.of("sh", "-c", script, timeout_s=5)).code == code
    assert host.run(Command.of("echo", "next")).stdout == "next\n"


def test_a_quote_that_does_not_end(host: Connector) -> None:
    result = host.run(Command.of("sh", "-c", "echo 'begun", timeout_s=5))
    assert (result.ending, result.stdout) == (Ending.EXITED, "")
    assert result.code != 0


@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV", "PIPE", "HUP"])
def test_signals_have_names(host: Connector, name: str) -> None:
    result = host.run(Command.of("sh", "-c", f"kill -{name} $$", timeout_s=5))
    assert (result.ending, result.code, result.signal) == (Ending.SIGNALED, None, f"SIG{name}")


def test_a_pipe_does_not_hide_a_failure(host: Connector) -> None:
    line = ("bash", "-o", "pipefail", "-c", "false | tail -1")
    assert host.run(Command.of(*line)).code == 1


def test_a_thousand_short_commands_in_threads_are_told_apart(host: Connector) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def one(number: int) -> bool:
        told: list[str] = []
        command = Command.of("sh", "-c", 'echo "$1"; echo "$1" >&2', "sh", str(number))
        result = host.run(command, lambda _, text: told.append(text))
        return result.stdout == result.stderr == f"{number}\n" and len("".join(told)) >= 2

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(300)))


def test_many_lines_keep_their_end(host: Connector) -> None:
    script = "seq 50000; echo 'error: it failed'; echo 'at line 3'; exit 2"
    result = host.run(Command.of("sh", "-c", script, timeout_s=20))
    assert result.code == 2
    assert result.stdout.startswith("1\n2\n3\n")
    assert result.stdout.endswith("error: it failed\nat line 3\n")
    assert f"{result.stdout_omitted} bytes left out" in result.stdout


# --- processes that cannot be killed


@pytest.fixture
def root_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that becomes root's wherever it is started: nobody else can end it."""
    if os.geteuid():
        pytest.skip("only root can make a program that others cannot end")
    source = tmp_path_factory.mktemp("setuid") / "stay.c"
    source.write_text(
        "#include <unistd.h>\nint main() { setresgid(0, 0, 0); setresuid(0, 0, 0);"
        ' write(1, "up\\n", 3); sleep(60); return 0; }\n'
    )
    program = source.with_name("stay")
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    subprocess.run([compiler, "-o", program, source], check=True, stderr=subprocess.DEVNULL)
    for folder in (program.parent, *program.parent.parents):
        if folder.owner() == "root" and str(folder).startswith("/tmp/"):  # noqa: S108
            folder.chmod(folder.stat().st_mode | 0o011)
    program.chmod(0o4755)
    return program


def test_what_cannot_be_killed_is_named_in_bounded_time(root_python: Path) -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    program = f"""
import os, sys
os.chdir("/")
from tools.command import Command
from tools.connectors.local import Local
Local().run(Command.of("true"))
os.setresuid({nobody}, {nobody}, {nobody})
result = Local().run(Command.of({str(root_python)!r}, timeout_s=0.5))
print(result.ending, result.stdout.strip(), *result.survivors, sep="|")
"""
    begun = time.monotonic()
    words = [sys.executable, "-c", program]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=30)
    assert time.monotonic() - begun < 10
    ending, said, survivor = done.stdout.strip().split("|")
    pid = int(survivor.split()[0])
    try:
        assert (ending, said) == ("timed_out", "up")
        assert survivor == f"{pid} {root_python}"
        assert is_alive(pid)
        script = script_text("end_command")
        as_nobody = ["setpriv", f"--reuid={nobody}", "--clear-groups", "sh", "-s", "--"]
        begun = time.monotonic()
        over = subprocess.run(
            [*as_nobody, str(pid), "end"], input=script, capture_output=True, text=True, cwd="/"
        )
        assert time.monotonic() - begun < 10
        assert over.stdout.strip() == f"{pid} {root_python}"
        assert (over.returncode, over.stderr) == (0, "")
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_thing_that_ends_late_is_waited_for_and_no_longer(spark: Sshd) -> None:
    far = connector(spark)
    begun = time.monotonic()
    result = sh(
        far, "trap 'sleep 0.2; exit' TERM; echo up; while :; do sleep 0.05; done", timeout_s=0.4
    )
    assert (result.ending, result.survivors) == (Ending.TIMED_OUT, ())
    assert time.monotonic() - begun < 8
    far.close()
