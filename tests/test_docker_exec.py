"""Commands in containers and throw-away probes, on a real engine: nothing is left behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent import approval, dispatch, session
from agent.brains.playbook import Playbook
from agent.runs import new_run
from agent.values import CallStatus, ToolCall
from tests.docker_host import CALL, base, container, use, use_engine
from tests.lab.engine import docker_run
from tests.lab.runs import serve_goal
from tools.command import Command, Ending
from tools.connectors.docker import Docker, exec_command, require_begun
from tools.connectors.local import Local
from tools.container_changes import ExecInContainer
from tools.containers import InspectContainer
from tools.docker_run import Mount, probe_command, probe_name, ran
from tools.errors import ConnectionFailed, ToolFailed

pytestmark = pytest.mark.lab


@pytest.fixture(autouse=True)
def _engine(monkeypatch: pytest.MonkeyPatch) -> None:
    use_engine(monkeypatch)


def processes(name: str) -> list[str]:
    rows = docker_run("top", name, "-eo", "pid,args").splitlines()[1:]
    return [row.split(None, 1)[1] for row in rows]


def test_a_command_in_a_container_is_like_one_on_a_host() -> None:
    awkward = ["a b", "'", '"', "$HOME", "`id`", "\\", "", "\n", "é"]
    with container("sleep", "600") as name:
        inside = Docker(name, Local())
        assert inside.name == f"local/{name}"
        result = inside.run(Command.of("printf", "[%s]", *awkward))
        assert result.stdout == "".join(f"[{word}]" for word in awkward)
        echo = Command.of(
            "sh", "-c", "cat; pwd; printenv TOKEN >&2; exit 3", stdin="in\n", cwd="/usr"
        )
        result = inside.run(Command(echo.argv, echo.stdin, {"TOKEN": "a  b"}, "/usr"))
        assert (result.code, result.stdout, result.stderr) == (3, "in\n/usr\n", "a  b\n")
        missing = inside.run(Command.of("nonsense"))
        assert missing.code == 127
        refused = inside.run(Command.of("docker", "pull", "a", via="engine"))
        assert (refused.code, "not possible in a container" in refused.stderr) == (126, True)


def test_nothing_is_left_in_the_container_when_time_is_over() -> None:
    with container("sleep", "600") as name:
        stubborn = "trap '' TERM; sleep 41 & sleep 42; sleep 43"
        late = Docker(name, Local()).run(Command.of("sh", "-c", stubborn, timeout_s=1))
        assert (late.ending, late.code) == (Ending.TIMED_OUT, None)
        assert processes(name) == ["sleep 600"]
        tool = use(ExecInContainer(), name=name, argv=["sleep", "44"], timeout_s=1)
        assert tool.ending is Ending.TIMED_OUT
        assert processes(name) == ["sleep 600"]


def test_a_container_that_is_gone_is_a_lost_target() -> None:
    with container("sleep", "600") as name:
        docker_run("stop", "-t", "0", name)
        with pytest.raises(ConnectionFailed, match=rf"local/{name}: .*is not running"):
            Docker(name, Local()).run(Command.of("true"))
    with pytest.raises(ConnectionFailed, match="No such container"):
        Docker(name, Local()).run(Command.of("true"))


# --- what docker says, and exits with, is never the command's own


def down(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/none.sock")


def absent(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize(
    ("trouble", "words"), [(down, "daemon does not run"), (absent, "there is no docker program")]
)
def test_docker_that_fails_is_no_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trouble: Callable[..., None], words: str
) -> None:
    trouble(monkeypatch, tmp_path)
    with pytest.raises(ConnectionFailed, match=words):
        Docker("engine", Local()).run(Command.of("test", "-e", "/etc/passwd"))
    result = Local().run(exec_command("engine", Command.of("test", "-e", "/etc/passwd")))
    with pytest.raises(ToolFailed, match=words):
        require_begun("engine", result)


def test_a_container_without_a_shell_is_no_exit_code() -> None:
    with container("sleep", "600") as name:
        docker_run("exec", name, "rm", "/bin/sh", "/usr/bin/timeout")
        with pytest.raises(ConnectionFailed, match="has no `sh`"):
            Docker(name, Local()).run(Command.of("true"))
        with pytest.raises(ToolFailed, match=r"timeout.*executable file not found"):
            require_begun(name, Local().run(exec_command(name, Command.of("true"))))
        with pytest.raises(ToolFailed, match=r"timeout.*executable file not found"):
            use(ExecInContainer(), name=name, argv=["true"])
        docker_run("stop", "-t", "0", name)
        with pytest.raises(ToolFailed, match="is not running"):
            require_begun(name, Local().run(exec_command(name, Command.of("true"))))
    with pytest.raises(ToolFailed, match="No such container"):
        require_begun(name, Local().run(exec_command(name, Command.of("true"))))


@pytest.mark.parametrize(
    "script",
    [
        "exec nonsense",
        "docker info",
        "echo 'Error: No such container: another' >&2; exit 1",
        "echo looking; echo 'Cannot connect to the Docker daemon at x' >&2; exit 1",
        "echo 'see: OCI runtime exec failed: x'; exit 126",
    ],
)
def test_what_a_program_says_is_not_taken_for_docker(script: str) -> None:
    with container("sleep", "600") as name:
        result = Local().run(exec_command(name, Command.of("sh", "-c", script)))
        assert not result.ok
        require_begun(name, result)


def test_a_call_into_a_container_fails_where_docker_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    down(monkeypatch, tmp_path)
    goal = serve_goal(tmp_path, tmp_path / "env")
    (tmp_path / "model").mkdir()
    policy, folder = approval.policy_for(goal, "auto"), new_run(tmp_path / "runs")
    begun = session.begin(goal, policy, folder, brain=Playbook(), interactive=False, environ={})
    call = ToolCall(id="t1", tool="shell", target="local/engine", args={"command": "true"})
    ready = dispatch.prepare(begun.run, call)
    dispatch.queue(begun.run, ready, "brain")
    ended = dispatch.execute(begun.run, ready)
    begun.close()
    assert ended.status is CallStatus.FAILED
    assert "the Docker daemon does not run" in ended.message


# --- throw-away probes


def test_a_probe_sees_mounts_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    code = """
import os, socket
print(sorted(os.listdir('/m')), os.environ['A'], os.environ['HOME'])
open('/tmp/x', 'w').write('x')
for path in ('/m/x', '/x'):
    try:
        open(path, 'w')
    except OSError as error:
        print(error.strerror)
