"""The first look at the target: what any brain should know before it decides anything."""

from __future__ import annotations

from agent.check import call_for
from agent.checks import checks_of, standing
from agent.dispatch import look
from agent.fold import View
from agent.run import Run
from agent.site import Site, site_of
from agent.values import ToolCall
from tools.host import HostFacts

FIRST_LOOKS = {
    "venv": ("environment_usable", "port_free"),
    "image": ("docker_answers", "memory_free", "port_free"),
    "host": ("host_looked_at",),
}
"""Checks whose READ call is part of the survey, by the kind of place."""


def open_looks(view: View) -> list[ToolCall]:
    """Return the survey's calls that have no result yet, in order.

    A host behind ssh is reached first; if nobody has said yet that its key is right, the survey
    ends there and the checks ask later for what they need.
    """
    if view.turn > 0:
        return []
    site = site_of(view)
    named = [
        call.model_copy(update={"id": f"s{n}"})
        for n, call in enumerate(_looks(view, site), start=1)
    ]
    done = {key for key, record in view.calls.items() if record.ended >= 0}
    return [call for call in named if call.id not in done]


def _looks(view: View, site: Site) -> list[ToolCall]:
    checks = checks_of(site)
    first = checks["connected"]
    reach = first.probe(view, site)
    calls = [reach] if reach else []
    if reach is not None and not standing(view, first).verdict.passed:
        return calls
    if site.kind != "host":  # which may have no Python yet
        calls.append(_host_facts(site))
    probes = [checks[name].probe(view, site) for name in FIRST_LOOKS[site.kind]]
    return calls + [call for call in probes if call is not None]


def _host_facts(site: Site) -> ToolCall:
    paths = (site.model_folder,) if site.is_image else (site.candidate.venv,)
    return call_for(site, HostFacts().name, python=site.host_python, paths=paths)


def survey(run: Run) -> None:
    """Make all looks of the survey that have no result yet; what one finds may bring more."""
    while calls := open_looks(run.view):
        for call in calls:
            look(run, call, "survey")
