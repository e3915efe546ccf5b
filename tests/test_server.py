"""Servers, against real processes."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.job_host import LOCAL, Host, is_alive, wait_for
from tools.base import CallContext, Risk
from tools.command import Ending, Result
from tools.errors import ToolFailed
from tools.job_start import JobStarted, StartJob, StartJobArgs
from tools.jobs import StopJob, StopJobArgs
from tools.server import (
    ServerState,
    StartServer,
    StartServerArgs,
    WatchServer,
    WatchServerArgs,
)
from tools.server_options import ServerOptions, ServerOptionsArgs


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "host dir")
    yield host
    host.clear()


SERVER = """
import sys, time, http.server
port, wait = int(sys.argv[1]), float(sys.argv[2])
for percent in range(0, 101, 20):
    sys.stderr.write("\\rLoading weights: %d%%|##| %d/100" % (percent, percent))
    sys.stderr.flush()
    time.sleep(wait / 5)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start_server(host: Host, port: int, *argv: str) -> JobStarted:
    seen = host.use(StartServer(), {"argv": argv, "port": port})
    assert isinstance(seen, JobStarted)
    return seen


def watch(host: Host, job: str, port: int, **more: Any) -> list[ServerState]:
    """Watch as a dispatcher does; return what was seen at each sample."""
    tool, call = WatchServer(), host.context()
    url = f"http://127.0.0.1:{port}/health"
    args = WatchServerArgs.model_validate(
        {"job": job, "url": url, "python": sys.executable, **more}
    )
    results: list[Result] = []
    seen: list[ServerState] = []
    deadline = time.monotonic() + args.limit_s
    while time.monotonic() < deadline:
        results.append(LOCAL.run(tool.command(args, call)))
        seen.append(tool.parse_all(args, call, results))
        if tool.finished(args, seen[-1]):
            break
        time.sleep(tool.interval_s)
    assert tool.parse_all(args, call, results) == seen[-1]
    return seen


def test_a_server_is_watched_until_it_is_healthy(host: Host) -> None:
    port = free_port()
    job = start_server(host, port, sys.executable, "-c", SERVER, str(port), "1.2")
    seen = watch(host, job.job, port, limit_s=10)
    assert [state.state for state in seen[:-1]] == ["loading"] * (len(seen) - 1)
    assert len(seen) > 2
    assert (seen[-1].state, seen[-1].http_status, seen[-1].port_owner) == ("healthy", 200, "job")
    assert seen[-1].progress == "Loading weights: 100%"
    assert "Loading weights: 0%" not in seen[-1].log_tail
    assert 0.8 < seen[-1].waited_s < 4
    assert seen[-1].cpu_s > 0
    assert seen[-1].headline().startswith("healthy after")


def test_a_server_that_fails_tells_its_first_error(host: Host) -> None:
    fails = """
import sys
print("x" * 9000, file=sys.stderr)
try:
    import no_such_module
except ImportError as error:
    raise ValueError("the echo") from error
finally:
    print("y\\\\n" * 9000)
"""
    job = start_server(host, 1, sys.executable, "-c", fails)
    seen = watch(host, job.job, 1, limit_s=10)[-1]
    assert (seen.state, seen.code) == ("exited", 1)
    assert seen.earliest_error == "ModuleNotFoundError: No module named 'no_such_module'"
    assert "exited after" in seen.headline()
    assert "no_such_module" in seen.headline()


def test_an_error_long_ago_in_the_log_is_found(host: Host) -> None:
    script = "echo 'ERROR: port held' >&2; yes filler | head -c 100000 >&2; exit 3"
    job = start_server(host, 1, "sh", "-c", script)
    seen = watch(host, job.job, 1, limit_s=10)[-1]
    assert (seen.state, seen.code, seen.earliest_error) == ("exited", 3, "ERROR: port held")


def test_an_error_that_has_scrolled_away_explains_a_server_that_hangs(host: Host) -> None:
    script = "echo 'ERROR: no route' >&2; sleep 1; yes filler | head -c 5000 >&2; exec sleep 60"
    job = start_server(host, 1, "sh", "-c", script)
    seen = watch(host, job.job, 1, limit_s=10, stuck_after_s=0.9)[-1]
    assert (seen.state, seen.earliest_error) == ("stuck", "ERROR: no route")
    assert "ERROR" not in seen.log_tail


