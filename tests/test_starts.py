"""Ten starts, as varied as people's machines: each ends ready or names the cause."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.demo.checkpoint import write_checkpoint
from agent.session import Session
from agent.values import Outcome
from tests.lab.environments import (
    NEW,
    NEW_ALONE,
    OLD,
    OLD_ALONE,
    clone,
    environment,
    older_python,
    pip,
)
from tests.lab.need import need
from tests.lab.runs import driven, serve_goal
from tests.lab.wheels import wheel

pytestmark = pytest.mark.lab


@pytest.fixture
def site(tmp_path: Path) -> Path:
    write_checkpoint(tmp_path / "model")
    return tmp_path


def outcome(session: Session) -> Outcome:
    ended = session.run.view.ended
    assert ended is not None, "the run has not ended"
    return ended.outcome


def cause(session: Session) -> str:
    ended = session.run.view.ended
    assert ended is not None, "the run has not ended"
    return str(ended.report.get("cause", "")) + "\n" + str(ended.report.get("advice", ""))


def calls(session: Session, tool: str) -> list[dict[str, object]]:
    return [r.call.args for r in session.run.view.calls.values() if r.call.tool == tool]


def test_already_fine_is_left_alone(site: Path) -> None:
    with driven(serve_goal(site, environment(*NEW)), site) as session:
        assert outcome(session) is Outcome.READY
        assert calls(session, "pip_install") == []
        assert session.run.view.diagnoses == {}


def test_story_a_transformers_too_old(site: Path) -> None:
    venv = clone(environment(*OLD), site / "env")
    with driven(serve_goal(site, venv), site) as session:
        assert outcome(session) is Outcome.READY
        (diagnosis,) = session.run.view.diagnoses.values()
        assert diagnosis.kind == "version-pin"
        (install,) = calls(session, "pip_install")
        assert not any(str(item).startswith("torch==") for item in install["requirements"])  # type: ignore[attr-defined]


def test_a_release_that_satisfies_5_and_still_fails(site: Path) -> None:
    venv = clone(environment(*OLD), site / "env")
    pip(venv, "install", "--quiet", "transformers==5.0.0")
    with driven(serve_goal(site, venv), site) as session:
        assert outcome(session) is Outcome.READY
        (diagnosis,) = session.run.view.diagnoses.values()
        assert "5.0.0 does not know" in diagnosis.cause


def test_an_engine_with_its_own_config_class_is_not_fixed(site: Path) -> None:
    venv = clone(environment(*OLD), site / "env")
    pip(venv, "install", "--quiet", "--no-deps", str(wheel("enginelike", site)))
    words = ["{python}", "-m", "enginelike", "--model", "{model}", "--port", "{port}"]
    engine = {"engine": "custom", "serve": words, "registry": ["enginelike.configs"]}
    with driven(serve_goal(site, venv, candidate=engine, options={}), site) as session:
        assert outcome(session) is Outcome.READY
        assert calls(session, "pip_install") == []
        assert calls(session, "pip_resolve") == []


@contextmanager
def holder(port: int) -> Iterator[subprocess.Popen[str]]:
    code = (
        "import socket,sys,time; s=socket.socket(); s.bind(('127.0.0.1', int(sys.argv[1])));"
        "s.listen(); print('held', flush=True); time.sleep(600)"
    )
    argv = [sys.executable, "-c", code, str(port)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_held_port_is_named_and_another_allowed_one_used(site: Path) -> None:
    goal = serve_goal(site, environment(*NEW))
    spare = f"{goal.port + 1}-{goal.port + 9}"
    goal = goal.model_copy(update={"allow": goal.allow.model_copy(update={"ports": (spare,)})})
    with holder(goal.port) as process, driven(goal, site) as session:
        assert outcome(session) is Outcome.READY
        assert session.run.view.port != goal.port
        (diagnosis,) = session.run.view.diagnoses.values()
        assert f"pid {process.pid}" in diagnosis.cause
        assert process.poll() is None, "what is not ours was ended"


def test_a_held_port_without_leave_for_another_is_asked_about(site: Path) -> None:
    goal = serve_goal(site, environment(*NEW))
    with holder(goal.port) as process, driven(goal, site) as session:
        assert session.run.view.ended is None
        (asked,) = session.run.view.pending_approvals
        assert str(goal.port) in asked.why + asked.title + asked.reason
        assert process.poll() is None, "what is not ours was ended"


def test_no_torch(site: Path) -> None:
    venv = clone(environment(*NEW_ALONE), site / "env")
    with driven(serve_goal(site, venv), site) as session:
        assert outcome(session) is Outcome.READY
        first, *more = session.run.view.diagnoses.values()
        assert first.kind == "missing-module"
        assert "torch" in first.cause
        assert all("accelerate" in later.cause for later in more), (
            "it needs torch and is missing too"
        )


def mounted(folder: Path, size: str) -> None:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    need(os.geteuid() == 0, "a small tmpfs can only be mounted by root")
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    need(done.returncode == 0, f"a tmpfs cannot be mounted: {done.stderr.strip()}")


def size_mib(folder: Path) -> int:
    done = subprocess.run(["du", "-sm", str(folder)], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0])


def test_a_full_disk(site: Path) -> None:
    source = environment(*OLD_ALONE)
    disk = site / "disk"
    mounted(disk, f"{size_mib(source) + 12}m")
    try:
        subprocess.run(["cp", "-a", str(source), str(disk / "env")], check=True)
        with driven(serve_goal(site, disk / "env"), site) as session:
            assert outcome(session) is Outcome.NOT_REACHED
            assert "full" in cause(session)
            assert str(disk / "env") in cause(session)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_read_only_environment(site: Path) -> None:
    source = environment(*OLD_ALONE)
    disk = site / "disk"
    mounted(disk, f"{size_mib(source) + 200}m")
    try:
        subprocess.run(["cp", "-a", str(source), str(disk / "env")], check=True)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with driven(serve_goal(site, disk / "env"), site) as session:
            assert outcome(session) is Outcome.NOT_REACHED
            assert "cannot be written" in cause(session)
            assert calls(session, "pip_install") == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_no_pip_in_the_environment(site: Path) -> None:
    venv = clone(environment(*OLD), site / "env")
    pip(venv, "uninstall", "--yes", "--quiet", "pip")
    with driven(serve_goal(site, venv), site) as session:
        assert outcome(session) is Outcome.READY
        assert [d.kind for d in session.run.view.diagnoses.values()] == [
            "missing-module",
            "version-pin",
        ]


def test_a_python_too_old_for_the_fix(site: Path) -> None:
    venv = environment(*OLD_ALONE, python=older_python("3.9"))
    with driven(serve_goal(site, venv), site) as session:
        assert outcome(session) is Outcome.NOT_REACHED
        assert "needs Python" in cause(session)
        assert "3.9" in cause(session)
        assert calls(session, "pip_install") == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"model_type": "qwen3_5_text",', "config.json"),
        ("[1, 2]", "config.json"),
        (json.dumps({"architectures": ["X"]}), "model type"),
    ],
    ids=["cut off", "not an object", "no model type"],
)
def test_a_broken_config(site: Path, text: str, named: str) -> None:
    (site / "model" / "config.json").write_text(text, encoding="utf-8")
    with driven(serve_goal(site, environment(*NEW)), site) as session:
        assert outcome(session) is Outcome.NOT_REACHED
        assert named in cause(session)
        assert calls(session, "start_server") == []
