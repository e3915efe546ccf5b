"""All tools, in the order in which a model should see them: look, judge, change, watch, rest."""

from __future__ import annotations

import difflib
from typing import Any

from tools.autoconfig import ConfigProbe
from tools.base import Tool
from tools.endpoint import ChatCheck, HttpCheck
from tools.errors import UnknownTool
from tools.files import ReadFile
from tools.host import HostFacts
from tools.imports import ImportProbe
from tools.installation import InstallPip, PipInstall, PipResolve
from tools.jobs import JobLogs, JobStatus, StartJob, StopJob
from tools.network import PortOwner
from tools.packages import PipCheck, PipList, PipShow, PythonEnvironment
from tools.search import Grep
from tools.server import ServerOptions, StartServer, WatchServer
from tools.shell import Shell

TOOLS: tuple[Tool[Any, Any], ...] = (
    HostFacts(),
    PortOwner(),
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
    HttpCheck(),
    ChatCheck(),
    StartJob(),
    JobStatus(),
    JobLogs(),
    StopJob(),
    ReadFile(),
    Grep(),
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
