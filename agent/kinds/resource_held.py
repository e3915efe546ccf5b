"""resource-held: a port, a disk or a folder that the goal needs is not to be had."""

from __future__ import annotations

from agent.check import port_call
from agent.control import UsePort
from agent.kinds import holder
from agent.kinds.base import Case, FixPlan, Hypothesis
from agent.launch import stop_call
from agent.values import ToolCall
from tools.base import Subject
from tools.network import PortOwner


def explain(case: Case) -> Hypothesis:
    """A held port has another port as its fix; what belongs to others is never ended by us."""
    if case.params.get("resource") not in ("port", "memory"):
        return case.hypothesis()
    if case.params["resource"] == "memory":
        return holder.explain(case) or case.hypothesis()
    subject = Subject(kind="port", key=str(case.site.port))
    seen, known = case.view.facts.latest(PortOwner)
    if seen is None or known is None:
        probe = port_call(case.view, case.site)
        return case.hypothesis(subject=subject, probe=probe, advice=_advice(case))
    for job, record in case.view.may_run.items():
        if seen.owner_pid is not None and record.observation.get("pid") == seen.owner_pid:
            text = "stop the server that this run started there before"
            call = stop_call(job, record.call, text)
            return case.hypothesis(subject=subject, fix=FixPlan((call,), text))
    found = holder.explain(case)
    if found is not None and (found.probe or found.fix):
        return found
    spare = seen.next_free
    if spare is None:
        return found or case.hypothesis(subject=subject, advice=_advice(case))
    text = f"use port {spare} instead"
    call = ToolCall(
        tool=UsePort().name,
        args={"port": spare},
        target=case.site.target,
        why=f"{case.hypothesis().cause}; {text}",
    )
    return case.hypothesis(subject=subject, fix=FixPlan((call,), text), advice=_advice(case))


def _advice(case: Case) -> str:
    return (
        f"End what holds port {case.site.port} yourself, or name another port in the goal "
        "(`port:`), or ports that may be used instead (`allow: {ports: [8001-8010]}`)."
    )
