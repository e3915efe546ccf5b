"""A look at many hosts at once: their facts, what is wrong with them, and what they reach."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.doctor.across import across
from agent.doctor.ask import Answer, Fleet
from agent.doctor.between import MOST_HOSTS, Between, Link, doors_of, links_of, plan
from agent.doctor.between_findings import findings_between
from agent.doctor.finding import LEVELS, Finding
from agent.doctor.findings import findings
from agent.doctor.listed import findings_listed
from agent.doctor.parallel import Standing
from agent.inventory_parts import Member
from agent.name_ranges import fold
from tools.connectors.ssh_config import parse_address

OK, FOUND, UNREACHABLE = 0, 1, 5
"""Exit codes: nothing is wrong, something is, a host does not answer."""
NO_FACTS = "A host needs `sh` and coreutils; look at what it said."

Tell = Callable[[str, Standing[Any]], None]
"""Is told what is being done, and how far it has come."""
PortOf = Callable[[Member], int]


@dataclass(frozen=True, slots=True)
class Checkup:
    """What was found."""

    answers: Sequence[Answer]
    found: Mapping[str, Sequence[Finding]]
    """About one host each, by its name; worst first."""
    shared: Sequence[Finding] = ()
    """About several."""
    between: Between = field(default_factory=Between)

    @property
    def findings(self) -> list[tuple[tuple[str, ...], Finding]]:
        """All findings, worst first, each with its hosts; what several have alike comes once."""
        alike: dict[Finding, list[str]] = {}
        for answer in self.answers:
            for finding in self.found[answer.member.name]:
                alike.setdefault(finding, []).append(answer.member.name)
        rows = [(tuple(names), finding) for finding, names in alike.items()]
        rows += [(finding.hosts, finding) for finding in self.shared]
        return sorted(rows, key=lambda row: LEVELS.index(row[1].level))

    @property
    def exit_code(self) -> int:
        """What a script should know."""
        if not all(answer.reached for answer in self.answers):
            return UNREACHABLE
        worst = any(finding.level == "error" for _, finding in self.findings)
        return FOUND if worst else OK


def check_up(
    fleet: Fleet,
    *,
    port_of: PortOf,
    known: Sequence[str] = (),
    ways: bool = True,
    tell: Tell = lambda what, standing: None,
) -> Checkup:
    """Ask all hosts, let them try to reach each other, and judge what came.

    Args:
        fleet: the hosts; their connections stay open.
        port_of: returns the port at which a host's ssh server listens.
        known: names of the inventory, for whoever mistyped one.
        ways: whether the hosts try to reach each other.
        tell: is told how far it has come.
    """
    answers = fleet.facts(lambda standing: tell("asking", standing))
    between = _between(fleet, answers, port_of, tell) if ways else Between()
    together = len(answers) > 1
    found = {it.member.name: _findings(it, known, together=together) for it in answers}
    facts = {it.member.name: it.facts for it in answers if it.facts is not None}
    shared = [*across(facts), *findings_between(between)]
    return Checkup(answers, found, shared, between)


def _between(fleet: Fleet, answers: Sequence[Answer], port_of: PortOf, tell: Tell) -> Between:
    """Let the hosts that answered try the addresses of the others."""
    facts = {it.member.name: it.facts for it in answers if it.facts is not None}
    if not 2 <= len(facts) <= MOST_HOSTS:
        return Between()
    members = {it.member.name: it.member for it in answers}
    doors = {
        name: doors_of(name, its, port_of(members[name]))
        for name, its in facts.items()
        if members[name].host.is_remote and not members[name].host.container
    }
    tries = plan(doors, facts)
    came = fleet.ways(
        {name: [door.place for door in its] for name, its in tries.items()},
        lambda standing: tell("trying the ways between", standing),
    )
    links: list[Link] = []
    not_tried = []
    for name, given in came.items():
        if isinstance(given, str):
            not_tried.append((name, given))
        else:
            links += links_of(name, facts[name], tries[name], given)
    return Between(tuple(links), tuple(not_tried))


def _findings(answer: Answer, known: Sequence[str], *, together: bool) -> list[Finding]:
    if answer.facts is not None:
        linked = together or bool(answer.member.nic)
        found = findings(answer.facts, linked=linked)
        found += findings_listed(answer.member, answer.facts)
        return sorted(found, key=lambda finding: LEVELS.index(finding.level))
    if answer.reached:
        return [
            Finding(
                code="no_facts", level="error", text=f"No facts: {answer.trouble}.", do=NO_FACTS
            )
        ]
    return [_unreachable(answer, known)]


def _unreachable(answer: Answer, known: Sequence[str]) -> Finding:
    member = answer.member
    near = [] if member.listed else difflib.get_close_matches(member.name, known, n=1, cutoff=0.5)
    do = f"See what `{_ssh(member)} true` says."
    if near:
        do = f"Did you mean `{near[0]}`, which is in the inventory? Else: {do[0].lower()}{do[1:]}"
    why, is_key, advice = answer.trouble.partition(". Compare it")
    if is_key:
        do = f"Compare it{advice.removesuffix('then trust it')}then `{_ssh(member)} true` once"
        do += ", and say yes to it there."
    return Finding(code="unreachable", level="error", text=f"Not reached: {why}.", do=do)


def _ssh(member: Member) -> str:
    """Return the command by which a person logs in there."""
    address = parse_address(member.address)
    port = f"-p {address.port} " if address.port else ""
    return f"ssh {port}{f'{address.user}@' if address.user else ''}{address.host}"


def title(hosts: Sequence[str], finding: Finding) -> str:
    """Return what a finding is about, for people: hosts, and the part that its text leaves out."""
    names = "" if finding.hosts else fold(hosts)
    subject = "" if finding.subject in finding.text else finding.subject
    return f"{names}: {subject}" if names and subject else names or subject