print([name for _, name in socket.if_nameindex()])
"""
    command = Command.of("python3", "-", stdin=code, env={"A": "b"}, timeout_s=20)
    mount = Mount(source=str(tmp_path), target="/m", read_only=False)
    result = ran("probe", Local().run(probe_command(CALL, base(), command, [mount])), 20)
    assert result.stdout.splitlines() == [
        "['config.json'] b /tmp",
        "Read-only file system",
        "Read-only file system",
        "['lo']",
    ]
    assert not use(InspectContainer(), name=probe_name(CALL)).present


def test_a_probe_that_hangs_goes_away_by_itself() -> None:
    command = Command.of("sh", "-c", "trap '' TERM; sleep 50", timeout_s=1)
    late = ran("probe", Local().run(probe_command(CALL, base(), command)), 1)
    assert late.ending is Ending.TIMED_OUT
    assert not use(InspectContainer(), name=probe_name(CALL)).present


def test_a_probe_whose_client_is_killed_goes_away_by_itself() -> None:
    command = probe_command(CALL, base(), Command.of("sleep", "50", timeout_s=3))
    cut = Command(command.argv, command.stdin, command.env, timeout_s=1)
    assert Local().run(cut).ending is Ending.TIMED_OUT
    deadline = time.monotonic() + 8
    while use(InspectContainer(), name=probe_name(CALL)).present:
        assert time.monotonic() < deadline, "the probe's container stays"
        time.sleep(0.1)


def test_a_probe_of_no_image_is_dockers_failure() -> None:
    command = probe_command(CALL, "lab/no-such:1", Command.of("true"))
    with pytest.raises(ToolFailed, match="No such image: lab/no-such:1"):
        ran("probe", Local().run(command), 60)


def test_many_calls_hold_no_descriptors() -> None:
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(20):
        Local().run(Command.of("docker", "pull", "127.0.0.1:9/none:1", via="engine", timeout_s=5))
    assert len([*Path("/proc/self/fd").iterdir()]) <= before
