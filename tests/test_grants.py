"""What the policy says of a single call: modes, grants, and what no grant covers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.approval import Mode, Policy, Word, decide, policy_for
from agent.goal import parse_goal
from agent.values import Purpose, ToolCall
from tests.lab.world_packages import VENV
from tests.lab.world_runs import goal
from tools.base import Risk, Subject
from tools.registry import TOOLS

CHANGE, READ, DESTROY = Risk.CHANGE, Risk.READ, Risk.DESTROY


def on(kind: str, key: str) -> Subject:
    return Subject(kind=kind, key=key)


def word(
    policy: Policy,
    tool: str,
    risk: Risk,
    *touches: Subject,
    always_asks: bool = False,
    own: bool = True,
    **args: Any,
) -> Word:
    """Decide; ``own``: the call is what the playbook itself would do here."""
    made = ToolCall(id="t1.1", tool=tool, args=args)
    return decide(policy, made, risk, touches, always_asks=always_asks, foreseen=own).word


@pytest.mark.parametrize("mode", ["read-only", "supervised", "auto"])
def test_looking_is_always_allowed_and_changes_are_not(mode: Mode) -> None:
    policy = policy_for(goal(), mode)
    environment = on("environment", VENV)
    changes = {"read-only": Word.DENY, "supervised": Word.ASK, "auto": Word.ALLOW}
    assert word(policy, "config_probe", READ, environment) is Word.ALLOW
    assert word(policy, "pip_install", CHANGE, environment) is changes[mode]
    destroys = Word.DENY if mode == "read-only" else Word.ASK
    assert word(policy, "shell", DESTROY, environment) is destroys
    assert word(policy, "ask", READ, always_asks=True) is Word.ASK


@pytest.mark.parametrize(
    ("path", "granted"),
    [
        ("/a/b", True),
        ("/a/b/", True),
        ("/a/b/c", True),
        ("/a/b/./c", True),
        ("/a/bc", False),
        ("/a", False),
        ("/", False),
        ("/a/b/../c", False),
        ("/a/b/..", False),
        ("/x/../a/b", False),
        ("a/b", False),
        ("//a/b", False),
        ("/A/b", False),
        ("~/a/b", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("kind", ["environment", "file", "model"])
def test_a_folder_is_granted_with_what_is_inside(kind: str, path: str, granted: bool) -> None:
    policy = Policy(mode="auto", paths=("/a/b",))
    wanted = Word.ALLOW if granted else Word.ASK
    assert word(policy, "pip_install", CHANGE, on(kind, path)) is wanted


def test_a_grant_holds_for_all_that_is_touched_or_not_at_all() -> None:
    policy = Policy(mode="auto", paths=("/a",), ports=("8000",))
    assert word(policy, "x", CHANGE, on("file", "/a/1"), on("port", "8000")) is Word.ALLOW
    assert word(policy, "x", CHANGE, on("file", "/a/1"), on("file", "/b")) is Word.ASK
    assert word(policy, "x", CHANGE, on("file", "/a/1"), on("service", "web")) is Word.ASK
    assert word(policy, "x", CHANGE, on("host", "host")) is Word.ASK
    assert word(policy, "x", CHANGE) is Word.ASK, "a change of nothing in particular"


@pytest.mark.parametrize(
    ("port", "granted"),
    [(8000, True), (8001, False), (8009, False), (8010, True), (8015, True), (8021, False)],
)
def test_ports_are_granted_by_number_and_range(port: int, granted: bool) -> None:
    policy = policy_for(goal(allow={"ports": ["8010-8020"]}), "auto")
    found = word(policy, "use_port", CHANGE, on("port", str(port)))
    assert found is (Word.ALLOW if granted else Word.ASK)


def test_a_command_of_ones_own_is_asked_about_however_much_is_granted() -> None:
    policy = Policy(mode="auto", paths=("/",), ports=("1-65535",))
    job = on("job", "anything")
    for tool in ("start_job", "exec_in_container"):
        assert word(policy, tool, CHANGE, job, argv=["rm", "-r", "/home"]) is Word.ASK


@pytest.mark.parametrize(
    ("tool", "args"), [("stop_job", {"job": "r-t3.1"}), ("stop_container", {"name": "r"})]
)
def test_what_the_run_started_may_be_stopped_and_nothing_else(
    tool: str, args: dict[str, Any]
) -> None:
    policy = Policy(mode="auto", paths=("/",), stop=("r",))
    recover = Purpose(kind="recover", ref="t3.1")

    def said(purpose: Purpose, given: Policy = policy) -> Word:
        made = ToolCall(id="t1.1", tool=tool, args=args, purpose=purpose)
        return decide(given, made, CHANGE, (on("job", "any"),), foreseen=True).word

    assert said(recover) is Word.ALLOW
    assert said(recover, policy.model_copy(update={"jobs": False})) is Word.ASK
    for kind in ("fix", "advance", "requested"):
        assert said(Purpose.model_validate({"kind": kind, "ref": "t3.1"})) is Word.ASK
    if tool == "stop_job":
        assert said(Purpose(kind="recover", ref="t3.2")) is Word.ASK, "a stop, not a start"


def changing() -> list[str]:
    """Every tool that changes something, but those that are asked about in every mode."""
    return [tool.name for tool in TOOLS if tool.risk is CHANGE and not tool.always_asks]


@pytest.mark.parametrize("tool", changing())
def test_a_place_that_is_granted_is_no_grant_for_whatever_is_brought_there(tool: str) -> None:
    policy = policy_for(goal(allow={"paths": ["/"], "ports": ["1-65535"], "pull": True}), "auto")
    touches = (on("environment", VENV), on("file", f"{VENV}/bin/serve"), on("port", "8000"))
    args: dict[str, Any] = {"job": "r-t1.1", "name": "web", "port": 8000}
    assert word(policy, tool, CHANGE, *touches, own=False, **args) is Word.ASK


def test_what_the_playbook_would_do_is_granted_by_its_place() -> None:
    policy = policy_for(goal(), "auto")
    for tool in ("pip_install", "install_pip", "start_server", "replace_in_file"):
        assert word(policy, tool, CHANGE, on("environment", VENV)) is Word.ALLOW
        assert word(policy, tool, CHANGE, on("environment", "/srv/other")) is Word.ASK
    assert word(policy, "use_port", CHANGE, on("port", "8000"), own=False) is Word.ALLOW


def test_gigabytes_are_asked_about_unless_they_are_allowed() -> None:
    environment = on("environment", VENV)
    wishes: dict[str, Any] = {"requirements": ["torch==2.13.0", "nvidia-cublas==13.0"]}
    policy = policy_for(goal(), "auto")
    assert word(policy, "pip_install", CHANGE, environment, **wishes) is Word.ASK
    allowed = policy_for(goal(allow={"paths": [VENV], "download_mb": 9000}), "auto")
    assert word(allowed, "pip_install", CHANGE, environment, **wishes) is Word.ALLOW


def test_relative_folders_of_a_goal_are_granted_where_they_are(tmp_path: Path) -> None:
    data = {"model": "m", "candidates": [{"venv": "../env"}], "allow": {"paths": ["../env"]}}
    wanted = parse_goal(data, base=tmp_path, where="test")
    environment = on("environment", wanted.candidates[0].venv)
    assert word(policy_for(wanted, "auto"), "pip_install", CHANGE, environment) is Word.ALLOW


@pytest.mark.parametrize(
    "hidden",
    ["\x1b[2K", "\x07", "\r", "\u202e", "\u2066", "\u200b", "\u2028", "\ufe0f", "\u3164", "\ud800"],
)
@pytest.mark.parametrize("mode", ["supervised", "auto"])
def test_what_nobody_would_see_is_refused_before_anybody_is_asked(mode: Mode, hidden: str) -> None:
    policy = Policy(mode=mode, paths=("/a",))
    file = on("file", "/a/1")
    words = f"ls{hidden} -l"
    assert word(policy, "x", CHANGE, file, note="d\u00e9j\u00e0 vu\n\t\u6f22") is not Word.DENY
    assert word(policy, "x", CHANGE, file, argv=["sh", "-c", words]) is Word.DENY
    assert word(policy, "x", CHANGE, file, env={words: "1"}) is Word.DENY
    assert word(policy, "shell", DESTROY, file, command=words) is Word.DENY
    asked: dict[str, Any] = {"always_asks": True, "question": words}
    assert word(policy, "ask", READ, **asked) is Word.DENY
