"""What is asked about the server's container, and how the answers are judged."""

from __future__ import annotations

from typing import Any

from agent import judge, judge_image
from agent.check import call_for, chat_call
from agent.effects import UNSURE
from agent.fold import View
from agent.judge import Verdict
from agent.site import Site
from agent.values import CallStatus, ToolCall
from tools.containers import ContainerState, InspectContainer
from tools.service_watch import WatchService


def live_service(view: View, site: Site) -> str:
    """Return the server's container, unless another image or port is wanted since."""
    name = view.effects.service
    if not name:
        return ""
    record = view.effects.services[name]
    if record.status not in (CallStatus.OK, *UNSURE):
        return ""
    args = record.call.args
    return name if (args["image"], args["port"]) == (site.image, site.port) else ""


def name_call(view: View, site: Site) -> ToolCall | None:
    """Ask whether a container has the name that the goal wants."""
    if not site.goal.name:
        return None
    return call_for(site, InspectContainer().name, name=site.goal.name)


def judge_name(view: View, seen: ContainerState, site: Site) -> Verdict:
    """A container of that name may be there only where this run has made it."""
    header = view.header
    if not seen.present or (header and seen.labels.get("bringup.run") == header.run_id):
        return Verdict(True, f"{site.goal.name} is free")
    words = f"a container named {site.goal.name} is there already"
    return Verdict(False, words, f"{words} ({seen.state}, from {seen.image})")


def container_call(view: View, site: Site) -> ToolCall | None:
    """Ask what became of the container; of one that has ended, its log."""
    name = live_service(view, site)
    if not name:
        return None
    call = call_for(site, InspectContainer().name, name=name)
    known = view.facts.find(call.tool, call.target, call.args)
    seen = known.observation if known else None
    over = isinstance(seen, ContainerState) and seen.state in ("exited", "dead")
    return health_call(view, site) if over else call


def judge_container(view: View, seen: Any, site: Site) -> Verdict:
    """Judge by its state, or by its log once it has ended."""
    if isinstance(seen, ContainerState):
        return judge_image.container(seen, site)
    return judge.health(seen, site)


def health_call(view: View, site: Site) -> ToolCall | None:
    """Watch it until it answers or ends."""
    name = live_service(view, site)
    if not name:
        return None
    url = site.base_url + site.engine.health
    return call_for(site, WatchService().name, container=name, url=url, python=site.host_python)


def chat_of(view: View, site: Site) -> ToolCall | None:
    """Ask it one real question."""
    return chat_call(site) if live_service(view, site) else None
