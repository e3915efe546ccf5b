"""What may be said to the Docker tools: references, names, options that are none."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.docker_host import CALL
from tools.base import Tool
from tools.container_changes import ExecInContainer, RemoveContainer, StartContainer, StopContainer
from tools.container_use import ContainerLogs
from tools.containers import InspectContainer, ListContainers
from tools.image_build import BuildImage
from tools.image_manifest import ImageManifest
from tools.image_pull import PullImage
from tools.images import InspectImage, RemoveImage
from tools.service import StartService
from tools.service_watch import WatchService

DIGEST = f"sha256:{'0a' * 32}"
GOOD_IMAGES = (
    "debian",
    "debian:12",
    "lab/engine:0.5.10rc0",
    "localhost:5000/a/b_c-d.e:V1",
    "registry.example:443/team/engine",
    "[::1]:5000/engine:1",
    f"lab/engine@{DIGEST}",
    f"lab/engine:1@{DIGEST}",
    DIGEST,
    "0821923a2d6a",
)
BAD_IMAGES = (
    "",
    "-v",
    "--privileged",
    "Engine",
    "lab/Engine:1",
    "lab//engine",
    "lab/engine:",
    "lab/engine:-1",
    "lab/engine 1",
    "lab/engine:1\n",
    "lab/engine;id",
    "$(id)",
    "http://lab/engine",
    f"lab/engine@{DIGEST[:-1]}",
)
BAD_NAMES = ("", "-f", "--help", "a b", "a/b", "a\n", "$(id)", "a;b", "é")
OF_IMAGES: tuple[Tool[Any, Any], ...] = (
    InspectImage(),
    ImageManifest(),
    PullImage(),
    RemoveImage(),
)
OF_CONTAINERS: tuple[Tool[Any, Any], ...] = (
    InspectContainer(),
    ContainerLogs(),
    StopContainer(),
    StartContainer(),
    RemoveContainer(),
)


@pytest.mark.parametrize("tool", OF_IMAGES, ids=lambda tool: tool.name)
def test_image_references_are_checked(tool: Tool[Any, Any]) -> None:
    for reference in GOOD_IMAGES:
        args = tool.args_type.model_validate({"image": reference})
        assert reference in tool.command(args, CALL).argv
        assert tool.subjects(args)[0].key == reference
    for reference in BAD_IMAGES:
        with pytest.raises(ValidationError):
            tool.args_type.model_validate({"image": reference})


@pytest.mark.parametrize("tool", OF_CONTAINERS, ids=lambda tool: tool.name)
def test_container_names_are_checked(tool: Tool[Any, Any]) -> None:
    for name in ("a", "engine-1", "a.b_c", "0821923a2d6a"):
        args = tool.args_type.model_validate({"name": name})
        assert tool.command(args, CALL).argv[-1] == name
        assert ("container", name) in [(it.kind, it.key) for it in tool.subjects(args)]
    for name in BAD_NAMES:
        with pytest.raises(ValidationError):
            tool.args_type.model_validate({"name": name})


@pytest.mark.parametrize(
    ("tool", "field", "value"),
    [
        (ListContainers(), "label", "-x"),
        (ListContainers(), "label", "a b"),
        (StartService(), "host", "--privileged"),
        (StartService(), "gpus", '"device=0"'),
        (StartService(), "entrypoint", "-c"),
        (StartService(), "env", {"A=B": "c"}),
        (StartService(), "env", {"-e": "c"}),
        (StartService(), "mounts", [{"source": "relative", "target": "/x"}]),
        (StartService(), "mounts", [{"source": "/a,readonly=false", "target": "/x"}]),
        (StartService(), "mounts", [{"source": "/a", "target": '/x"'}]),
        (StartService(), "network", "container:other"),
        (ExecInContainer(), "workdir", "relative"),
        (BuildImage(), "dockerfile", "RUN true"),
        (BuildImage(), "network", "container:other"),
        (WatchService(), "url", "file:///etc/passwd"),
        (WatchService(), "python", "python; id"),
    ],
)
def test_words_that_could_be_options_are_refused(
    tool: Tool[Any, Any], field: str, value: object
) -> None:
    known: dict[str, dict[str, object]] = {
        "list_containers": {},
        "start_service": {"image": "a", "name": "b"},
        "exec_in_container": {"name": "b", "argv": ["true"]},
        "build_image": {"dockerfile": "FROM a", "tag": "b", "base": "a"},
        "watch_service": {"container": "b", "url": "http://127.0.0.1:1/"},
    }
    good = known[tool.name]
    tool.args_type.model_validate(good)
    with pytest.raises(ValidationError):
        tool.args_type.model_validate({**good, field: value})