def test_samples_of_a_running_server_are_small(host: Host) -> None:
    noise = "ERROR $(pwd) again and again\n"
    script = f"yes '{noise}' | head -c 99999; yes '{noise}' | head -c 99999 >&2; sleep 60"
    job = start_server(host, 1, "sh", "-c", script)
    tool, call = WatchServer(), host.context()
    args = WatchServerArgs.model_validate({"job": job.job, "url": "http://127.0.0.1:1/"})
    wait_for(lambda: host.status(job.job).err_bytes >= 99999)
    command = tool.command(args, call)
    assert len(LOCAL.run(command).stdout) < 2 * 600 + 500
    assert host.stop(job.job) == "stopped"
    ended = LOCAL.run(command)
    assert 2 * 32768 < len(ended.stdout) < 80_000
    seen = tool.parse_all(args, call, [ended])
    assert (seen.state, seen.earliest_error) == ("exited", noise.strip())
    assert 7000 < len(seen.log_tail) <= 8193


def test_a_server_that_vanished_has_exited(host: Host) -> None:
    job = start_server(host, 1, "sleep", "60")
    os.killpg(os.getpgid(job.pid), signal.SIGKILL)
    wait_for(lambda: not is_alive(job.pid))
    seen = watch(host, job.job, 1, limit_s=10)[-1]
    assert (seen.state, seen.code) == ("exited", None)


def test_silence_is_stuck(host: Host) -> None:
    job = start_server(host, 1, "sh", "-c", "echo NCCL waits >&2; exec sleep 60")
    seen = watch(host, job.job, 1, limit_s=10, stuck_after_s=0.9)[-1]
    assert seen.state == "stuck"
    assert seen.log_tail == "NCCL waits"
    assert 0.9 <= seen.waited_s < 4


@pytest.mark.parametrize(
    "script", ["while :; do echo x; sleep 0.1; done", "while :; do :; done"], ids=["log", "cpu"]
)
def test_a_process_that_works_is_never_stuck(host: Host, script: str) -> None:
    job = start_server(host, 1, "sh", "-c", script)
    seen = watch(host, job.job, 1, limit_s=2.6, stuck_after_s=0.8)
    assert {state.state for state in seen[:-2]} == {"loading"}
    assert seen[-1].state == "undecided"


def test_another_process_on_the_port_is_not_our_server(host: Host) -> None:
    port = free_port()
    other = start_server(host, port, sys.executable, "-c", SERVER, str(port), "0")
    assert watch(host, other.job, port, limit_s=10)[-1].state == "healthy"
    job = start_server(host, port, "sleep", "60")
    seen = watch(host, job.job, port, limit_s=1)[-1]
    assert (seen.http_status, seen.port_owner) == (200, "other")
    assert seen.state != "healthy"
    assert "not the job's" in seen.headline()


def test_watching_needs_a_job_and_a_python(host: Host) -> None:
    with pytest.raises(ToolFailed, match="run-c0: there is no folder"):
        watch(host, "run-c0", 1)
    job = start_server(host, 1, "sleep", "60")
    with pytest.raises(ToolFailed, match="python9: no such Python on the host"):
        watch(host, job.job, 1, python="python9")


def test_a_sample_that_cannot_be_read_does_not_end_a_watch(host: Host) -> None:
    job = start_server(host, 1, "sleep", "60")
    tool, call = WatchServer(), host.context()
    args = WatchServerArgs.model_validate({"job": job.job, "url": "http://127.0.0.1:1/"})
    good = LOCAL.run(tool.command(args, call))
    bad = Result(Ending.TIMED_OUT, duration_s=20)
    assert tool.parse_all(args, call, [bad, good, bad, bad]).state == "loading"
    with pytest.raises(ToolFailed, match="timed out after 20 s"):
        tool.parse_all(args, call, [good, *[bad] * 5])


