"""The connectors, against real processes."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tools.command import Command, Ending, Result
from tools.connectors.base import Connector
from tools.connectors.local import Local

LOCAL: Connector = Local()


def sh(script: str, *words: str, timeout_s: float = 10.0) -> Result:
    return LOCAL.run(Command.of("sh", "-c", script, "sh", *words, timeout_s=timeout_s))


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_output_code_and_words_come_through() -> None:
    awkward = ["a b", "'", '"', "$HOME", "`id`", "\\", "", "\n", "é"]
    result = LOCAL.run(Command.of("printf", r"[%s]", *awkward))
    assert result.ok
    assert result.stdout == "".join(f"[{word}]" for word in awkward)
    result = sh("echo out; echo err >&2; exit 3")
    assert (result.ending, result.code) == (Ending.EXITED, 3)
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    assert not result.ok


@pytest.mark.parametrize("argv", [("cat",), ("sh", "-c", "read x; echo $?")])
def test_standard_input_is_closed(argv: tuple[str, ...]) -> None:
    result = LOCAL.run(Command.of(*argv, timeout_s=5))
    assert result.ending is Ending.EXITED
    assert result.duration_s < 2


def test_large_input_and_output_do_not_block_each_other() -> None:
    text = "0123456789abcde\n" * 200_000
    result = LOCAL.run(Command.of("sh", "-c", "tee /dev/stderr | wc -c", stdin=text))
    assert result.stdout.strip() == str(len(text))
    assert len(result.stderr.encode()) < 300_000
    assert result.stderr_omitted > 2_000_000


def test_input_that_nobody_reads() -> None:
    result = LOCAL.run(Command.of("true", stdin="x" * 1_000_000))
    assert result.ok


@pytest.mark.parametrize("text", ["", "é\r\n\0", "\ud800"])
def test_input_is_given_as_it_is(text: str) -> None:
    result = LOCAL.run(Command.of("od", "-An", "-tx1", stdin=text))
    assert bytes.fromhex(result.stdout.replace("\n", "")) == text.encode("utf-8", "surrogatepass")


def test_interleaved_streams_are_both_counted_to_the_byte() -> None:
    script = """
import os
for i in range(2000):
    os.write(1, b"o" * 4096)
    os.write(2, b"e" * 3000)
