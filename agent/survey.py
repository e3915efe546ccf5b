"""The first look at the target: what any brain should know before it decides anything."""

from __future__ import annotations

from agent.checks import CHECKS, call_for
from agent.dispatch import look
from agent.fold import View
from agent.run import Run
from agent.site import site_of
from agent.values import ToolCall
from tools.host import HostFacts

FIRST_LOOKS = ("environment_usable", "port_free")
"""Checks whose READ call is part of the survey."""


def open_looks(view: View) -> list[ToolCall]:
    """Return the survey's calls that have no result yet, in order."""
    if view.turn > 0:
        return []
    site = site_of(view)
    calls = [
        call_for(site, HostFacts().name, python=site.host_python, paths=(site.candidate.venv,))
    ]
    calls += [call for name in FIRST_LOOKS if (call := CHECKS[name].probe(view, site)) is not None]
    named = [call.model_copy(update={"id": f"s{n}"}) for n, call in enumerate(calls, start=1)]
    done = {key for key, record in view.calls.items() if record.ended >= 0}
    return [call for call in named if call.id not in done]


def survey(run: Run) -> None:
    """Make all looks of the survey that have no result yet."""
    for call in open_looks(run.view):
        look(run, call, "survey")
