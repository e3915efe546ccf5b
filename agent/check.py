"""What a check is, and the parts that checks of every kind of place share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent import judge, knowledge
from agent.fold import View
from agent.judge import Verdict
from agent.site import Site
from agent.values import ToolCall
from tools import registry
from tools.base import Subject
from tools.connection import Connect
from tools.endpoint import ChatCheck
from tools.network import PortOwner
from tools.weights import model_subject

PROMPT = "Say hello in one sentence."
SPARE_PORTS = 20
"""How many of the allowed ports a port probe tries."""
NOT_STARTED = Verdict(False, "no server of this run is up")
REACHED = ("connected",)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a check stands now: its verdict, and the event that shows it."""

    verdict: Verdict
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """One executable condition."""

    name: str
    says: str
    """What holds when it passes, for people."""
    probe: Callable[[View, Site], ToolCall | None]
    """The READ call that decides it; ``None`` while there is nothing to ask."""
    judge: Callable[[Any, Site], Verdict]
    subject: Callable[[Site], Subject]
    needs: tuple[str, ...] = ()
    idle: Verdict = NOT_STARTED
    """The verdict where there is nothing to ask."""
    of_candidate: bool = True
    """Whether another candidate may pass where this one fails; else it is a matter of the host."""
    refusal_decides: bool = False
    """Whether a probe that is refused an answer means that the check fails."""
    of_image: bool = False
    """Whether it asks what an image holds, which never changes and is not asked twice."""
    same_by: tuple[str, ...] = ()
    """Arguments that make another call of the probe's tool ask the same; empty: all of them."""
    more_of: str = ""
    """One of these, a list: where more was asked for and all is well, that holds here too."""
    judge_by: Callable[[View, Any, Site], Verdict] | None = None
    """Judges instead of ``judge`` where that takes more than the one observation."""

    def verdict(self, view: View, seen: Any, site: Site) -> Verdict:
        """Judge what the probe observed."""
        if self.judge_by is not None:
            return self.judge_by(view, seen, site)
        return self.judge(seen, site)


def call_for(site: Site, tool: str, **args: Any) -> ToolCall:
    """Build a READ call on the site's target, its arguments in their full, validated form."""
    full = registry.find(tool).args_type.model_validate(args)
    return ToolCall(tool=tool, args=full.model_dump(mode="json"), target=site.target)


def spare_ports(site: Site) -> tuple[int, ...]:
    """Return the other ports that the goal allows, else the next ones, to be asked for."""
    ports: list[int] = []
    for text in site.goal.allow.ports:
        low, _, high = text.partition("-")
        ports.extend(range(int(low), int(high or low) + 1))
    others = [port for port in ports if port != site.port]
    nearby = range(site.port + 1, min(site.port + SPARE_PORTS, 65536))
    return tuple(others or nearby)[:SPARE_PORTS]


def pins_of(site: Site) -> tuple[str, ...]:
    """Return packages of which it matters what others ask of them: fixes move or keep these."""
    known = {release.package for release in knowledge.load().releases}
    return tuple(sorted({site.package, *site.candidate.keep, *known} - {""}))


def port_call(view: View, site: Site) -> ToolCall:
    """Ask who holds the port."""
    return call_for(
        site,
        PortOwner().name,
        python=site.host_python,
        host=site.goal.host,
        port=site.port,
        spare=spare_ports(site),
    )


def chat_call(site: Site) -> ToolCall:
    """Ask the server one real question."""
    return call_for(
        site,
        ChatCheck().name,
        python=site.host_python,
        base_url=site.base_url,
        model=site.served_model,
        prompt=PROMPT,
    )


def _connect(view: View, site: Site) -> ToolCall | None:
    return call_for(site, Connect().name) if site.remote else None


def of_environment(site: Site) -> Subject:
    """The environment or image."""
    return site.environment


def of_model(site: Site) -> Subject:
    """The model, by its place on the host."""
    return (
        model_subject(site.host_model)
        if site.is_image
        else Subject(kind="model", key=site.host_model)
    )


def of_port(site: Site) -> Subject:
    """The port."""
    return Subject(kind="port", key=str(site.port))


def of_host(site: Site) -> Subject:
    """The host."""
    return Subject(kind="host", key="host")


CONNECTED = Check(
    "connected",
    "the host is reached and its key is known",
    _connect,
    judge.connection,
    of_host,
    idle=Verdict(True, "this machine"),
    of_candidate=False,
)
PORT_FREE = Check(
    "port_free",
    "the port is free",
    port_call,
    judge.port,
    of_port,
    REACHED,
    of_candidate=False,
    same_by=("host", "port"),
)