def test_a_long_watch_is_read_quickly(host: Host) -> None:
    job = start_server(host, 1, "sleep", "60")
    tool, call = WatchServer(), host.context()
    args = WatchServerArgs.model_validate({"job": job.job, "url": "http://127.0.0.1:1/"})
    sample = LOCAL.run(tool.command(args, call))
    clock = sample.stdout.partition(" now=")[2].split()[0]
    results = []
    begun = time.monotonic()
    for number in range(3600):
        text = sample.stdout.replace(f" now={clock}", f" now={number / 2}")
        results.append(replace(sample, stdout=text.replace(" err_bytes=0", f" err_bytes={number}")))
        seen = tool.parse_all(args, call, results)
    assert (seen.state, seen.waited_s) == ("undecided", 1799.5)
    assert time.monotonic() - begun < 5


def options_of(*argv: str) -> Any:
    tool = ServerOptions()
    args = ServerOptionsArgs(argv=argv)
    call = CallContext("run", "c1", "MARK", "/nowhere")
    return tool.parse(args, call, LOCAL.run(tool.command(args, call)))


def test_options_of_a_real_program() -> None:
    seen = options_of(sys.executable, "-m", "json.tool")
    assert {"-h", "--help", "--sort-keys", "--indent"} <= set(seen.options)
    assert seen.positionals == ["infile", "outfile"]
    assert seen.text_head.startswith("usage:")


def test_a_program_without_help() -> None:
    with pytest.raises(ToolFailed, match=r"(?s)gave no help \(exit 1\):.*No module named no_such"):
        options_of(sys.executable, "-m", "no_such")
    with pytest.raises(ToolFailed, match="no-such-program: not found"):
        options_of("no-such-program")
    with pytest.raises(ToolFailed, match="echo --help gave no help"):
        options_of("sh", "-c", "true", "echo")


@pytest.mark.parametrize(
    ("argv", "risk"),
    [
        (("/env/bin/transformers", "serve"), Risk.READ),
        (("/env/bin/python", "-m", "sglang.launch_server"), Risk.READ),
        (("/env/bin/python3.11", "-m", "a", "b"), Risk.CHANGE),
        (("/env/bin/python", "-c", "import x"), Risk.CHANGE),
        (("/env/bin/python", "wipe"), Risk.CHANGE),
        (("./wipe",), Risk.CHANGE),
        (("transformers", "serve"), Risk.CHANGE),
        (("/bin/sh", "wipe"), Risk.CHANGE),
        (("/usr/bin/env", "wipe"), Risk.CHANGE),
        (("/usr/bin/find", ".", "-delete"), Risk.CHANGE),
    ],
)
def test_asking_for_help_is_only_a_look_where_it_is_sure(argv: tuple[str, ...], risk: Risk) -> None:
    assert ServerOptions().risk_of(ServerOptionsArgs.model_validate({"argv": argv})) is risk


def test_declarations() -> None:
    args = {"argv": ("x",), "port": 8123, "name": "llm"}
    server = StartServerArgs.model_validate(args)
    subjects = [str(subject) for subject in StartServer().subjects(server)]
    assert subjects == ["job llm", "port 8123", "program x"]
    assert StartServer().risk_of(server) is StopJob().risk is StartJob().risk is Risk.CHANGE
    assert StartServer.establishes == ("process_up",)
    assert StartServer().undo_text(server) == "stopped with stop_job"
    job = StartJobArgs(argv=("x",))
    assert StartJob().undo_text(job) == "stopped with stop_job"
    assert (
        StopJob().undo_text(StopJobArgs.model_validate({"job": "a"}))
        == "started again with start_job"
    )
    watch = WatchServerArgs.model_validate({"job": "run-c1", "url": "http://[::1]:81/h"})
    assert [str(item) for item in WatchServer().subjects(watch)] == ["job run-c1", "port 81"]
    for wrong in (
        {"url": "file:///etc/passwd"},
        {"url": "http://a:99999"},
        {"python": "rm"},
        {"python": "python3 -c x"},
    ):
        with pytest.raises(ValidationError):
            WatchServerArgs.model_validate({"job": "a", "url": "http://a", **wrong})