"""
    result = LOCAL.run(Command.of(sys.executable, "-c", script))
    assert result.ok
    for text, omitted, total, letter in (
        (result.stdout, result.stdout_omitted, 2000 * 4096, "o"),
        (result.stderr, result.stderr_omitted, 2000 * 3000, "e"),
    ):
        head, gap, tail = text.split("\n")
        assert f"{omitted} bytes left out" in gap
        assert len(head) + len(tail) + omitted == total
        assert set(head + tail) == {letter}


def test_memory_stays_bounded() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = LOCAL.run(Command.of("head", "-c", "300000000", "/dev/zero"))
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.ok
    assert result.stdout_omitted > 299_000_000
    assert grown_kib < 30_000


def test_endless_output_ends_with_the_limit() -> None:
    result = LOCAL.run(Command.of("yes", timeout_s=0.5))
    assert result.ending is Ending.TIMED_OUT
    assert result.code is None
    assert result.duration_s < 1.5
    assert len(result.stdout) < 300_000


def test_random_bytes_are_text() -> None:
    result = LOCAL.run(Command.of("head", "-c", "1000000", "/dev/urandom"))
    assert result.ok
    assert len(result.stdout.encode()) <= 256 * 1024 + 100
    assert "\N{REPLACEMENT CHARACTER}" in result.stdout
    latin = sh(r"printf 'caf\351\n'")
    assert latin.stdout == "caf\N{REPLACEMENT CHARACTER}\n"


def test_a_character_may_come_in_halves() -> None:
    pieces: list[str] = []
    command = Command.of("sh", "-c", r"printf '\342\202'; sleep 0.2; printf '\254'")
    result = LOCAL.run(command, lambda stream, text: pieces.append(text))
    assert result.stdout == "€"
    assert pieces == ["€"]


def test_output_is_told_while_it_comes() -> None:
    told: list[tuple[str, str, float]] = []
    begun = time.monotonic()
    LOCAL.run(
        Command.of("sh", "-c", "echo one; echo two >&2; sleep 0.4; echo three"),
        lambda stream, text: told.append((stream, text, time.monotonic() - begun)),
    )
    assert {(stream, text) for stream, text, _ in told[:2]} == {
        ("stdout", "one\n"),
        ("stderr", "two\n"),
    }
    assert told[1][2] < 0.35
    assert told[2][:2] == ("stdout", "three\n")


def test_a_background_child_does_not_hold_the_call() -> None:
    result = sh("sleep 60 & echo ok $!")
    word, pid = result.stdout.split()
    try:
        assert word == "ok"
        assert result.duration_s < 1
        assert is_alive(int(pid))
        assert result.survivors == (f"{pid} sleep 60",)
    finally:
        os.kill(int(pid), signal.SIGKILL)


def test_a_time_out_ends_the_whole_group() -> None:
    result = sh("sleep 300 & echo $!; sleep 300 & echo $!; sleep 300", timeout_s=0.5)
    assert result.ending is Ending.TIMED_OUT
    assert 0.5 <= result.duration_s < 1.5
    pids = [int(pid) for pid in result.stdout.split()]
    assert len(pids) == 2
    assert not any(is_alive(pid) for pid in pids)
    assert result.survivors == ()


def test_a_time_out_ends_what_ignores_sigterm() -> None:
    result = sh("trap '' TERM; echo $$; while :; do sleep 1; done", timeout_s=0.5)
    assert result.ending is Ending.TIMED_OUT
    assert result.duration_s < 1.5
    assert not is_alive(int(result.stdout))


@pytest.mark.parametrize("redirect", ["", ">/dev/null 2>&1"])
def test_a_child_in_another_session_is_named(redirect: str) -> None:
    script = f"setsid sh -c 'echo $$ >&3; exec sleep 60 {redirect}' 3>&1 & sleep 60"
    result = sh(script, timeout_s=0.6)
    pid = int(result.stdout)
    try:
        assert result.ending is Ending.TIMED_OUT
        assert result.duration_s < 1.6
        assert result.survivors == (f"{pid} sleep 60",)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_closed_streams_do_not_end_the_wait() -> None:
    result = sh("exec >&- 2>&-; sleep 0.4; exit 5")
    assert result.code == 5
    assert result.duration_s >= 0.4


def test_a_program_that_cannot_run(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/no/such/interpreter\n")
    for argv, code, words in (
        (("no-such-program-here",), 127, "no-such-program-here: not found"),
        ((str(tmp_path / "missing"),), 127, "not found"),
        ((str(plain),), 126, "Permission denied"),
        ((str(tmp_path),), 126, "Permission denied"),
        (("echo", "a\0b"), 126, "null byte"),
    ):
        result = LOCAL.run(Command.of(*argv))
        assert (result.ending, result.code) == (Ending.EXITED, code)
        assert words in result.stderr
    plain.chmod(0o755)
    result = LOCAL.run(Command.of(str(plain)))
    assert (result.code, "interpreter was not found" in result.stderr) == (127, True)
    result = LOCAL.run(Command.of("pwd", cwd=str(tmp_path / "gone")))
    assert result.code == 126
    assert f"{tmp_path}/gone: cannot be used as working folder" in result.stderr


def test_a_signal_is_never_success() -> None:
    result = sh("kill -9 $$")
    assert (result.ending, result.signal, result.code) == (Ending.SIGNALED, "SIGKILL", None)
    assert not result.ok
    assert result.how == "ended by SIGKILL"


def test_environment_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INHERITED", "yes")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    script = 'echo "$INHERITED $TERM $PAGER $NO_COLOR ${FORCE_COLOR-none} $MINE"; pwd'
    env = {"MINE": "a b", "PAGER": "less"}
    result = LOCAL.run(Command.of("sh", "-c", script, env=env, cwd=str(tmp_path)))
    assert result.stdout == f"yes dumb less 1 none a b\n{tmp_path}\n"


def test_ctrl_c_ends_the_group_and_goes_on(tmp_path: Path) -> None:
    # The signal goes to a program of its own, as it would come from a terminal.
    program = """
import sys
from tools.command import Command
from tools.connectors.local import Local
try:
    Local().run(Command.of("sh", "-c", "sleep 60 & echo $! > pid; echo go; wait"),
                lambda stream, text: print(text, end="", flush=True))
except KeyboardInterrupt:
    print("interrupted")
"""
    root = Path(__file__).parent.parent
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with child, child.stdout as lines:
        assert lines.readline() == "go\n"
        begun = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert lines.readline() == "interrupted\n"
        assert child.wait(5) == 0
        assert time.monotonic() - begun < 2
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_a_failing_listener_ends_the_command(tmp_path: Path) -> None:
    def listener(stream: str, text: str) -> None:
        raise RuntimeError(text)

    command = Command.of("sh", "-c", "echo $$; while :; do echo x; sleep 0.05; done")
    with pytest.raises(RuntimeError) as caught:
        LOCAL.run(command, listener)
    assert not is_alive(int(str(caught.value).split()[0]))


def test_many_runs_at_once_keep_apart_and_leave_nothing_open() -> None:
    def one(number: int) -> None:
        answers[number] = sh('echo "$1"', str(number)).stdout

    answers: dict[int, str] = {}
    one(0)
    before = len(list(Path("/proc/self/fd").iterdir()))
    threads = [threading.Thread(target=one, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: f"{number}\n" for number in range(20)}
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_step_of_the_wall_clock_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = iter(range(10**6))
    monkeypatch.setattr(time, "time", lambda: next(steps) * 3600.0)
    result = sh("sleep 0.3; echo done", timeout_s=5)
    assert result.stdout == "done\n"
    assert 0.3 <= result.duration_s < 1
