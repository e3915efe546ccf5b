"""Puts the parts of a machine's facts together: each has its parser, none keeps others from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.gpus import gpus_of
from tools.machine_disks import caches_of, disks_of
from tools.machine_docker import docker_of, names_of
from tools.machine_host import (
    clock_of,
    cpu_of,
    limits_of,
    memory_of,
    passthrough_of,
    system_of,
)
from tools.machine_network import network_of
from tools.machine_parts import Disk, Docker, Gpus, Memory, Problem, Service
from tools.machine_processes import holders, processes_of
from tools.machine_software import python_of
from tools.machine_text import Part

NOTHING = Part()
NOT_TOLD = Part(code=None)
EXPECTED = ("system", "memory", "processes", "driver", "nics", "disks", "limits")
"""Parts that every machine has; where one did not come, it is named as a problem."""


def read_parts(
    parts: Mapping[str, Part], sent_at: float | None, received_at: float | None
) -> tuple[dict[str, Any], list[Problem]]:
    """Read all parts; return the fields of ``MachineFacts`` and what could not be had."""
    absent = NOTHING if "end" in parts else NOT_TOLD

    def of(name: str) -> Part:
        return parts.get(name, absent)

    names = names_of(of("docker"))
    gpus, gpu_problem = gpus_of(
        of("gpu_log"),
        of("gpu_words"),
        of("gpu_links"),
        of("driver"),
        processes_of(of("gpu_users")),
        names,
    )
    docker, docker_problems = docker_of(of("docker"), of("images"))
    disks, disk_problems = disks_of(of("disks"), of("mounts"))
    python, python_problems = python_of(of("python"))
    system = system_of(of("system"), of("inside"))
    memory = memory_of(of("memory"))
    if memory is not None:
        who = holders(processes_of(of("processes")), names)
        memory = memory.model_copy(update={"unified": _unified(gpus), "holders": who})
    found: dict[str, Any] = {
        "system": system,
        "cpu": cpu_of(of("cpu")) if "cpu" in parts else None,
        "memory": memory,
        "gpus": gpus,
        "docker": _with_gpu_memory(docker, gpus),
        "python": python,
        "disks": disks,
        "caches": caches_of(of("caches")),
        "network": network_of(of("nics"), of("rdma")) if "nics" in parts else None,
        "limits": limits_of(of("limits"), _shm(disks)) if "limits" in parts else None,
        "clock": clock_of(of("began"), of("ended"), of("clock"), sent_at, received_at),
        "passthrough": passthrough_of(of("inside")) if system.inside else None,
    }
    problems = [*filter(None, [gpu_problem]), *docker_problems, *python_problems, *disk_problems]
    return found, [*problems, *_missing(parts, memory)]


def _missing(parts: Mapping[str, Part], memory: Memory | None) -> list[Problem]:
    found = [parts.get(name, NOT_TOLD).problem(name) for name in EXPECTED]
    if memory is None and "memory" in parts:
        found = [problem for problem in found if not problem or problem.part != "memory"]
        found.append(Problem(part="memory", kind="missing", note="/proc/meminfo tells nothing"))
    hidden = parts.get("inside", NOTHING).value("hidepid")
    if hidden:
        note = "processes of other users are hidden (hidepid)"
        found.append(Problem(part="processes", kind="denied", note=note))
    known = [problem for problem in found if problem is not None]
    if "end" not in parts and not any(problem.kind == "cut off" for problem in known):
        known.append(Problem(part="answer", kind="cut off", note="its end is missing"))
    return known


def _unified(gpus: Gpus | None) -> bool:
    return gpus is not None and any(gpu.unified for gpu in gpus.gpus)


def _shm(disks: tuple[Disk, ...]) -> int | None:
    return next((disk.total_mib for disk in disks if "shm" in disk.paths), None)


def _with_gpu_memory(docker: Docker | None, gpus: Gpus | None) -> Docker | None:
    """Say of each container what its processes hold of GPUs."""
    if docker is None or gpus is None:
        return docker
    used: dict[str, int] = {}
    for holder in (holder for gpu in gpus.gpus for holder in gpu.holders):
        if holder.container and holder.mib:
            used[holder.container] = used.get(holder.container, 0) + holder.mib

    def told(service: Service) -> Service:
        return service.model_copy(update={"gpu_mib": used.get(service.name)})

    return docker.model_copy(update={"services": tuple(map(told, docker.services))})
