"""Commands over ssh, against a real sshd."""

from __future__ import annotations

import resource
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.sshd import Sshd, server
from tests.ssh_host import connector, sh
from tools.command import Command, Ending
from tools.connectors.ssh import Ssh
from tools.errors import ConnectionFailed

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with server(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


@pytest.fixture(scope="module")
def host(spark: Sshd) -> Iterator[Ssh]:
    made = connector(spark)
    yield made
    made.close()


def test_output_code_and_words_come_through(host: Ssh) -> None:
    awkward = [
        "a b",
        "'",
        '"',
        "$HOME",
        "`id`",
        "\\",
        "\\\\n",
        "!x",
        "",
        "\n",
        "é\n\n",
        "*",
        "\t",
        "\r",
    ]
    awkward += ["".join(chr(code) for code in range(1, 256)), "-n", "~", "a;b", "#", "Ё€😀"]
    result = host.run(Command.of("printf", r"[%s]", *awkward))
    assert result.ok
    assert result.stdout == "".join(f"[{word}]" for word in awkward)
    result = host.run(Command.of("sh", "-c", "echo out; echo err >&2; exit 3"))
    assert (result.ending, result.code) == (Ending.EXITED, 3)
    assert (result.stdout, result.stderr) == ("out\n", "err\n")


@pytest.mark.parametrize("argv", [("cat",), ("sh", "-c", "read x; echo $?")])
def test_standard_input_is_closed(host: Ssh, argv: tuple[str, ...]) -> None:
    result = host.run(Command.of(*argv, timeout_s=5))
    assert result.ending is Ending.EXITED
    assert result.duration_s < 2


@pytest.mark.parametrize("text", ["", "é\r\n\0", "\ud800"])
def test_input_is_given_as_it_is(host: Ssh, text: str) -> None:
    result = host.run(Command.of("od", "-An", "-tx1", stdin=text))
    assert bytes.fromhex(result.stdout.replace("\n", "")) == text.encode("utf-8", "surrogatepass")


def test_large_input_and_output_do_not_block_each_other(host: Ssh) -> None:
    text = "0123456789abcde\n" * 200_000
    result = host.run(Command.of("sh", "-c", "tee /dev/stderr | wc -c", stdin=text))
    assert result.stdout.strip() == str(len(text))
    assert result.stderr_omitted > 2_000_000


def test_input_that_nobody_reads(host: Ssh) -> None:
    result = host.run(Command.of("true", stdin="x" * 4_000_000, timeout_s=5))
    assert result.ok


def test_interleaved_streams_are_both_counted_to_the_byte(host: Ssh) -> None:
    script = """
import os
for i in range(2000):
    os.write(1, b"o" * 4096)
    os.write(2, b"e" * 3000)
"""
    result = host.run(Command.of(sys.executable, "-c", script))
    assert result.ok
    assert result.duration_s < 10
    for text, omitted, total, letter in (
        (result.stdout, result.stdout_omitted, 2000 * 4096, "o"),
        (result.stderr, result.stderr_omitted, 2000 * 3000, "e"),
    ):
        head, gap, tail = text.split("\n")
        assert f"{omitted} bytes left out" in gap
        assert len(head) + len(tail) + omitted == total
        assert set(head + tail) == {letter}


def test_endless_output_ends_with_the_limit_and_fits_in_memory(host: Ssh) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = host.run(Command.of("yes", timeout_s=1))
    assert result.ending is Ending.TIMED_OUT
    assert result.duration_s < 4
    assert len(result.stdout) < 300_000
    assert result.stdout_omitted > 1_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000


def test_bytes_that_are_no_text(host: Ssh) -> None:
    result = sh(host, r"printf 'caf\351 \377\n'; printf '\342\202'; sleep 0.2; printf '\254'")
    assert result.stdout == "caf\N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}\n€"


def test_output_is_told_while_it_comes_and_in_the_callers_thread(host: Ssh) -> None:
    told: list[tuple[str, str, float, int]] = []
    begun = time.monotonic()

    def listen(stream: str, text: str) -> None:
        told.append((stream, text, time.monotonic() - begun, threading.get_ident()))

    script = "echo one; echo two >&2; sleep 0.5; echo three"
    host.run(Command.of("sh", "-c", script), listen)
    assert {it[:2] for it in told[:2]} == {("stdout", "one\n"), ("stderr", "two\n")}
    assert told[1][2] < 0.4
    assert told[2][:2] == ("stdout", "three\n")
    assert {it[3] for it in told} == {threading.get_ident()}


def test_environment_and_folder(host: Ssh, tmp_path: Path) -> None:
    script = 'echo "$TERM $PAGER $NO_COLOR $MINE"; pwd'
    env = {"MINE": "a 'b'\n$c", "PAGER": "less"}
    folder = tmp_path / "a b"
    folder.mkdir()
    result = host.run(Command.of("sh", "-c", script, env=env, cwd=str(folder)))
    assert result.stdout == f"dumb less 1 a 'b'\n$c\n{folder}\n"
    result = host.run(Command.of("sh", "-c", 'cd "$1" && pwd', "sh", ".", cwd="."))
    assert result.stdout.startswith("/")


def test_values_of_variables_are_in_no_argument_list(host: Ssh, spark: Sshd) -> None:
    script = "cat /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c hunter[2]; echo $SECRET"
    result = host.run(Command.of("sh", "-c", script, env={"SECRET": "hunter2"}))
    assert result.stdout == "0\nhunter2\n"
    assert "hunter2" not in spark.log()


def test_a_program_that_cannot_run(host: Ssh, tmp_path: Path) -> None:
    for argv, code, words in (
        (("no-such-program-here",), 127, "no-such-program-here"),
        ((str(tmp_path),), 126, str(tmp_path)),
        (("echo", "a\0b"), 126, "null byte"),
        (("echo", "\ud800"), 126, "cannot be started"),
        (("-x",), 126, "dash"),
    ):
        result = host.run(Command.of(*argv))
        assert (result.ending, result.code) == (Ending.EXITED, code)
        assert words in result.stderr
    result = host.run(Command.of("pwd", cwd=str(tmp_path / "gone")))
    assert result.code == 126
    assert f"{tmp_path}/gone: cannot be used as working folder" in result.stderr
    result = host.run(Command.of("true", env={"A-B": "1"}))
    assert (result.code, "'A-B'" in result.stderr) == (126, True)


def test_a_signal_is_never_success(host: Ssh) -> None:
    result = sh(host, "echo before; kill -9 $$")
    assert (result.ending, result.signal, result.code) == (Ending.SIGNALED, "SIGKILL", None)
    assert result.stdout == "before\n"
    assert not result.ok


def test_many_at_once_share_one_connection_and_at_most_eight_channels(
    spark: Sshd, tmp_path: Path
) -> None:
    answers: dict[int, str] = {}
    script = 'touch "$2/$1"; ls "$2" | wc -l; sleep 0.15; rm "$2/$1"'

    def one(number: int) -> None:
        answers[number] = sh(shared, script, str(number), str(tmp_path)).stdout

    before = spark.logins()
    files = len(list(Path("/proc/self/fd").iterdir()))
    threads = threading.active_count()
    shared = connector(spark)
    try:
        workers = [threading.Thread(target=one, args=(number,)) for number in range(20)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        shared.close()
    counts = [int(text) for text in answers.values()]
    assert len(counts) == 20
    assert 4 < max(counts) <= 8
    assert spark.logins() == before + 1
    time.sleep(0.3)
    assert len(list(Path("/proc/self/fd").iterdir())) <= files
    assert threading.active_count() <= threads


def test_no_place_becomes_free_in_time(host: Ssh) -> None:
    channels = [host.open_channel(("cat",), 5) for _ in range(8)]
    try:
        with pytest.raises(ConnectionFailed, match="8 commands run there already"):
            host.run(Command.of("true", timeout_s=0.2))
        channels.pop().close()
        assert host.run(Command.of("true", timeout_s=5)).ok
    finally:
        for channel in channels:
            channel.close()


def test_a_channel_carries_bytes_both_ways(host: Ssh) -> None:
    channel = host.open_channel(("sh", "-c", 'printf "<%s>" "$1"; cat', "sh", "a 'b'\n"), 5)
    channel.sendall(b"\0\xff")
    channel.shutdown_write()
    got = b""
    while piece := channel.recv(1000):
        got += piece
    channel.close()
    assert got == b"<a 'b'\n>\0\xff"
