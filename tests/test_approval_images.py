"""What mode ``auto`` grants on a host with Docker, and what ``--yes`` never answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.approval import Policy, Word, decide, policy_for
from agent.dockerfile import dockerfile
from agent.goal import parse_goal
from agent.values import Purpose, ToolCall
from tools.images import ImageState
from tools.packages import EnvironmentState
from tools.registry import find

ID = "sha256:" + "b" * 64
LAYER = dockerfile(
    ImageState(present=True, id=ID),
    EnvironmentState(exists=True, executable="/usr/bin/python3", pip_version="25.0"),
    ("transformers==5.3.0",),
    "why",
)
START = {
    "image": "engine:1",
    "name": "bringup-r1",
    "port": 8000,
    "mounts": [{"source": "/models/o/n", "target": "/bringup/model", "read_only": True}],
}
BUILD = {"dockerfile": LAYER, "tag": "bringup.0123456789abcdef", "base": "engine:1", "base_id": ID}
FETCH = {"image": "engine:1", "repo": "o/n", "folder": "/models/o/n", "most_gb": 50.0}


def policy(mode: Any = "auto", **allow: Any) -> Policy:
    goal = parse_goal(
        {
            "model": "o/n",
            "hosts": [{"address": "spark-1", "models": "/models"}],
            "candidates": [{"image": "engine:1", "engine": "sglang"}],
            "allow": allow,
        },
        base=Path("/"),
        where="goal",
    )
    return policy_for(goal, mode)


def word(
    tool: str, args: dict[str, Any], given: Policy, purpose: str = "advance", *, own: bool = True
) -> Word:
    made = find(tool)
    full = made.args_type.model_validate(args)
    call = ToolCall(
        tool=tool,
        args=full.model_dump(mode="json"),
        target="spark-1",
        purpose=Purpose.model_validate({"kind": purpose}),
    )
    touches = made.subjects(full)
    asks = made.always_asks
    decision = decide(given, call, made.risk_of(full), touches, always_asks=asks, foreseen=own)
    return decision.word


@pytest.mark.parametrize(
    ("tool", "args", "allow"),
    [
        ("start_service", START, {}),
        ("start_service", {**START, "image": "bringup.0123456789abcdef"}, {}),
        ("start_service", {**START, "port": 8005}, {"ports": ["8001-8010"]}),
        ("build_image", BUILD, {}),
        ("pull_image", {"image": "engine:1"}, {"pull": True}),
        ("fetch_config", {k: v for k, v in FETCH.items() if k != "most_gb"}, {"download_gb": 1}),
        ("fetch_weights", FETCH, {"download_gb": 50}),
    ],
)
def test_what_the_goal_names_is_granted(
    tool: str, args: dict[str, Any], allow: dict[str, Any]
) -> None:
    assert word(tool, args, policy(**allow)) is Word.ALLOW
    assert word(tool, args, policy(**allow), own=False) is Word.ASK, "a brain's own idea"
    assert word(tool, args, policy("supervised", **allow)) is Word.ASK
    assert word(tool, args, policy("read-only", **allow)) is Word.DENY


@pytest.mark.parametrize(
    ("tool", "args", "allow"),
    [
        ("start_service", {**START, "port": 22}, {}),
        ("pull_image", {"image": "engine:1"}, {}),
        ("fetch_weights", FETCH, {}),
        ("fetch_weights", FETCH, {"download_gb": 49}),
        ("fetch_weights", {**FETCH, "most_gb": 0.0}, {"download_gb": 50}),
        ("stop_container", {"name": "glm"}, {"stop": ["glm"]}),
        ("start_container", {"name": "glm"}, {}),
        ("remove_container", {"name": "glm"}, {}),
        ("remove_image", {"image": "engine:1"}, {}),
        ("exec_in_container", {"name": "glm", "argv": ["sh"]}, {}),
        ("trust_host_key", {"host": "h", "fingerprint": "SHA256:" + "a" * 43}, {}),
    ],
)
def test_what_it_does_not_name_is_asked(
    tool: str, args: dict[str, Any], allow: dict[str, Any]
) -> None:
    assert word(tool, args, policy(**allow)) is Word.ASK


def test_what_the_run_started_itself_may_be_stopped() -> None:
    assert word("stop_container", {"name": "bringup-r1"}, policy(), "recover") is Word.ALLOW
    assert word("stop_container", {"name": "bringup-r1"}, policy(), "fix") is Word.ASK


@pytest.mark.parametrize("tool", ["image_probe", "engine_probe", "docker_info", "weights_state"])
def test_looks_are_never_asked(tool: str) -> None:
    args: dict[str, dict[str, Any]] = {
        "image_probe": {"image": "any:1"},
        "engine_probe": {"python": "python3", "engines": [{"module": "vllm"}]},
        "docker_info": {},
        "weights_state": {"folder": "/x"},
    }
    assert word(tool, args[tool], policy("read-only"), "look") is Word.ALLOW
