"""The checks of a candidate that is a virtual environment."""

from __future__ import annotations

from agent import judge
from agent.check import (
    CONNECTED,
    PORT_FREE,
    REACHED,
    Check,
    call_for,
    chat_call,
    of_environment,
    of_model,
    of_port,
    pins_of,
)
from agent.fold import View
from agent.judge import Verdict
from agent.launch import help_call
from agent.site import Site
from agent.values import ToolCall
from tools.autoconfig import ConfigProbe
from tools.imports import ImportProbe
from tools.jobs import JobStatus
from tools.packages import PythonEnvironment
from tools.server import WatchServer


def _environment(view: View, site: Site) -> ToolCall:
    return call_for(site, PythonEnvironment().name, python=site.python, pins_of=pins_of(site))


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
    return None if live_job(view, site) is None else chat_call(site)


def live_job(view: View, site: Site) -> str | None:
    """Return the server's job, unless what it was started from has changed since."""
    job = view.server_job
    if job is None:
        return None
    record = view.servers[job]
    changed = view.facts.last_change(site.target, site.environment)
    moved = record.call.args.get("port") not in (None, site.port)
    return None if changed > record.ended or moved else job


USABLE = ("environment_usable",)
VENV_CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        CONNECTED,
        Check(
            "environment_usable",
            "the environment's Python runs",
            _environment,
            judge.environment,
            of_environment,
            REACHED,
            same_by=("python",),
        ),
        Check(
            "environment_writable",
            "the environment can be written",
            _environment,
            judge.writable,
            of_environment,
            USABLE,
            same_by=("python",),
        ),
        Check(
            "pip_works",
            "pip runs there",
            _environment,
            judge.pip,
            of_environment,
            USABLE,
            same_by=("python",),
        ),
        Check(
            "model_readable",
            "the model's config.json can be read",
            _config,
            judge.model,
            of_model,
            USABLE,
        ),
        Check(
            "config_parses",
            "the environment knows the model's configuration",
            _config,
            judge.config,
            of_environment,
            ("model_readable",),
        ),
        Check(
            "imports",
            "what the engine needs can be imported",
            _imports,
            judge.imports,
            of_environment,
            USABLE,
            Verdict(True, "the engine names no modules"),
            same_by=("python", "modules"),
            more_of="modules",
        ),
        Check(
            "options_known",
            "the server's own options are known",
            help_call,
            judge.options,
            of_environment,
            ("imports",),
            Verdict(True, "given by the goal"),
        ),
        PORT_FREE,
        Check(
            "process_up",
            "the server's process runs",
            _job,
            judge.job,
            of_port,
        ),
        Check(
            "health",
            "the server answers its health check",
            _health,
            judge.health,
            of_port,
            ("process_up",),
            same_by=("url", "job"),
        ),
        Check(
            "chat",
            "the server gives a well-formed answer",
            _chat,
            judge.chat,
            of_port,
            ("health",),
            same_by=("base_url", "model"),
        ),
    )
}
"""By name."""
