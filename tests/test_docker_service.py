"""Services, commands in containers and throw-away probes, on a real engine."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docker_host import (
    CALL,
    LABEL,
    base,
    container,
    new_name,
    remove,
    run,
    use,
    use_engine,
    watch,
)
from tests.lab.sshd import free_port
from tools.container_changes import ExecInContainer, RemoveContainer, StartContainer, StopContainer
from tools.container_use import ContainerLogs, ContainerUse
from tools.containers import InspectContainer, ListContainers
from tools.errors import ToolFailed
from tools.service import StartService
from tools.service_watch import WatchService

pytestmark = pytest.mark.lab
SHARED = "/dev/shm"  # noqa: S108 - of the container
SERVE = """
import http.server, os, sys, time
print('loading', flush=True)
time.sleep(float(sys.argv[2]))
print('token' in os.environ, file=sys.stderr, flush=True)
address = (sys.argv[3], int(sys.argv[1]))
http.server.HTTPServer(address, http.server.SimpleHTTPRequestHandler).serve_forever()
"""
FAIL = """
import sys
print('loading', flush=True)
def load():
    raise ValueError('unknown model type')
try:
    load()
except ValueError:
    import traceback; traceback.print_exc()
print('RuntimeError: engine core failed', file=sys.stderr)
sys.exit(7)
"""


@pytest.fixture(autouse=True)
def _engine(monkeypatch: pytest.MonkeyPatch) -> None:
    use_engine(monkeypatch)


@pytest.fixture
def name() -> Iterator[str]:
    made = new_name()
    yield made
    remove(made)


def start(name: str, *argv: str, **more: object) -> Any:
    program: dict[str, Any] = {"image": base(), "argv": argv, "name": name, "entrypoint": "python3"}
    return use(StartService(), **{**program, **more})


def seen(name: str, port: int, samples: int = 30, **more: object) -> Any:
    url = f"http://127.0.0.1:{port}/"
    return watch(WatchService(), samples, container=name, url=url, python=sys.executable, **more)


def test_a_service_starts_answers_stops_and_comes_back(name: str) -> None:
    port = free_port()
    started = start(name, "-c", SERVE, str(port), "0.3", "127.0.0.1", port=port, env={"token": "x"})
    assert (started.container, started.port) == (name, port)
    state = seen(name, port)
    assert (state.state, state.status, state.http_status) == ("healthy", "running", 200)
    assert state.port_owner == "job"
    assert (state.restart_count, state.oom_killed, state.code) == (0, False, None)
    assert "loading" in state.log_tail
    shown = use(InspectContainer(), name=name)
    assert (shown.id, shown.image, shown.network_mode) == (started.id, base(), "host")
    labels = {"bringup.call": CALL.call_id, "bringup.made": "container"}
    assert shown.labels == {**dict([LABEL.split("=")]), **labels}
    assert shown.command[2:] == (str(port), "0.3", "127.0.0.1")
    assert "token" in shown.env_names
    assert [row.name for row in use(ListContainers(), label=LABEL).containers] == [name]
    use_now = use(ContainerUse(), name=name).containers[0]
    assert (use_now.name, use_now.pids) == (name, 1)
    assert 1 < use_now.memory_mib < 200
    with pytest.raises(ToolFailed, match=r"running|force"):
        use(RemoveContainer(), name=name)
    stopped = use(StopContainer(), name=name, grace_s=0)
    assert stopped.restart == f"docker start {name}"
    ended = use(InspectContainer(), name=name)
    assert (ended.state, ended.exit_code) == ("exited", 137)
    assert ended.finished_at > ended.started_at
    use(StartContainer(), name=name)
    assert seen(name, port).state == "healthy"
    assert use(RemoveContainer(), name=name, force=True).was_there
    assert not use(RemoveContainer(), name=name, force=True).was_there
    assert not use(InspectContainer(), name=name).present


def test_values_of_variables_are_nowhere(name: str) -> None:
    start(name, "-c", "import time; time.sleep(60)", env={"TOKEN": "canary-5f1d"})
    result = run(InspectContainer(), name=name)
    assert "TOKEN" in result.stdout
    assert "canary" not in result.stdout
    got = use(ExecInContainer(), name=name, argv=["printenv", "TOKEN"])
    assert got.out == "canary-5f1d\n"


def test_a_service_that_ends_tells_its_earliest_error(name: str) -> None:
    start(name, "-c", FAIL)
    state = seen(name, free_port())
    assert (state.state, state.code) == ("exited", 7)
    assert state.earliest_error == "ValueError: unknown model type"
    assert "engine core failed" in state.log_tail
    assert "code 7" in state.headline()
    log = use(ContainerLogs(), name=name, tail=1)
    assert (log.lines, log.text) == (1, "RuntimeError: engine core failed")


def test_a_service_that_is_silent_is_stuck_and_one_that_works_is_not(name: str) -> None:
    start(name, "-c", "import time; print('loading 3%', flush=True); time.sleep(60)")
    state = seen(name, free_port(), stuck_after_s=0.6)
    assert (state.state, state.progress) == ("stuck", "loading 3%")
    busy = "import time\nwhile True: print(time.time(), flush=True); time.sleep(0.05)"
    with container("python3", "-c", busy) as other:
        assert seen(other, free_port(), 6, stuck_after_s=0.6).state == "loading"


def test_another_process_that_answers_is_not_the_service(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        start(name, "-c", SERVE, str(port), "0", "127.0.0.1")
        state = seen(name, port)
        assert state.state == "exited"
        assert "Address already in use" in state.earliest_error


@pytest.mark.parametrize("network", ["host", "bridge"])
def test_a_container_beside_a_server_is_not_healthy(name: str, network: str) -> None:
    port = free_port()
    start(name, "-c", SERVE, str(port), "0", "127.0.0.1")
    assert seen(name, port).state == "healthy"
    idle = new_name()
    try:
        start(idle, "-c", "import time; time.sleep(60)", port=free_port(), network=network)
        state = seen(idle, port, 1)
    finally:
        remove(idle)
    assert (state.http_status, state.port_owner, state.state) == (200, "other", "loading")
    assert "not the container's" in state.headline()


def test_a_published_port_and_the_folder_of_the_target(name: str, tmp_path: Path) -> None:
    (tmp_path / "weights").write_text("w")
    port = free_port()
    mounts = [{"source": str(tmp_path), "target": "/m"}]
    words = ("-c", SERVE, str(port), "0", "0.0.0.0")  # noqa: S104 - inside the container
    start(name, *words, port=port, network="bridge", mounts=mounts, shm_mib=70)
    assert seen(name, port).state == "healthy"
    shown = use(InspectContainer(), name=name)
    assert [(it.host_ip, it.host_port, it.container_port) for it in shown.ports] == [
        ("127.0.0.1", port, port)
    ]
    assert shown.mounts[0].read_only
    row = next(it for it in use(ListContainers()).containers if it.name == name)
    assert row.ports == shown.ports
    writing = use(ExecInContainer(), name=name, argv=["touch", "/m/x"])
    assert "Read-only file system" in writing.err
    shm = use(ExecInContainer(), name=name, argv=["df", "-m", "--output=size", SHARED])
    assert shm.out.split()[-1] == "70"
    with pytest.raises(ToolFailed, match=r"port is already allocated(.|\n)*is to be removed"):
        start(f"{name}-b", *words, port=port, network="bridge")
    assert use(RemoveContainer(), name=f"{name}-b").was_there


@pytest.mark.parametrize(
    ("more", "words", "left"),
    [
        ({"image": "lab/no-such:1"}, "No such image: lab/no-such:1", False),
        ({"gpus": "all"}, "could not select device driver", True),
        ({"entrypoint": "nonsense"}, "executable file not found", True),
        ({"mounts": [{"source": "/no/such", "target": "/m"}]}, "path does not exist", False),
    ],
)
def test_a_service_that_cannot_start_says_why(
    name: str, more: dict[str, object], words: str, left: bool
) -> None:
    with pytest.raises(ToolFailed, match=words) as caught:
        start(name, "-c", "pass", **more)
    assert ("was made and is to be removed" in str(caught.value)) is left
    assert use(InspectContainer(), name=name).present is left
    if left:
        with pytest.raises(ToolFailed, match="is already in use by container"):
            start(name, "-c", "pass")


def test_what_is_not_there_is_said() -> None:
    none = new_name()
    assert not use(StopContainer(), name=none).was_there, "what is gone needs no stopping"
    for tool in (ContainerLogs(), StartContainer(), ContainerUse()):
        with pytest.raises(ToolFailed, match=f"No such container: {none}"):
            use(tool, name=none)
    with pytest.raises(ToolFailed, match=f"No such container: {none}"):
        use(ExecInContainer(), name=none, argv=["true"])
    with pytest.raises(ToolFailed, match=f"No such container: {none}"):
        seen(none, 1)
