"""The Docker engine, as the machine's facts tell of it."""

from __future__ import annotations

import json
from typing import Any

from tools.docker import mib
from tools.machine_parts import Docker, Problem, Service
from tools.machine_text import MISSING, Part, mib_of_bytes, whole

_SIZE = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def docker_of(part: Part, images: Part) -> tuple[Docker | None, list[Problem]]:
    """Read the engine and its running containers; ``None`` where there is no docker program.

    The problem named ``docker`` is why the engine cannot be used.
    """
    if part.code == MISSING:
        return None, []
    if part.code is None and not part.lines:
        return None, [problem for problem in [part.problem("docker")] if problem]
    version, info = _row(part, "version"), _row(part, "info")
    server = _inner(version, "Server")
    devices = [row for row in _list(info, "DiscoveredDevices") if isinstance(row, dict)]
    count, size = _images(images)
    docker = Docker(
        client=str(_inner(version, "Client").get("Version", "")),
        server=str(server.get("Version", "")),
        root=str(info.get("DockerRootDir") or ""),
        storage=str(info.get("Driver") or ""),
        runtimes=tuple(sorted(_inner(info, "Runtimes"))),
        default_runtime=str(info.get("DefaultRuntime") or ""),
        cdi=tuple(str(row.get("ID", "")) for row in devices) or tuple(part.values("cdi")),
        toolkit=part.value("toolkit").rpartition(" ")[2],
        cgroup=str(info.get("CgroupVersion") or ""),
        rootless=any("rootless" in str(word) for word in _list(info, "SecurityOptions")),
        images=whole(str(info.get("Images", ""))) if count is None else count,
        images_mib=size,
        containers=whole(str(info.get("Containers", ""))),
        socket=" ".join(part.value("socket").split()[:2]),
        services=services_of(part),
    )
    return docker, _problems(part, images, docker)


def names_of(part: Part) -> dict[str, str]:
    """Return the names of running containers by their whole ids."""
    rows = map(_object, part.values("service"))
    return {str(row.get("ID", "")): str(row.get("Names", "")) for row in rows}


def services_of(part: Part) -> tuple[Service, ...]:
    """Read the running containers, and what memory their control groups have."""
    used = dict(row.partition(" ")[::2] for row in part.values("memory"))
    found = []
    for text in part.values("service"):
        row = _object(text)
        ports = tuple(filter(None, str(row.get("Ports", "")).split(", ")))
        shared = ("host network",) if row.get("Networks") == "host" else ()
        identity = str(row.get("ID", ""))
        service = Service(
            name=str(row.get("Names", "")),
            id=identity[:12],
            image=str(row.get("Image", "")),
            status=str(row.get("Status", "")),
            ports=ports + shared,
            mib=mib_of_bytes(used.get(identity, "")),
        )
        found.append(service)
    return tuple(found)


def _problems(part: Part, images: Part, docker: Docker) -> list[Problem]:
    found = []
    told = ("version ", "info ", "service ", "memory ", "socket ", "cdi ", "toolkit ")
    said = " ".join(line for line in part.lines if not line.startswith(told))
    problem = part.problem("docker", said=said)
    if problem is not None:
        found.append(problem)
    elif not docker.server:
        found.append(Problem(part="docker", kind="failed", note=said[:200]))
    if docker.server and (unknown := images.problem("images", said="docker system df")):
        found.append(unknown)
    return found


def _images(part: Part) -> tuple[int | None, int | None]:
    """Read the row of images of ``docker system df``: how many, and how much they take."""
    for line in part.lines:
        if line.startswith('"Images" '):
            words = [str(word) for word in _words(line)]
            if len(words) == 3:
                return whole(words[2]), _mib(words[1])
    return None, None


def _words(line: str) -> list[Any]:
    try:
        return [json.loads(word) for word in line.split(" ")]
    except (ValueError, RecursionError):
        return []


def _mib(text: str) -> int | None:
    unit = text.lstrip("0123456789.")
    try:
        return mib(float(text.removesuffix(unit)) * _SIZE[unit])
    except (ValueError, KeyError):
        return None


def _row(part: Part, word: str) -> dict[str, Any]:
    return _object(part.value(word))


def _object(text: str) -> dict[str, Any]:
    try:
        row = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def _list(row: dict[str, Any], key: str) -> list[Any]:
    inner = row.get(key)
    return inner if isinstance(inner, list) else []


def _inner(row: dict[str, Any], key: str) -> dict[str, Any]:
    inner = row.get(key)
    return inner if isinstance(inner, dict) else {}
