"""How commands in a container end, by way of this machine and by way of ssh: on a real engine."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.outputs import MIB, Outputs
from agent.redact import Redactor
from tests.docker_host import container, use_engine
from tests.lab.engine import docker_run, engine
from tests.lab.sshd import Sshd, server
from tests.ssh_host import connector
from tools.command import Command, Ending, Result
from tools.connectors.base import Connector
from tools.connectors.docker import Docker, exec_command, exec_result
from tools.connectors.local import Local
from tools.connectors.ssh import Ssh
from tools.errors import ConnectionFailed

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    variables = f"SHLVL=2 DOCKER_HOST={engine()}"
    with server(tmp_path_factory.mktemp("sshd"), SetEnv=variables) as sshd:
        yield sshd


@pytest.fixture(params=["local", "ssh"])
def host(
    request: pytest.FixtureRequest, spark: Sshd, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Connector]:
    use_engine(monkeypatch)
    made: Connector = Local() if request.param == "local" else connector(spark)
    yield made
    made.close()


@pytest.fixture(scope="module")
def name() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        use_engine(patch)
        with container("sleep", "600") as made:
            yield made


@pytest.fixture
def inside(host: Connector, name: str) -> Docker:
    return Docker(name, host)


def sh(place: Connector, script: str, *words: str, timeout_s: float = 20.0) -> Result:
    return place.run(Command.of("sh", "-c", script, "sh", *words, timeout_s=timeout_s))


def processes(name: str) -> list[str]:
    rows = docker_run("top", name, "-eo", "pid,args").splitlines()[1:]
    return [row.split(None, 1)[1] for row in rows if "defunct" not in row]


def end_all(place: Connector) -> None:
    """End what a test has left in the container, which other tests use too."""
    sh(
        place,
        "for file in /proc/[0-9]*/comm; do read -r word <$file; pid=${file#/proc/}; pid=${pid%/*}; "
        '[ "$word" != sleep ] || [ $pid = 1 ] || kill -9 $pid; done',
    )


@pytest.mark.parametrize("argv", [("cat",), ("sh", "-c", "read x; echo $?"), ("python3", "-")])
def test_standard_input_is_closed(inside: Docker, argv: tuple[str, ...]) -> None:
    result = inside.run(Command.of(*argv, timeout_s=10))
    assert result.ending is Ending.EXITED
    assert result.duration_s < 5


def test_a_background_child_does_not_hold_the_call(inside: Docker, name: str) -> None:
    result = sh(inside, "sleep 51 & echo ok")
    assert (result.code, result.stdout) == (0, "ok\n")
    assert result.duration_s < 8
    assert "sleep 51" in processes(name)
    end_all(inside)


def test_a_time_out_ends_the_group(inside: Docker, name: str) -> None:
    script = "trap '' TERM; sleep 52 & sleep 52 & while :; do sleep 1; done"
    result = sh(inside, script, timeout_s=1)
    assert (result.ending, result.code, result.survivors) == (Ending.TIMED_OUT, None, ())
    assert result.duration_s < 10
    assert processes(name) == ["sleep 600"]


def test_what_has_left_the_group_is_named(inside: Docker, name: str) -> None:
    result = sh(inside, "setsid sleep 53 & echo begun; sleep 54", timeout_s=1)
    assert (result.ending, result.stdout) == (Ending.TIMED_OUT, "begun\n")
    assert [row.split(None, 1)[1] for row in result.survivors] == ["sleep 53"]
    assert sorted(processes(name)) == ["sleep 53", "sleep 600"]
    end_all(inside)


def test_interleaved_streams_are_both_counted_to_the_byte(inside: Docker) -> None:
    script = "import os\nfor i in range(2000): os.write(1, b'o' * 4096); os.write(2, b'e' * 3000)"
    result = inside.run(Command.of("python3", "-c", script, timeout_s=20))
    assert result.ok
    for text, omitted, total, letter in (
        (result.stdout, result.stdout_omitted, 2000 * 4096, "o"),
        (result.stderr, result.stderr_omitted, 2000 * 3000, "e"),
    ):
        head, _, tail = text.split("\n")
        assert len(head) + len(tail) + omitted == total
        assert set(head + tail) == {letter}


def test_bytes_that_are_no_text(inside: Docker) -> None:
    result = sh(inside, r"printf 'caf\351 \377\n'; printf '\342\202'; sleep 0.2; printf '\254'")
    assert result.stdout == "caf\N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}\n€"
    assert sh(inside, "head -c 100000 /dev/urandom").ok


def test_a_signal_is_never_success(inside: Docker) -> None:
    result = sh(inside, "echo before; kill -9 $$")
    assert not result.ok
    assert (result.stdout, result.code) == ("before\n", 137)


def test_odd_ends(inside: Docker) -> None:
    assert sh(inside, "exec >&- 2>&-; exit 3").code == 3
    assert sh(inside, r"printf '\377\376'; exec sh -c 'exit 4'").code == 4
    broken = inside.run(Command.of("sh", "-c", "echo 'unterminated"))
    assert (broken.ok, broken.stdout) == (False, "")
    assert "nterminated" in broken.stderr
    assert inside.run(Command.of("nonsense")).code == 127


def test_a_listener_that_fails_ends_the_command(inside: Docker, name: str) -> None:
    def listener(stream: str, text: str) -> None:
        raise RuntimeError(text)

    with pytest.raises(RuntimeError):
        inside.run(Command.of("sh", "-c", "echo x; exec sleep 55"), listener)
    assert processes(name) == ["sleep 600"]


def test_a_recorded_command_tells_its_limit_too(host: Connector, name: str) -> None:
    """What runs dispatch into a container is the host's command, and ends by itself there."""
    for seconds, ending in (("44", Ending.TIMED_OUT), ("0.1", Ending.EXITED)):
        command = exec_command(name, Command.of("sleep", seconds, timeout_s=1))
        result = exec_result(command, host.run(command))
        assert result.ending is ending
    assert processes(name) == ["sleep 600"]


