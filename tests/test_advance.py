"""How a server's container is started: what it gets by need, and what stays as the image has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.advance import call_to
from agent.events import RunStarted
from agent.facts import Known
from agent.fold import View
from agent.goal import parse_goal
from agent.image_checks import IMAGE_CHECKS
from agent.records import CallRecord
from agent.site import site_of
from agent.values import CallStatus, ToolCall
from tools.base import Risk, Subject
from tools.docker_engine import DockerInfo, EngineState
from tools.images import ImageState, InspectImage
from tools.registry import find

GPU_HOST = EngineState(
    client_version="28.3.3",
    server_version="28.3.3",
    api_version="1.51",
    architecture="arm64",
    os="linux",
    cpus=20,
    memory_mib=122502,
    storage_driver="overlay2",
    data_root="/var/lib/docker",
    runtimes=("io.containerd.runc.v2", "nvidia", "runc"),
)
"""An engine with the NVIDIA runtime registered, as ``docker info`` tells it."""


def view(candidate: dict[str, Any], **more: Any) -> View:
    goal = parse_goal(
        {"model": "/models/m", "candidates": [{"engine": "sglang", **candidate}]} | more,
        base=Path("/"),
        where="goal",
    )
    header = RunStarted(
        run_id="r1",
        started_at="",
        seed="",
        version="",
        goal=goal.model_dump(mode="json"),
        brain="",
        mode="auto",
        interactive=False,
        yes=False,
        grants=(),
        policy={},
        host_dir="",
    )
    return View([header])


def learn(view: View, tool: Any, args: dict[str, Any], seen: Any) -> None:
    view.facts.learn(Known(tool.name, "local", args, seen, (), "e1", 1))


def start(view: View) -> dict[str, Any]:
    return call_to(view, site_of(view), "start_service").args


@pytest.mark.parametrize(
    ("wish", "gpus", "ipc"),
    [("auto", "all", "host"), ("none", "", ""), ("0,1", "0,1", "host")],
)
def test_gpus_and_shared_memory_are_given_where_they_are_needed(
    wish: str, gpus: str, ipc: str
) -> None:
    made = view({"image": "i", "gpus": wish})
    learn(made, DockerInfo(), {}, GPU_HOST)
    assert (start(made)["gpus"], start(made)["ipc"]) == (gpus, ipc)


def test_without_the_runtime_no_gpu_is_asked_for() -> None:
    made = view({"image": "i"})
    learn(made, DockerInfo(), {}, GPU_HOST.model_copy(update={"runtimes": ("runc",)}))
    assert (start(made)["gpus"], start(made)["ipc"]) == ("", "")


@pytest.mark.parametrize(
    ("entrypoint", "replaced"),
    [
        ((), ""),
        (("/opt/nvidia/nvidia_entrypoint.sh",), ""),
        (("tini", "--"), ""),
        (("vllm", "serve"), "python3"),
        (("python3", "-m", "vllm.entrypoints.openai.api_server"), "python3"),
    ],
)
def test_an_entrypoint_that_prepares_is_kept_and_one_that_serves_is_not(
    entrypoint: tuple[str, ...], replaced: str
) -> None:
    made = view({"image": "i"})
    seen = ImageState(present=True, id="sha256:0", repo_tags=("i:latest",), entrypoint=entrypoint)
    learn(made, InspectImage(), {"image": "i"}, seen)
    args = start(made)
    assert args["entrypoint"] == replaced
    assert [*filter(None, [replaced]), *args["argv"]][:3] == [
        "python3",
        "-m",
        "sglang.launch_server",
    ]


def test_the_model_is_mounted_for_reading_only_and_named_by_its_place_inside() -> None:
    args = start(view({"image": "i"}, port=8123, name="qwen"))
    (mount,) = args["mounts"]
    assert mount == {"source": "/models/m", "target": "/bringup/model", "read_only": True}
    assert "/bringup/model" in args["argv"]
    assert "8123" in args["argv"]
    assert args["name"] == "qwen"


def touches(tool: str, args: dict[str, Any]) -> tuple[Subject, ...]:
    made = find(tool)
    return tuple(made.subjects(made.args_type.model_validate(args)))


@pytest.mark.parametrize("model", ["/models/m", "/models/m/config.json", "o/n"])
def test_what_a_check_asks_is_about_its_subject(model: str) -> None:
    """Else no diagnosis of it could cite what was seen."""
    host = {"address": "spark-1", "models": "/models"}
    made = view({"image": "i"}, model=model, hosts=[host], needs={"memory_mib": 1}, name="s")
    started = record("start_service", {**start(made), "port": 8000})
    made.effects.services["s"] = started
    site = site_of(made)
    for check in IMAGE_CHECKS.values():
        call = check.probe(made, site)
        assert call is not None, check.name
        assert check.subject(site) in touches(call.tool, call.args), check.name


def record(tool: str, args: dict[str, Any]) -> CallRecord:
    call = ToolCall(id="t1.1", tool=tool, args=args, target="spark-1")
    return CallRecord(call, 1, started=1, ended=2, risk=Risk.CHANGE, status=CallStatus.OK)
