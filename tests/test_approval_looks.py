"""Looks: free where they stay with the goal, asked about beyond it, and never of a private file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.advance import call_to
from agent.approval import Mode, policy_for
from agent.calls import full
from agent.events import (
    AnyEvent,
    ApprovalAsked,
    CallEnded,
    CallQueued,
    CallStarted,
    DiagnosisRecorded,
    RunStarted,
)
from agent.fold import View
from agent.foreseen import foreseen
from agent.goal import Goal, parse_goal
from agent.reach import beyond
from agent.session import Session
from agent.site import site_of
from agent.values import CallStatus, Purpose, ToolCall
from tests.lab.world_packages import VENV
from tests.lab.world_runs import Says, call, events, play, say
from tests.lab.world_runs import goal as venv_goal
from tests.lab.worlds import World
from tools.base import Risk

PYTHON = f"{VENV}/bin/python"
OURS = "bringup.0123456789abcdef"
URL = "http://127.0.0.1:8000"
SERVED = {"url": f"{URL}/health", "job": "r-t1.1"}


def image_goal() -> Goal:
    data: dict[str, Any] = {
        "model": "o/n",
        "hub": "https://hub.example.org",
        "hosts": [{"address": "me@spark-1:22", "models": "/models", "python": "/opt/py/python3"}],
        "candidates": [{"image": "engine:1", "engine": "sglang"}],
        "allow": {"ports": ["8001-8010"]},
    }
    return parse_goal(data, base=Path("/"), where="goal")


def view(wanted: Goal, *more: AnyEvent) -> View:
    header = RunStarted(
        run_id="r",
        started_at="2026-11-30T12:00:00+00:00",
        seed="5eed",
        version="0",
        goal=wanted.model_dump(mode="json"),
        brain="openai",
        mode="auto",
        interactive=False,
        policy=policy_for(wanted, "auto", torch_index="https://cpu.example.org").model_dump(
            mode="json"
        ),
    )
    return View(event.model_copy(update={"seq": n}) for n, event in enumerate((header, *more)))


def reason(wanted: Goal, tool: str, args: dict[str, Any], target: str = "") -> str:
    made = full(ToolCall(tool=tool, args=args, target=target or wanted.hosts[0].name))
    seen = view(wanted, *_service(wanted))
    return beyond(seen, made)


def _service(wanted: Goal) -> list[AnyEvent]:
    """A server of the run: the container ``ours``."""
    start = ToolCall(
        id="t1.1", tool="start_service", args={"name": "ours"}, target=wanted.hosts[0].name
    )
    seen = {"container": "ours", "id": "a" * 64, "port": 8000}
    ended = CallEnded(call_id="t1.1", tool="start_service", status=CallStatus.OK, observation=seen)
    return [CallQueued(call=start, risk=Risk.CHANGE), CallStarted(call_id="t1.1"), ended]


FREE: list[tuple[str, dict[str, Any]]] = [
    ("http_check", {"python": "python3", "url": f"{URL}/v1/models?x=1"}),
    ("http_check", {"python": "python3", "url": "http://localhost:8000"}),
    ("http_check", {"python": "python3", "url": "http://[::1]:8000/health"}),
    ("chat_check", {"python": "python3", "base_url": URL, "model": "m"}),
    ("watch_server", SERVED),
    ("port_owner", {"python": "python3", "port": 22}),
    ("port_owner", {"python": "python3", "port": 8000, "host": "0.0.0.0"}),  # noqa: S104
    ("pip_list", {"python": PYTHON}),
    ("pip_list", {"python": "/usr/bin/python3.11"}),
    ("import_probe", {"python": PYTHON, "modules": ["torch"]}),
    ("server_options", {"argv": [f"{VENV}/bin/transformers", "serve"]}),
    ("pip_resolve", {"python": PYTHON, "requirements": ["Transformers[serving]>=5.2,<6"]}),
    (
        "pip_resolve",
        {
            "python": PYTHON,
            "requirements": ["pyyaml"],
            "constraints": ["torch==2.13.0"],
            "extra_index": ["https://cpu.example.org"],
        },
    ),
    ("read_file", {"path": "/var/log/syslog"}),
    ("read_file", {"path": "/etc/hosts", "python": "python3"}),
    ("grep", {"pattern": "x", "path": "/home/alice/logs"}),
    ("image_probe", {"image": OURS, "python": "/opt/conda/bin/python"}),
]
BEYOND: list[tuple[str, dict[str, Any], str]] = [
    ("http_check", {"python": "python3", "url": "http://evil.example/?key=1"}, "evil.example"),
    ("http_check", {"python": "python3", "url": "http://127.0.0.1.evil.example:8000"}, "evil"),
    ("http_check", {"python": "python3", "url": "http://169.254.169.254/latest/meta-data"}, "169"),
    ("http_check", {"python": "python3", "url": "http://2130706433:8000/"}, "2130706433"),
    ("http_check", {"python": "python3", "url": "http://127.0.0.1:2375/containers"}, ":2375"),
    ("http_check", {"python": "python3", "url": "https://127.0.0.1/"}, "not the goal's server"),
    ("http_check", {"python": "python3", "url": "http://evil.example\\127.0.0.1:8000"}, "sends"),
    ("chat_check", {"python": "python3", "base_url": "http://evil.example", "model": "m"}, "evil"),
    ("watch_server", SERVED | {"url": "http://a@127.0.0.1:8000/"}, "sends a request"),
    ("watch_server", SERVED | {"url": "http://evil.example:8000/"}, "evil.example"),
    ("watch_server", SERVED | {"python": "/tmp/python3"}, "/tmp/python3"),  # noqa: S108
    ("port_owner", {"python": "python3", "port": 8000, "host": "key.evil.example"}, "looks the"),
    ("port_owner", {"python": "python3", "port": 8000, "host": "10.0.0.9"}, "no address"),
    ("pip_list", {"python": "/home/mallory/bin/python"}, "/home/mallory/bin/python"),
    ("pip_list", {"python": f"{VENV}/bin/../../evil/bin/python"}, "no Python of the goal"),
    ("pip_list", {"python": "/srv/env2/bin/python"}, "no Python of the goal"),
    ("read_file", {"path": "/x", "python": "/usr/bin/tee"}, "/usr/bin/tee"),
    ("weights_state", {"folder": "/x", "python": "sh"}, "it runs sh"),
    ("server_options", {"argv": ["/usr/bin/ssh", "attacker"]}, "/usr/bin/ssh"),
    ("server_options", {"argv": ["/srv/env/../evil/bin/serve"]}, "no program of the goal"),
    ("server_options", {"argv": ["/home/alice/bin/serve"]}, "/home/alice/bin/serve"),
    ("pip_resolve", {"python": PYTHON, "requirements": ["evil-package"]}, "evil-package"),
    ("pip_resolve", {"python": PYTHON, "requirements": ["torch @ https://evil/x.zip"]}, "evil"),
    ("pip_resolve", {"python": PYTHON, "requirements": ["/tmp/evil"]}, "/tmp/evil"),  # noqa: S108
    (
        "pip_resolve",
        {"python": PYTHON, "requirements": ["torch"], "constraints": ["numpy @ file:///x"]},
        "numpy @ file",
    ),
    (
        "pip_resolve",
        {"python": PYTHON, "requirements": ["torch"], "extra_index": ["https://evil.example"]},
        "evil.example",
    ),
    ("image_probe", {"image": "evil:1"}, "does not name the image evil:1"),
    ("image_manifest", {"image": "evil.example/key:1"}, "evil.example/key:1"),
    ("use_image", {"base": "engine:1", "image": OURS}, "the playbook"),
]


@pytest.mark.parametrize(("tool", "args"), FREE)
def test_looks_at_what_the_goal_is_about_are_free(tool: str, args: dict[str, Any]) -> None:
    assert reason(venv_goal(), tool, args) == ""


@pytest.mark.parametrize(("tool", "args", "says"), BEYOND)
def test_looks_beyond_it_say_why(tool: str, args: dict[str, Any], says: str) -> None:
    assert says in reason(venv_goal(), tool, args)


@pytest.mark.parametrize(
    ("tool", "args", "target", "free"),
    [
        ("read_file", {"path": "/x"}, "spark-1/ours", True),
        ("read_file", {"path": "/x", "python": "/venv/bin/python"}, "spark-1/ours", True),
        ("server_options", {"argv": ["/venv/bin/sglang", "serve"]}, "spark-1/ours", True),
        ("read_file", {"path": "/x"}, "spark-1/theirs", False),
        ("python_environment", {"python": "python3"}, "spark-1/theirs", False),
        ("http_check", {"python": "python3", "url": f"{URL}/x"}, "spark-1/theirs", False),
        ("weights_state", {"folder": "/models/o/n", "python": "/opt/py/python3"}, "", True),
        ("weights_state", {"folder": "/models/o/n", "python": "/opt/py/python4"}, "", False),
        ("image_probe", {"image": "engine:1", "config": "/models/o/n/config.json"}, "", True),
        ("image_probe", {"image": "engine:1", "config": "/home/me/.docker"}, "", False),
        ("image_manifest", {"image": "engine:1"}, "", True),
        ("image_manifest", {"image": "engine:2"}, "", False),
        ("http_check", {"python": "python3", "url": "https://hub.example.org/o/n"}, "", True),
        ("http_check", {"python": "python3", "url": "http://spark-1:8010/health"}, "", True),
        ("http_check", {"python": "python3", "url": "http://spark-1:8011/health"}, "", False),
        (
            "chat_check",
            {"python": "python3", "base_url": "https://hub.example.org", "model": "m"},
            "",
            False,
        ),
    ],
)
def test_on_a_host_with_docker(tool: str, args: dict[str, Any], target: str, free: bool) -> None:
    assert (reason(image_goal(), tool, args, target) == "") is free


@pytest.mark.parametrize(
    "tool", ["start_server", "start_service", "pull_image", "fetch_config", "fetch_weights"]
)
@pytest.mark.parametrize("wanted", [venv_goal(), image_goal()])
def test_what_is_for_another_kind_of_place_is_not_foreseen(tool: str, wanted: Goal) -> None:
    args = {"argv": ["x"], "image": "engine:1", "name": "n", "repo": "o/n", "folder": "/m"}
    made = ToolCall(tool=tool, args=args, target=wanted.hosts[0].name)
    assert not foreseen(view(wanted), made)
    purpose = Purpose(kind="fix", ref="d1")
    diagnosis = DiagnosisRecorded(
        diagnosis_id="d1",
        kind="unknown",
        cause="x",
        evidence=(),
        subject=wanted_subject(),
        check="imports",
    )
    assert not foreseen(view(wanted, diagnosis), made.model_copy(update={"purpose": purpose}))


def wanted_subject() -> Any:
    return {"kind": "environment", "key": VENV}


def test_what_is_foreseen_is_so_word_for_word_and_in_its_place() -> None:
    seen = view(venv_goal())
    made = full(call_to(seen, site_of(seen), "start_server"))
    assert foreseen(seen, made)
    for update in (
        {"target": "local/theirs"},
        {"args": made.args | {"env": {"LD_PRELOAD": "/tmp/x.so"}}},  # noqa: S108
        {"args": made.args | {"argv": [*made.args["argv"], "--trust-remote-code"]}},
        {"args": made.args | {"host": "0.0.0.0"}},  # noqa: S104
        {"args": made.args | {"cwd": "/srv/evil"}},
    ):
        assert not foreseen(seen, made.model_copy(update=update)), update


KEY = call("read_file", path="/root/.ssh/id_rsa")
HOMES = call("grep", pattern="hf_", path="/home")
PROGRAM = "/home/mallory/bin/python"
AWAY = call("pip_list", python=PROGRAM)


def look(folder: Path, made: ToolCall, mode: Mode, **more: Any) -> tuple[Session, World]:
    world = World()
    return play(folder, world, mode=mode, brain=Says([made]), **more), world


@pytest.mark.parametrize("mode", ["read-only", "supervised", "auto"])
@pytest.mark.parametrize("made", [KEY, HOMES])
def test_private_files_are_refused_whoever_could_be_asked(
    tmp_path: Path, made: ToolCall, mode: Mode
) -> None:
    run, world = look(tmp_path, made, mode, yes=True, interactive=True, answer=say("yes"))
    record = run.run.view.calls["t1.1"]
    assert record.status is CallStatus.REFUSED
    assert "keys" in record.message
    assert (record.started, events(run, "approval_asked")) == (-1, [])
    assert not {"file", "grep"} & set(world.asked)


@pytest.mark.parametrize("mode", ["supervised", "auto"])
def test_a_person_is_asked_before_a_look_beyond_the_goal(tmp_path: Path, mode: Mode) -> None:
    asked: list[ApprovalAsked] = []

    def yes_please(items: list[ApprovalAsked]) -> Any:
        asked.extend(items)
        return say("yes")(items)

    yes, world = look(tmp_path / "1", AWAY, mode, interactive=True, answer=yes_please)
    assert PROGRAM in world.asked
    assert asked[0].reason.startswith("it looks further than the goal: it runs /home/mallory")
    assert (asked[0].risk, asked[0].undo) == (Risk.READ, "")
    no, world = look(tmp_path / "2", AWAY, mode, interactive=True, answer=say("no"))
    assert no.run.view.calls["t1.1"].status is CallStatus.REFUSED
    assert PROGRAM not in world.asked
    assert len(events(yes, "approval_asked")) == 1


def test_the_flag_answers_for_changes_and_not_for_looks(tmp_path: Path) -> None:
    parked, world = look(tmp_path / "1", AWAY, "supervised", yes=True)
    assert len(parked.run.view.pending_approvals) == 1
    denied, more = look(tmp_path / "2", AWAY, "auto", yes=True, on_ask="deny")
    refused, most = look(tmp_path / "3", AWAY, "read-only", yes=True)
    for run in (denied, refused):
        assert run.run.view.calls["t1.1"].status is CallStatus.REFUSED
    assert PROGRAM not in {*world.asked, *more.asked, *most.asked}


@pytest.mark.parametrize("mode", ["read-only", "supervised", "auto"])
def test_the_playbooks_own_looks_are_never_asked(tmp_path: Path, mode: Mode) -> None:
    run = play(tmp_path, World(), mode=mode, interactive=True, answer=say("yes"))
    assert [item for item in events(run, "approval_asked") if item.risk is Risk.READ] == []
    looks = [it for it in run.run.view.calls.values() if it.risk is Risk.READ and it.turn]
    assert {record.status for record in looks} <= {CallStatus.OK, CallStatus.CANCELLED}
