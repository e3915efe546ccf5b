"""Which container of somebody else holds what the goal needs, found by looking where it runs."""

from __future__ import annotations

from dataclasses import dataclass

from agent import knowledge
from agent.check import call_for, port_call
from agent.kinds.base import Case, FixPlan, Hypothesis
from agent.site import Site
from agent.values import ToolCall
from tools.container_changes import StopContainer
from tools.container_use import ContainersInUse, ContainerUse
from tools.containers import (
    ContainerList,
    ContainerRow,
    ContainerState,
    InspectContainer,
    ListContainers,
)
from tools.engine_probe import EngineProbe, EngineState
from tools.memory import MemoryFree
from tools.network import PortOwner, PortState

ENOUGH = "End more of what holds memory there, or name a host with more."
SMALL_MIB = 256.0
"""A container that uses less is no explanation for missing memory."""


@dataclass
class _Looks:
    """What is known of the host's containers, and the first look that is missing."""

    case: Case
    missing: ToolCall | None = None
    evidence: tuple[str, ...] = ()

    def of(self, call: ToolCall) -> object | None:
        """Return what this call observed; where it was never made, note it as the next look."""
        view = self.case.view
        known = view.facts.find(call.tool, call.target, call.args)
        if known is not None:
            self.evidence = (*self.evidence, known.event)
            return known.observation
        if not view.failed_looks.of(call):
            self.missing = self.missing or call
        return None


def explain(case: Case) -> Hypothesis | None:
    """Name the container that holds the port or the memory; ``None`` where it is none."""
    if not case.site.is_image:
        return None
    looks = _Looks(case)
    rows = _others(looks)
    if looks.missing is not None:
        return case.hypothesis(probe=looks.missing)
    row = _holder_of_memory(looks, rows) if _is_memory(case) else _holder_of_port(looks, rows)
    if looks.missing is not None:
        return case.hypothesis(probe=looks.missing)
    return None if row is None else _named(case, looks, row)


def _is_memory(case: Case) -> bool:
    return case.params.get("resource") == "memory"


def _others(looks: _Looks) -> list[ContainerRow]:
    """Return running containers that are not this run's, those that may be stopped first."""
    site = looks.case.site
    header = looks.case.view.header
    seen = looks.of(call_for(site, ListContainers().name))
    rows = seen.containers if isinstance(seen, ContainerList) else ()
    ours = header.run_id if header else ""
    others = [row for row in rows if row.labels.get("bringup.run") != ours]
    return sorted(others, key=lambda row: row.name not in site.goal.allow.stop)


def _holder_of_port(looks: _Looks, rows: list[ContainerRow]) -> ContainerRow | None:
    for row in rows:
        if _holds_port(looks, row):
            return row
        if looks.missing is not None:
            return None
    return None


def _is_held(looks: _Looks) -> bool:
    seen = looks.of(port_call(looks.case.view, looks.case.site))
    return isinstance(seen, PortState) and not seen.free


def _holds_port(looks: _Looks, row: ContainerRow) -> bool:
    """Tell whether a container holds the goal's port.

    One on the host's own network is asked inside: from there its own processes can be seen,
    whoever we are.
    """
    site = looks.case.site
    if any(item.host_port == site.port for item in row.ports):
        return True
    if "host" not in row.networks.split(","):
        return False
    inside = call_for(site, PortOwner().name, python="python3", host=site.goal.host, port=site.port)
    call = inside.model_copy(update={"target": f"{site.target}/{row.name}"})
    seen = looks.of(call)
    return isinstance(seen, PortState) and seen.owner_pid is not None


def _holder_of_memory(looks: _Looks, rows: list[ContainerRow]) -> ContainerRow | None:
    seen = looks.of(call_for(looks.case.site, ContainerUse().name))
    used = {
        item.name: item.memory_mib
        for item in (seen.containers if isinstance(seen, ContainersInUse) else ())
    }
    big = [row for row in rows if used.get(row.name, 0.0) >= SMALL_MIB]
    allowed = [row for row in big if row.name in looks.case.site.goal.allow.stop]
    return max(allowed or big, key=lambda row: used[row.name], default=None)


def _named(case: Case, looks: _Looks, row: ContainerRow) -> Hypothesis:
    """Say who it is and what it holds; its stop needs the goal's word and then a person's."""
    site = case.site
    state = looks.of(call_for(site, InspectContainer().name, name=row.name))
    engine = looks.of(_engine_call(site, row.name))
    use = looks.of(call_for(site, ContainerUse().name))
    ports = (site.port,) if _is_held(looks) and _holds_port(looks, row) else ()
    if looks.missing is not None:
        return case.hypothesis(probe=looks.missing)
    who = f"{row.name} ({', '.join(_who(row, engine))})"
    evidence = (*case.failure.evidence, *looks.evidence)
    cause = f"{who} holds {_what(row, ports, use)}"
    if row.name not in site.goal.allow.stop:
        advice = (
            f"It is not this run's. Let it be stopped (`allow: {{stop: [{row.name}]}}`), stop it "
            "yourself, or name another port or host in the goal."
        )
        return case.hypothesis(cause=cause, advice=advice, evidence=evidence)
    short = _still_short(case, row, use)
    if short:
        return case.hypothesis(cause=f"{cause}; {short}", advice=ENOUGH, evidence=evidence)
    if isinstance(state, ContainerState) and state.auto_remove:
        advice = (
            f"It was started with --rm: stopped, it would be gone for good. Stop {row.name} "
            "yourself once it can be made again, or name another port or host in the goal."
        )
        return case.hypothesis(cause=cause, advice=advice, evidence=evidence)
    text = f"stop {row.name}; `docker start {row.name}` brings it back as it was"
    call = ToolCall(
        tool=StopContainer().name,
        args={"name": row.name, "ports": list(ports)},
        target=site.target,
        why=f"{cause}, which the new server needs",
    )
    return case.hypothesis(cause=cause, fix=FixPlan((call,), text), evidence=evidence)


def _still_short(case: Case, row: ContainerRow, use: object | None) -> str:
    """Say that memory would be short even without this container; empty where it would do."""
    seen, _ = case.view.facts.latest(MemoryFree)
    if not _is_memory(case) or seen is None or not isinstance(use, ContainersInUse):
        return ""
    held = sum(item.memory_mib for item in use.containers if item.name == row.name)
    most, need = round(seen.available_mib + held), case.site.goal.needs.memory_mib
    return "" if most >= need else f"even without it only {most} of {need} MiB would be available"


def _engine_call(site: Site, name: str) -> ToolCall:
    call = call_for(site, EngineProbe().name, python="python3", engines=known_layouts())
    return call.model_copy(update={"target": f"{site.target}/{name}"})


def known_layouts() -> list[dict[str, object]]:
    """Return how every engine is recognised; those with models of their own use another too."""
    return [
        {"module": engine.module, "distributions": list(engine.distributions)}
        for engine in sorted(knowledge.load().engines.values(), key=lambda item: not item.models)
        if engine.module
    ]


def _who(row: ContainerRow, engine: object | None) -> list[str]:
    words = [f"image {row.image}"]
    if isinstance(engine, EngineState) and engine.found:
        words.append(f"{engine.distribution or engine.module} {engine.version}".strip())
    return [*words, row.status.lower()]


def _what(row: ContainerRow, ports: tuple[int, ...], use: object | None) -> str:
    parts = [f"port {port}" for port in ports]
    if isinstance(use, ContainersInUse):
        parts += [
            f"{item.memory_mib:.0f} MiB of memory"
            for item in use.containers
            if item.name == row.name
        ]
    return " and ".join(parts) or "memory"
