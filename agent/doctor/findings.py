"""Judges machines by their facts: one alone, two for a migration, several that work together."""

from __future__ import annotations

from agent.doctor.across import across
from agent.doctor.compare import compare
from agent.doctor.finding import LEVELS, Difference, Finding, book, told
from agent.doctor.gpu_rules import gpu_hits
from agent.doctor.host_rules import host_hits
from agent.doctor.network_rules import network_hits
from tools.machine import MachineFacts

__all__ = ["LEVELS", "Difference", "Finding", "across", "compare", "findings"]


def findings(facts: MachineFacts, *, linked: bool = False) -> list[Finding]:
    """Return what is wrong with a machine, worst first, and what to do about it.

    Args:
        facts: of the machine.
        linked: whether its fast network is meant to be used, so that a cable is missed.
    """
    hits = [*gpu_hits(facts), *host_hits(facts), *network_hits(facts, linked=linked)]
    return told(hits, book().findings)
