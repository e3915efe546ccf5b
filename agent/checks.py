"""The checks: executable conditions of a goal, and of the steps towards it.

A check names the READ call that decides it and judges what that call observed. The same checks
serve three readers: the playbook plans with them, a fix is judged by them, and ``verify.py`` says
*ready* by them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent import judge
from agent.fold import View
from agent.judge import Verdict
from agent.launch import help_call
from agent.site import Site, site_of
from agent.values import ToolCall
from tools import registry
from tools.autoconfig import ConfigProbe
from tools.base import Subject
from tools.endpoint import ChatCheck
from tools.imports import ImportProbe
from tools.jobs import JobStatus
from tools.network import PortOwner
from tools.packages import PythonEnvironment
from tools.server import WatchServer

PROMPT = "Say hello in one sentence."
SPARE_PORTS = 20
"""How many of the allowed ports a port probe tries."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a check stands now: its verdict, and the event that shows it."""

    verdict: Verdict
    evidence: tuple[str, ...] = ()


NOT_STARTED = Verdict(False, "no server of this run is up")


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


def standing(view: View, check: Check) -> Standing:
    """Say how a check stands by what is known and fresh; ``passed`` is ``None`` for not known."""
    site = site_of(view)
    call = check.probe(view, site)
    if call is None:
        return Standing(check.idle)
    known = view.facts.find(call.tool, call.target, call.args)
    if known is not None:
        return Standing(check.judge(known.observation, site), (known.event,))
    failed = view.failed_looks.of(call)
    if failed:
        words = f"it cannot be told: {failed[-1].message}"
        return Standing(Verdict(None, words), (f"e{failed[-1].ended}",))
    return Standing(Verdict(None, f"not known yet whether {check.says}"))


def spare_ports(site: Site) -> tuple[int, ...]:
    """Return the other ports that the goal allows, else the next ones, to be asked for."""
    ports: list[int] = []
    for text in site.goal.allow.ports:
        low, _, high = text.partition("-")
        ports.extend(range(int(low), int(high or low) + 1))
    others = [port for port in ports if port != site.port]
    nearby = range(site.port + 1, min(site.port + SPARE_PORTS, 65536))
    return tuple(others or nearby)[:SPARE_PORTS]


def call_for(site: Site, tool: str, **args: Any) -> ToolCall:
    """Build a READ call on the site's target, its arguments in their full, validated form."""
    full = registry.find(tool).args_type.model_validate(args)
    return ToolCall(tool=tool, args=full.model_dump(mode="json"), target=site.target)


def _environment(view: View, site: Site) -> ToolCall:
    pins = tuple(sorted({site.package, *site.candidate.keep} - {""}))
    return call_for(site, PythonEnvironment().name, python=site.python, pins_of=pins)


def _config(view: View, site: Site) -> ToolCall:
    return call_for(
        site,
        ConfigProbe().name,
        python=site.python,
        model=site.goal.model,
        registry=site.engine.registry,
    )


def _imports(view: View, site: Site) -> ToolCall | None:
    if not site.engine.modules:
        return None
    return call_for(site, ImportProbe().name, python=site.python, modules=site.engine.modules)


def _port(view: View, site: Site) -> ToolCall:
    return call_for(
        site,
        PortOwner().name,
        python=site.host_python,
        host=site.goal.host,
        port=site.port,
        spare=spare_ports(site),
    )


def _job(view: View, site: Site) -> ToolCall | None:
    job = live_job(view, site)
    return None if job is None else call_for(site, JobStatus().name, job=job)


def _health(view: View, site: Site) -> ToolCall | None:
    job = live_job(view, site)
    if job is None:
        return None
    url = site.base_url + site.engine.health
    return call_for(site, WatchServer().name, job=job, url=url, python=site.host_python)


def _chat(view: View, site: Site) -> ToolCall | None:
    if live_job(view, site) is None:
        return None
    return call_for(
        site,
        ChatCheck().name,
        python=site.host_python,
        base_url=site.base_url,
        model=site.goal.model,
        prompt=PROMPT,
    )


def live_job(view: View, site: Site) -> str | None:
    """Return the server's job, unless what it was started from has changed since."""
    job = view.server_job
    if job is None:
        return None
    record = view.servers[job]
    changed = view.facts.last_change(site.target, site.environment)
    moved = record.call.args.get("port") not in (None, site.port)
    return None if changed > record.ended or moved else job


def _of_environment(site: Site) -> Subject:
    return site.environment


def _of_model(site: Site) -> Subject:
    return Subject(kind="model", key=site.goal.model)


def _of_port(site: Site) -> Subject:
    return Subject(kind="port", key=str(site.port))


USABLE = ("environment_usable",)
CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        Check(
            "environment_usable",
            "the environment's Python runs",
            _environment,
            judge.environment,
            _of_environment,
        ),
        Check(
            "environment_writable",
            "the environment can be written",
            _environment,
            judge.writable,
            _of_environment,
            USABLE,
        ),
        Check("pip_works", "pip runs there", _environment, judge.pip, _of_environment, USABLE),
        Check(
            "model_readable",
            "the model's config.json can be read",
            _config,
            judge.model,
            _of_model,
            USABLE,
        ),
        Check(
            "config_parses",
            "the environment knows the model's configuration",
            _config,
            judge.config,
            _of_environment,
            ("model_readable",),
        ),
        Check(
            "imports",
            "what the engine needs can be imported",
            _imports,
            judge.imports,
            _of_environment,
            USABLE,
            Verdict(True, "the engine names no modules"),
        ),
        Check(
            "options_known",
            "the server's own options are known",
            help_call,
            judge.options,
            _of_environment,
            ("imports",),
            Verdict(True, "given by the goal"),
        ),
        Check("port_free", "the port is free", _port, judge.port, _of_port),
        Check(
            "process_up",
            "the server's process runs",
            _job,
            judge.job,
            _of_port,
        ),
        Check(
            "health",
            "the server answers its health check",
            _health,
            judge.health,
            _of_port,
            ("process_up",),
        ),
        Check(
            "chat",
            "the server gives a well-formed answer",
            _chat,
            judge.chat,
            _of_port,
            ("health",),
        ),
    )
}
"""All checks by name."""