def test_the_container_dies_during_a_command(host: Connector) -> None:
    with container("sleep", "600") as name:
        timer = threading.Timer(0.7, docker_run, ["kill", name])
        timer.start()
        result = sh(Docker(name, host), "echo begun; sleep 56", timeout_s=20)
        timer.join()
        assert (result.ending, result.code) == (Ending.LOST, None)
        assert "the container has stopped while it ran" in result.stderr
        assert result.duration_s < 15
        with pytest.raises(ConnectionFailed, match="is not running"):
            sh(Docker(name, host), "true")


def test_a_connection_that_breaks_is_no_exit_code(spark: Sshd, name: str) -> None:
    host = connector(spark)
    assert sh(Docker(name, host), "true").ok
    timer = threading.Timer(0.7, spark.signal, [signal.SIGKILL])
    timer.start()
    result = sh(Docker(name, host), "echo begun; exec sleep 57", timeout_s=3)
    assert (result.ending, result.code) == (Ending.LOST, None)
    assert result.how == "connection lost, outcome unknown"
    deadline = time.monotonic() + 30
    while "sleep 57" in processes(name) and time.monotonic() < deadline:
        time.sleep(0.3)
    assert processes(name) == ["sleep 600"], "the limit inside the container still holds"
    host.close()


def test_a_long_output_is_kept_whole(
    spark: Sshd, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_engine(monkeypatch)
    aside = Outputs(tmp_path / "outputs", lambda: Redactor({}, {}), 100 * MIB)
    far = Ssh("spark", name="spark", config_file=str(spark.config), aside=aside)
    for host in (Local(aside), far):
        result = sh(Docker(name, host), "seq 200000; echo end >&2")
        text = "".join(f"{number}\n" for number in range(1, 200001))
        assert result.stderr == "end\n"
        assert result.stdout.endswith("\n199999\n200000\n")
        assert result.stdout_kept is not None
        assert (tmp_path / "outputs" / result.stdout_kept.sha256).read_text().endswith(text)
        host.close()
