"""Finds and removes what runs have left on a host's Docker engine, whoever began them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent.dockerfile import PREFIX
from tools.base import CallContext
from tools.connectors.base import Connector
from tools.container_changes import RemoveContainer, StopContainer
from tools.containers import ListContainers
from tools.errors import ToolFailed
from tools.images import ListImages, RemoveImage
from tools.registry import find

LABEL = "bringup.run"
OURS = "bringup.made=container"
"""A container that a person makes of one of our images inherits the image's labels, not this."""
CONTEXT = CallContext(run_id="clean", call_id="clean", marker="@clean", host_dir="")


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that a run made."""

    kind: str
    """container or image."""
    name: str
    run: str
    """The run's id, as the label says; empty where the list does not tell."""
    running: bool = False


def find_all(host: Connector) -> list[Leftover]:
    """Return what carries our label, containers first: an image in use cannot be removed.

    Raises:
        ToolFailed: Docker cannot be used there.
        ConnectionFailed: the host cannot be reached.
    """
    containers = _ask(host, ListContainers().name, all=True, label=OURS).containers
    found = [
        Leftover("container", row.name, row.labels.get(LABEL, ""), row.state == "running")
        for row in containers
    ]
    images = _ask(host, ListImages().name, label=LABEL).images
    return found + [
        Leftover("image", row.reference, "") for row in images if row.reference.startswith(PREFIX)
    ]


def remove(host: Connector, item: Leftover) -> str:
    """Remove one thing; return why not, or an empty text where it is gone.

    Raises:
        ConnectionFailed: the host was lost.
    """
    try:
        if item.running:
            _ask(host, StopContainer().name, name=item.name)
        if item.kind == "container":
            _ask(host, RemoveContainer().name, name=item.name)
        else:
            _ask(host, RemoveImage().name, image=item.name)
    except ToolFailed as error:
        gone = "No such image" in str(error) or "No such container" in str(error)
        return "" if gone else str(error)
    return ""


def _ask(host: Connector, tool_name: str, /, **args: Any) -> Any:
    tool = find(tool_name)
    full = tool.args_type.model_validate(args)
    result = host.run(tool.command(full, CONTEXT))
    return tool.parse(full, CONTEXT, result)
