"""The call that takes a goal one step further with a given tool: start, fetch, pull."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from agent.fold import View
from agent.host_checks import goal_of, limits_to_set, missing_packages, readiness_of
from agent.image_checks import answers_of
from agent.launch import server_argv
from agent.records import CallRecord
from agent.site import MOUNTED_MODEL, Site
from agent.values import ToolCall
from tools.docker_engine import DockerInfo
from tools.host_changes import AddToGroup, MakeEnvironment, SetLimits
from tools.image_pull import PullImage
from tools.images import ImageState, InspectImage
from tools.nvidia_runtime import ConfigureDockerRuntime
from tools.os_packages import InstallPackages, PlanPackages
from tools.server import StartServer
from tools.server_options import ServerOptions
from tools.service import StartService
from tools.weights_fetch import FetchConfig, FetchedConfig, FetchWeights

WRAPPERS = (".sh", "tini", "dumb-init", "init", "catatonit")
"""Ends of entrypoints that prepare and then run what follows: these are kept."""


def call_to(view: View, site: Site, tool: str) -> ToolCall:
    """Return the call of a tool that can make a check true, for where the run stands."""
    args, why = CALLS[tool](view, site)
    return ToolCall(tool=tool, args=args, target=site.target, why=why)


def _start_server(view: View, site: Site) -> tuple[dict[str, Any], str]:
    seen, _ = view.facts.latest(ServerOptions, fresh=False)
    args = {
        "argv": list(server_argv(site, seen)),
        "env": dict(site.engine.env),
        "cwd": None,
        "host": site.goal.host,
        "port": site.port,
        "name": site.candidate.engine,
    }
    return args, f"What it needs is there. Starting the server on port {site.port}."


def _start_service(view: View, site: Site) -> tuple[dict[str, Any], str]:
    answers = answers_of(view, site)
    argv = list(server_argv(site, answers.options if answers else None))
    entrypoint = _entrypoint(view, site, argv[0])
    gpus = _gpus(view, site)
    args = {
        "image": site.image,
        "argv": argv[1:] if entrypoint else argv,
        "entrypoint": entrypoint,
        "name": service_name(view, site),
        "host": site.goal.host,
        "port": site.port,
        "network": "host",
        "mounts": [{"source": site.model_folder, "target": MOUNTED_MODEL, "read_only": True}],
        "env": dict(site.engine.env),
        "gpus": gpus,
        "ipc": site.engine.ipc if gpus else "",
    }
    return args, f"What it needs is there. Starting the server on port {site.port}."


def service_name(view: View, site: Site) -> str:
    """Return the name of the next container that serves: the goal's, or one of the run's id."""
    header = view.header
    count = sum(1 for record in view.calls.values() if _began(record))
    base = site.goal.name or f"bringup-{header.run_id if header else 'run'}"
    return f"{base}-{count + 1}" if count else base


def _began(record: CallRecord) -> bool:
    return record.call.tool == StartService().name and record.started >= 0


def _entrypoint(view: View, site: Site, program: str) -> str:
    """Return the program where the image's own entrypoint would take it for an argument."""
    rows = [row for row in view.facts.known(InspectImage) if row.args.get("image") == site.image]
    seen = rows[-1].observation if rows else None
    words = seen.entrypoint if isinstance(seen, ImageState) else ()
    return program if words and not words[0].endswith(WRAPPERS) else ""


def _gpus(view: View, site: Site) -> str:
    wish = site.candidate.gpus
    if wish != "auto":
        return "" if wish == "none" else wish
    info, _ = view.facts.latest(DockerInfo, fresh=False)
    return "all" if info is not None and info.gpu_hint else ""


def _pull_image(view: View, site: Site) -> tuple[dict[str, Any], str]:
    return {"image": site.image}, f"{site.image} is not on the host; its registry has it."


def _fetch(site: Site) -> dict[str, Any]:
    goal = site.goal
    return {
        "image": site.image,
        "repo": goal.model,
        "revision": goal.revision,
        "folder": site.model_folder,
        "endpoint": goal.hub,
    }


def _fetch_config(view: View, site: Site) -> tuple[dict[str, Any], str]:
    words = f"Only the config.json of {site.goal.model}: it tells what an image has to know."
    return _fetch(site), words


def _fetch_weights(view: View, site: Site) -> tuple[dict[str, Any], str]:
    args = _fetch(site)
    seen = _fetched_config(view, args)
    size = ""
    if seen is not None:
        args["revision"] = seen.commit
        args["most_gb"] = math.ceil(seen.bytes / 1e8) / 10
        size = f" ({seen.weights_files} files, {_gigabytes(seen.weights_bytes)})"
    words = f"{site.image} reads the config. Fetching the weights of {site.goal.model}{size}."
    return args, words


def _fetched_config(view: View, args: dict[str, Any]) -> FetchedConfig | None:
    """Return what was told when this very model's config was fetched."""
    same = [
        row.observation
        for row in view.facts.known(FetchConfig)
        if all(row.args.get(key) == args[key] for key in ("repo", "folder", "revision"))
    ]
    return same[-1] if same and isinstance(same[-1], FetchedConfig) else None


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def _install_packages(view: View, site: Site) -> tuple[dict[str, Any], str]:
    packages = missing_packages(view, site)
    plan, _ = view.facts.latest(PlanPackages, fresh=False)
    says = f" {plan.headline()}." if plan else ""
    return {"packages": list(packages)}, f"{', '.join(packages)} are missing.{says}"


def _make_environment(view: View, site: Site) -> tuple[dict[str, Any], str]:
    folder = goal_of(site).environment
    return {"environment": folder}, f"{folder} does not exist yet."


def _add_to_group(view: View, site: Site) -> tuple[dict[str, Any], str]:
    words = "The user may not use Docker; members of its group may, and can become root by it."
    return {"group": "docker"}, words


def _set_limits(view: View, site: Site) -> tuple[dict[str, Any], str]:
    words = "Fast networks and model loading lock memory and open many files."
    return limits_to_set(view, site), words


def _docker_runtime(view: View, site: Site) -> tuple[dict[str, Any], str]:
    seen = readiness_of(view)
    running = list(seen.docker_running) if seen else []
    fate = "go on running (live-restore)" if seen and seen.live_restore else "stop"
    words = f"Docker does not know NVIDIA's runtime. By its restart, containers {fate}: "
    return {"running": running}, f"{words}{', '.join(running) or 'none runs'}."


CALLS: dict[str, Callable[[View, Site], tuple[dict[str, Any], str]]] = {
    StartServer().name: _start_server,
    StartService().name: _start_service,
    PullImage().name: _pull_image,
    FetchConfig().name: _fetch_config,
    FetchWeights().name: _fetch_weights,
    InstallPackages().name: _install_packages,
    MakeEnvironment().name: _make_environment,
    AddToGroup().name: _add_to_group,
    SetLimits().name: _set_limits,
    ConfigureDockerRuntime().name: _docker_runtime,
}
"""Tools that take a goal further, with what builds their arguments and says why."""
STARTERS = (StartServer().name, StartService().name)
"""Tools that start a server."""
