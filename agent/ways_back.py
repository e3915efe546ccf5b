"""What takes back a change of a host: what a person, or a brain, may ask of ``take_back``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent.records import CallRecord
from agent.values import CallStatus
from tools.host_changes import AddToGroup, MakeEnvironment, SetLimits
from tools.nvidia_runtime import ConfigureDockerRuntime
from tools.os_packages import InstallPackages


def way_back(record: CallRecord) -> dict[str, Any] | None:
    """Return the arguments that take a change back, by what its result says.

    Returns:
        ``None`` where nothing was changed, or where it is not known what was.
    """
    if record.call.tool not in WAYS_BACK or record.status is not CallStatus.OK:
        return None
    what, names_in = WAYS_BACK[record.call.tool]
    names = names_in(record.observation)
    running = list(record.call.args.get("running", ()))
    call_id = record.call.id
    return {"what": what, "call": call_id, "names": names, "running": running} if names else None


def _packages(seen: dict[str, Any]) -> list[str]:
    return [str(item).split()[0] for item in seen["new"]]


def _environment(seen: dict[str, Any]) -> list[str]:
    return [seen["folder"]]


def _group(seen: dict[str, Any]) -> list[str]:
    return [] if seen["was_member"] else [seen["group"], seen["user"]]


def _limits(seen: dict[str, Any]) -> list[str]:
    return [seen["path"], *filter(None, [seen["backup"]])]


def _runtime(seen: dict[str, Any]) -> list[str]:
    return [seen["path"], seen["written"], *filter(None, [seen["backup"]])]


WAYS_BACK: dict[str, tuple[str, Callable[[dict[str, Any]], list[str]]]] = {
    InstallPackages().name: ("packages", _packages),
    MakeEnvironment().name: ("environment", _environment),
    AddToGroup().name: ("group", _group),
    SetLimits().name: ("limits", _limits),
    ConfigureDockerRuntime().name: ("runtime", _runtime),
}
"""Tools whose changes can be taken back: what they change, and its names in their result."""
