"""resource-held: a port, a disk or a folder that the goal needs is not to be had."""

from __future__ import annotations

from agent.calls import full
from agent.check import port_call
from agent.control import UsePort
from agent.kinds import holder
from agent.kinds.base import Case, FixPlan, Hypothesis
from agent.launch import stop_call
from agent.service_looks import live_service
from agent.values import ToolCall
from tools.base import Subject
from tools.network import PortState


def explain(case: Case) -> Hypothesis:
    """A held port has another port as its fix; what belongs to others is never ended by us."""
    if case.params.get("resource") not in ("port", "memory"):
        return case.hypothesis()
    own = _own_service(case)
    if own is not None:
        return own
    if case.params["resource"] == "memory":
        return holder.explain(case) or case.hypothesis()
    return _port(case)


def _port(case: Case) -> Hypothesis:
    subject = Subject(kind="port", key=str(case.site.port))
    look = port_call(case.view, case.site)
    known = case.view.facts.find(look.tool, look.target, look.args)
    seen = known.observation if known else None
    if not isinstance(seen, PortState):
        return case.hypothesis(subject=subject, probe=look, advice=_advice(case))
    for job, record in case.view.may_run.items():
        if seen.owner_pid is not None and record.observation.get("pid") == seen.owner_pid:
            text = "stop the server that this run started there before"
            call = stop_call(job, record.call, text)
            return case.hypothesis(subject=subject, fix=FixPlan((call,), text))
    found = holder.explain(case)
    if found is not None and (found.probe or _is_wanted(case, found)):
        return found
    spare = seen.next_free
    if spare is None:
        return found or case.hypothesis(subject=subject, advice=_advice(case))
    text = f"use port {spare} instead"
    call = ToolCall(
        tool=UsePort().name,
        args={"port": spare},
        target=case.site.target,
        why=f"{found.cause if found else case.hypothesis().cause}; {text}",
    )
    cause = found.cause if found else case.hypothesis().cause
    plan = FixPlan((call,), text)
    return case.hypothesis(subject=subject, cause=cause, fix=plan, advice=_advice(case))


def _is_wanted(case: Case, found: Hypothesis) -> bool:
    """Whether there is a fix that nobody has refused yet."""
    calls = found.fix.calls if found.fix else ()
    refused = [no.call for no in case.view.refused]
    return bool(calls) and not any(no.same_as(full(call)) for no in refused for call in calls)


def _own_service(case: Case) -> Hypothesis | None:
    """A server of this run that nobody wants any more holds what the next one needs."""
    effects = case.view.effects
    name = effects.service
    if name not in effects.serving or name == live_service(case.view, case.site):
        return None
    text = f"stop {name}, which this run started before"
    call = stop_call(name, effects.services[name].call, text)
    return case.hypothesis(fix=FixPlan((call,), text))


def _advice(case: Case) -> str:
    return (
        f"End what holds port {case.site.port} yourself, or name another port in the goal "
        "(`port:`), or ports that may be used instead (`allow: {ports: [8001-8010]}`)."
    )
