"""The engine asked: a real one, none, one that may not be used, and ones that misbehave."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
import time
from pathlib import Path

import pytest

from tests.docker_host import CALL, use, use_engine
from tests.engine_socket import begin, chunk, engine_like, hang_up, reply
from tests.lab.engine import docker_run
from tests.lab.need import need
from tools.command import Command, Ending, Result
from tools.connectors.local import Local
from tools.containers import ListContainers
from tools.docker import failure
from tools.docker_engine import DockerInfo, DockerInfoArgs
from tools.errors import ToolFailed

PULL = Command.of("docker", "pull", "lab/none:1", via="engine", timeout_s=5)
BUILD = Command.of(
    *("docker", "build", "--tag", "lab/none:1", "-"), stdin="FROM a", via="engine", timeout_s=5
)
VERSION = {"Version": "20.10.24", "ApiVersion": "1.41", "Os": "linux", "Arch": "amd64"}


@pytest.fixture(autouse=True)
def _docker() -> None:
    need(shutil.which("docker") is not None, "docker is missing (apt-get install docker.io)")


def refused(command: Command) -> Result:
    """Carry a command out on this machine's engine; check that it is a plain, told failure."""
    told: list[tuple[str, str]] = []
    result = Local().run(command, lambda stream, text: told.append((stream, text)))
    assert not result.ok
    assert "Traceback" not in result.stderr
    assert ("stderr", result.stderr) in told
    return result


@pytest.mark.lab
def test_a_real_engine_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    use_engine(monkeypatch)
    state = use(DockerInfo())
    said = json.loads(docker_run("info", "--format", "{{json .}}"))
    assert state.server_version == said["ServerVersion"]
    assert state.cpus == said["NCPU"]
    assert state.memory_mib == round(said["MemTotal"] / 2**20)
    assert state.data_root == said["DockerRootDir"]
    assert state.architecture in ("amd64", "arm64")
    assert state.platform == f"linux/{state.architecture}"
    assert "runc" in state.runtimes


def test_there_is_no_docker_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("sh",):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path))
    for tool in (DockerInfo(), ListContainers()):
        with pytest.raises(ToolFailed, match=r"no docker program on the target.*127"):
            use(tool)


def test_nobody_listens_at_the_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    for address in (path, tmp_path / "none.sock"):
        monkeypatch.setenv("DOCKER_HOST", f"unix://{address}")
        with pytest.raises(ToolFailed, match="daemon does not run, or is not reached"):
            use(DockerInfo())
        for command in (PULL, BUILD):
            result = refused(command)
            assert (result.ending, result.code) == (Ending.EXITED, 1)
            assert f"Cannot connect to the Docker daemon at unix://{address}" in result.stderr


def test_the_socket_is_another_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need(os.geteuid() == 0, "another user's socket needs root to be made")
    folder = Path("/run") / f"bringup-test-{os.getpid()}"
    folder.mkdir(mode=0o755)
    path = folder / "docker.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    server = socket.socket(socket.AF_UNIX)
    try:
        server.bind(str(path))
        path.chmod(0o600)
        server.listen()
        words = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
        command = DockerInfo().command(DockerInfoArgs(), CALL)
        result = Local().run(Command.of(*words, *command.argv, timeout_s=20))
        with pytest.raises(
            ToolFailed, match=r"may not use the Docker socket.*[Pp]ermission denied"
        ):
            DockerInfo().parse(DockerInfoArgs(), CALL, result)
        os.seteuid(65534)
        try:
            by_client = refused(PULL)
        finally:
            os.seteuid(0)
    finally:
        server.close()
        shutil.rmtree(folder)
    assert by_client.code == 1
    assert "may not use the Docker socket" in str(failure("docker pull", by_client))


