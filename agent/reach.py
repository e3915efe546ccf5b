"""Looks that go beyond what a goal is about: a person is asked before them, as before a change.

A look changes nothing where it stays with the goal's server, environments and images. Elsewhere it
can: to get a URL carries data out and may be an act there, a "python" is whatever lies at that
path, pip builds source packages to read their metadata, a probe in a container of others runs
there. What the playbook itself would look at here is never asked about.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from agent import knowledge
from agent.fold import View
from agent.foreseen import foreseen_look
from agent.site import Site, site_of
from agent.values import ToolCall
from tools.packages import EnvironmentState, PythonEnvironment

DERIVED = re.compile(r"bringup\.[0-9a-f]{16}")
"""Names of images that runs of bringup have made, which no registry serves."""
SYSTEM_BINS = ("/bin", "/usr/bin", "/usr/local/bin")
_PYTHON = re.compile(r"(python|pypy)[0-9.]*")
_ODD_IN_URL = re.compile(r"[\\@\s\x00-\x1f\x7f-\x9f]")


def beyond(view: View, call: ToolCall) -> str:
    """Say why a look needs a person's word; empty where it stays with what the goal is about."""
    rule = _RULES.get(call.tool)
    site = site_of(view)
    reasons = [_container(view, site, call)]
    if not reasons[0]:
        reasons += [_program(site, call), rule(view, site, call) if rule else ""]
    reason = next(filter(None, reasons), "")
    return "" if not reason or foreseen_look(view, call) else reason


def _container(view: View, site: Site, call: ToolCall) -> str:
    """A probe inside a container runs there; the run's own containers are the goal's place."""
    name = call.target.partition("/")[2]
    if not name or name in view.effects.services:
        return ""
    return f"it runs a program in the container {name}, which is not of this run"


def _program(site: Site, call: ToolCall) -> str:
    """The interpreter of a probe is a program like any other; in an own container it is its own."""
    python = call.args.get("python")
    if not isinstance(python, str) or not python or "/" in call.target:
        return ""
    if call.tool == "image_probe" or python == site.host_python:
        return ""
    path = PurePosixPath(python)
    known = "/" not in python or str(path.parent) in SYSTEM_BINS or _of_goal(site, path)
    if known and _PYTHON.fullmatch(path.name):
        return ""
    return f"it runs {python}, which is no Python of the goal or of the system"


def _of_goal(site: Site, program: PurePosixPath) -> bool:
    """Whether a program lies in a ``bin`` of the goal's environments, or where changes are allowed.

    Links are not followed.
    """
    goal = site.goal
    folders = [item.venv for item in goal.candidates if item.venv]
    inside = any(PurePosixPath(path) in program.parents for path in goal.allow.paths)
    plain = program.is_absolute() and ".." not in program.parts and program.parent.name == "bin"
    return plain and (inside or str(program.parent.parent) in folders)


def _options(view: View, site: Site, call: ToolCall) -> str:
    program = str(call.args["argv"][0])
    if "/" in call.target or _of_goal(site, PurePosixPath(program)):
        return ""
    return f"it runs {program}, which is no program of the goal's environments"


def _url(view: View, site: Site, call: ToolCall) -> str:
    """The goal's own server may be asked, and the goal's hub be looked at."""
    url = str(call.args.get("url") or call.args.get("base_url"))
    parts = urlsplit(url)
    host, goal = parts.hostname or "", site.goal
    port = parts.port or (443 if parts.scheme == "https" else 80)
    own = _is_here(site, host) and _is_port(site, port)
    hub = call.tool == "http_check" and host == urlsplit(goal.hub).hostname
    if (own or hub) and not _ODD_IN_URL.search(url):
        return ""
    return f"it sends a request to {parts.netloc or url}, which is not the goal's server"


def _is_here(site: Site, host: str) -> bool:
    """Whether a name or address means the target itself, or is the goal's own."""
    named = {item.address.rpartition("@")[2].partition(":")[0] for item in site.goal.hosts}
    if host in {"localhost", site.goal.host, *named} - {""}:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _is_port(site: Site, port: int) -> bool:
    ranges = [text.partition("-") for text in site.goal.allow.ports]
    allowed = any(int(low) <= port <= int(high or low) for low, _, high in ranges)
    return allowed or port in (site.port, site.goal.port)


def _listens(view: View, site: Site, call: ToolCall) -> str:
    host = str(call.args["host"])
    if _is_here(site, host):
        return ""
    return f"it looks the name {host} up, which is no address of the goal's"


def _image(view: View, site: Site, call: ToolCall) -> str:
    image = str(call.args["image"])
    known = {item.image for item in site.goal.candidates} | {site.image, *view.effects.built}
    if image not in known - {""} and not DERIVED.fullmatch(image):
        return f"the goal does not name the image {image}"
    config = str(call.args.get("config") or site.config_path)
    if config not in (site.config_path, site.model_folder, site.host_model):
        return f"it shows {config} to the image, which is not the goal's model"
    return ""


def _derived(view: View, site: Site, call: ToolCall) -> str:
    return "it is not what the playbook would do here"


def _packages(view: View, site: Site, call: ToolCall) -> str:
    """Pip runs the build of a source package; those that are at home here run anyway."""
    indexes = [text for text in call.args["extra_index"] if text != _torch_index(view)]
    if indexes:
        return f"it asks the package index {indexes[0]}"
    known = _known_packages(view, site)
    for text in (*call.args["requirements"], *call.args["constraints"]):
        name = _plain_name(str(text))
        if name not in known:
            return f"pip may run code of {text}, which neither the goal nor a playbook names"
    return ""


def _torch_index(view: View) -> str:
    policy: dict[str, Any] = view.header.policy if view.header else {}
    return str(policy.get("torch_index", ""))


def _plain_name(text: str) -> str:
    """Return the package that a requirement names; empty for a URL, a path and what is none."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return ""
    return "" if requirement.url else canonicalize_name(requirement.name)


def _known_packages(view: View, site: Site) -> set[str]:
    """Return what playbooks and the goal name, and what the candidate's environment holds."""
    books = knowledge.load()
    named = [item.distribution for item in books.distributions]
    named += [item.package for item in books.releases]
    named += [_plain_name(item.requirement) for item in books.engines.values()]
    for item in site.goal.candidates:
        named += [*map(_plain_name, item.requirements), *item.keep]
    for row in view.facts.known(PythonEnvironment):
        here = (row.target, row.args.get("python")) == (site.target, site.python)
        if here and isinstance(row.observation, EnvironmentState):
            named += row.observation.versions
    return {canonicalize_name(name) for name in named if name}


_RULES: dict[str, Callable[[View, Site, ToolCall], str]] = {
    "server_options": _options,
    "http_check": _url,
    "chat_check": _url,
    "watch_server": _url,
    "watch_service": _url,
    "port_owner": _listens,
    "image_probe": _image,
    "image_manifest": _image,
    "pip_resolve": _packages,
    "use_image": _derived,
}
"""What is looked at of single tools, besides the place and the program."""
