"""All tools, in the order in which a model should see them: look, judge, change, watch, rest."""

from __future__ import annotations

import difflib
from typing import Any

from tools.autoconfig import ConfigProbe
from tools.base import Tool
from tools.connection import Connect, TrustHostKey
from tools.container_changes import (
    ExecInContainer,
    RemoveContainer,
    StartContainer,
    StopContainer,
)
from tools.container_use import ContainerLogs, ContainerUse
from tools.containers import InspectContainer, ListContainers
from tools.docker_engine import DockerInfo
from tools.edits import ReplaceInFile, SetAside
from tools.endpoint import ChatCheck, HttpCheck
from tools.engine_probe import EngineProbe
from tools.errors import UnknownTool
from tools.files import ReadFile
from tools.folders import ListFolder
from tools.host import HostFacts
from tools.host_changes import AddToGroup, MakeEnvironment, OperatorStep, SetLimits, TakeBack
from tools.host_readiness import HostReadiness
from tools.image_build import BuildImage
from tools.image_manifest import ImageManifest
from tools.image_probe import ImageProbe
from tools.image_pull import PullImage
from tools.images import InspectImage, ListImages, RemoveImage
from tools.imports import ImportProbe
from tools.installation import InstallPip, PipInstall, PipResolve
from tools.job_start import StartJob
from tools.job_watch import WatchJob
from tools.jobs import JobLogs, JobStatus, StopJob
from tools.machine_tool import WholeMachine
from tools.memory import MemoryFree
from tools.network import PortOwner
from tools.nvidia_runtime import ConfigureDockerRuntime
from tools.os_packages import InstallPackages, PlanPackages
from tools.packages import PipCheck, PipList, PipShow, PythonEnvironment
from tools.search import Grep
from tools.server import StartServer, WatchServer
from tools.server_options import ServerOptions
from tools.service import StartService
from tools.service_watch import WatchService
from tools.shell import Shell
from tools.transfer import CopyFiles
from tools.weights import WeightsState
from tools.weights_fetch import FetchConfig, FetchWeights

TOOLS: tuple[Tool[Any, Any], ...] = (
    Connect(),
    HostFacts(),
    MemoryFree(),
    PortOwner(),
    DockerInfo(),
    ListContainers(),
    InspectContainer(),
    ContainerUse(),
    ContainerLogs(),
    ListImages(),
    InspectImage(),
    ImageManifest(),
    ImageProbe(),
    EngineProbe(),
    WeightsState(),
    PythonEnvironment(),
    ConfigProbe(),
    ImportProbe(),
    PipList(),
    PipShow(),
    PipCheck(),
    PipResolve(),
    InstallPip(),
    PipInstall(),
    ServerOptions(),
    StartServer(),
    WatchServer(),
    TrustHostKey(),
    PullImage(),
    BuildImage(),
    FetchConfig(),
    FetchWeights(),
    StopContainer(),
    StartContainer(),
    StartService(),
    WatchService(),
    ExecInContainer(),
    RemoveContainer(),
    RemoveImage(),
    HttpCheck(),
    ChatCheck(),
    StartJob(),
    JobStatus(),
    WatchJob(),
    JobLogs(),
    StopJob(),
    ListFolder(),
    ReadFile(),
    Grep(),
    ReplaceInFile(),
    SetAside(),
    WholeMachine(),
    HostReadiness(),
    PlanPackages(),
    InstallPackages(),
    MakeEnvironment(),
    AddToGroup(),
    SetLimits(),
    ConfigureDockerRuntime(),
    OperatorStep(),
    TakeBack(),
    CopyFiles(),
    Shell(),
)
"""One of each; there is no discovery and no registration elsewhere."""

_BY_NAME = {tool.name: tool for tool in TOOLS}


def find(name: str) -> Tool[Any, Any]:
    """Return the tool of that name.

    Raises:
        UnknownTool: there is none; the message names the nearest ones.
    """
    tool = _BY_NAME.get(name)
    if tool is None:
        near = difflib.get_close_matches(name, _BY_NAME, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(_BY_NAME)}"
        raise UnknownTool(f"there is no tool {name!r}; {hint}")
    return tool