def test_an_engine_that_answers_500(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    body = ""

    def answer(connection: socket.socket, line: str) -> None:
        text = "" if line.startswith("HEAD") else body
        reply(connection, "500 Internal Server Error", text, "text/plain")

    with engine_like(tmp_path, monkeypatch, answer):
        with pytest.raises(ToolFailed, match="engine answers with an error of its own"):
            use(DockerInfo())
        for command in (PULL, BUILD):
            result = refused(command)
            assert result.code == 1
            assert "500 Server Error" in result.stderr
            assert "of its own" in str(failure("docker pull", result))
        body = "the database is broken"
        with pytest.raises(ToolFailed, match="the database is broken"):
            use(DockerInfo())
        assert "the database is broken" in refused(PULL).stderr


def test_an_engine_that_breaks_in_the_middle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def answer(connection: socket.socket, line: str) -> None:
        if "/version" in line:
            return reply(connection, "200 OK", VERSION)
        if "/build" in line:
            begin(connection)
            chunk(connection, {"stream": "Step 1/1 : FROM a"})
        hang_up(connection)
        return None

    with engine_like(tmp_path, monkeypatch, answer):
        result = refused(BUILD)
        assert (result.ending, result.code) == (Ending.EXITED, 1)
        assert "the connection to the Docker engine broke" in result.stderr
        assert "Step 1/1" in result.stdout
        assert "the connection to the Docker engine broke" in refused(PULL).stderr


def test_an_engine_that_hangs_times_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    silent_from = "/version"
    release = threading.Event()

    def answer(connection: socket.socket, line: str) -> None:
        if silent_from in line:
            if silent_from == "/build":
                begin(connection)
                chunk(connection, {"stream": "Step 1/1 : FROM a"})
            release.wait(20)
        elif "/version" in line:
            reply(connection, "200 OK", VERSION)
        elif "/distribution" in line:
            reply(connection, "404 Not Found", {"message": "no such manifest"})

    with engine_like(tmp_path, monkeypatch, answer):
        for silent_from, command in (
            ("/version", PULL),
            ("/distribution", PULL),
            ("/images/create", PULL),
            ("/build", BUILD),
        ):
            short = Command.of(*command.argv, stdin=command.stdin, via="engine", timeout_s=0.4)
            result = refused(short)
            assert (result.ending, result.code) == (Ending.TIMED_OUT, None), silent_from
            assert 0.4 <= result.duration_s < 2
        command = DockerInfo().command(DockerInfoArgs(), CALL)
        late = Local().run(Command.of(*command.argv, timeout_s=0.5))
        with pytest.raises(ToolFailed, match="docker info: no answer within"):
            DockerInfo().parse(DockerInfoArgs(), CALL, late)
        release.set()


def test_silence_is_no_failure_while_there_is_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def answer(connection: socket.socket, line: str) -> None:
        if "/version" in line:
            return reply(connection, "200 OK", VERSION)
        begin(connection)
        chunk(connection, {"stream": "Step 1/1 : FROM a"})
        time.sleep(1.5)
        chunk(connection, {"aux": {"ID": "sha256:" + "0" * 64}})
        connection.sendall(b"0\r\n\r\n")
        return None

    with engine_like(tmp_path, monkeypatch, answer):
        assert Local().run(BUILD).ok


@pytest.mark.parametrize(
    ("argv", "stdin", "words"),
    [
        (("docker", "push", "a"), None, "`docker push` is not carried out"),
        (("podman", "pull", "a"), None, "`podman pull` is not carried out"),
        (("docker",), None, "`docker ` is not carried out"),
        (("docker", "pull", "--all-tags", "a"), None, "unrecognized arguments: --all-tags"),
        (("docker", "pull"), None, "required: image"),
        (("docker", "build", "--tag", "a", "."), "FROM a", "from standard input only"),
        (("docker", "build", "--tag", "a", "-"), None, "from standard input only"),
        (("docker", "build", "--ta", "a", "-"), "FROM a", "docker build: "),
        (("docker", "build", "--build-arg", "A=b", "--tag", "a", "-"), "FROM a", "unrecognized"),
    ],
)
def test_what_is_not_understood_is_not_done(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    argv: tuple[str, ...],
    stdin: str | None,
    words: str,
) -> None:
    asked: list[str] = []

    def answer(connection: socket.socket, line: str) -> None:
        asked.append(line)
        reply(connection, "200 OK", VERSION)

    with engine_like(tmp_path, monkeypatch, answer):
        result = refused(Command.of(*argv, stdin=stdin, via="engine", timeout_s=5))
        assert result.code == 125
        assert words in result.stderr
        for changed in ({"env": {"A": "b"}}, {"cwd": "/"}):
            more = refused(Command.of(*PULL.argv, via="engine", timeout_s=5, **changed))
            assert "takes no variables and no folder" in more.stderr
    assert all("/version" in line for line in asked)


def test_engines_elsewhere_are_not_asked_from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("ssh://gpu", "tcp://127.0.0.1:2376"):
        monkeypatch.setenv("DOCKER_HOST", address)
        monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
        assert f"the Docker engine at {address} cannot be used" in refused(PULL).stderr


def test_the_current_context_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    address = f"unix://{tmp_path}/elsewhere.sock"
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "config"))
    made = Local().run(
        Command.of("docker", "context", "create", "lab", "--docker", f"host={address}")
    )
    assert made.ok, made.stderr
    assert Local().run(Command.of("docker", "context", "use", "lab")).ok
    assert f"Cannot connect to the Docker daemon at {address}" in refused(PULL).stderr
