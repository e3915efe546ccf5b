"""From a wish to exact pins: what pip's own resolver would move, under what must not move."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from agent import knowledge
from agent.check import call_for
from agent.kinds.base import Case, FixPlan
from agent.kinds.derive import derive
from agent.values import ToolCall
from tools.installation import PipInstall, PipResolve, Resolution


@dataclass(frozen=True, slots=True)
class Solution:
    """What came of asking the resolver: a probe to make first, a fix, or why there is none."""

    probe: ToolCall | None = None
    fix: FixPlan | None = None
    obstacle: str = ""
    advice: str = ""
    evidence: tuple[str, ...] = ()


def keep_constraints(case: Case) -> tuple[str, ...]:
    """Return what bounds the resolver: what may not move, else the goal's requirements."""
    versions = case.environment.versions if case.environment else {}
    kept = [f"{name}=={versions[name]}" for name in case.site.candidate.keep if name in versions]
    names = {canonicalize_name(item.partition("==")[0]) for item in kept}
    wished = [
        text
        for text in case.site.candidate.requirements
        if (found := _parsed(text))
        and found.specifier
        and canonicalize_name(found.name) not in names
    ]
    return (*kept, *wished)


def _parsed(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def solve(case: Case, requirements: tuple[str, ...], reason: str) -> Solution:
    """Ask the resolver in the environment, then turn its answer into exact pins.

    Where the goal is for the CPU and the default index would bring a build for accelerators
    (gigabytes), the resolver is asked once more with the index of CPU builds. An image is changed
    by a layer on top, in whose build pip resolves.
    """
    if case.site.is_image:
        plan = derive(case, requirements, reason)
        return Solution(plan.probe, plan.fix, plan.obstacle, plan.advice, plan.evidence)
    first, evidence = _ask(case, requirements, ())
    if isinstance(first, ToolCall):
        return Solution(probe=first)
    if not first.ok or not first.moves:
        return _nothing_to_move(case, first, requirements, evidence)
    if not _for_accelerators(first) or case.site.goal.options.get("device") != "cpu":
        return Solution(fix=_plan(case, first, (), reason), evidence=evidence)
    index = str((case.view.header.policy if case.view.header else {}).get("torch_index", ""))
    second, more = _ask(case, requirements, (index,) if index else ())
    if isinstance(second, ToolCall):
        return Solution(probe=second)
    if second.ok and not _for_accelerators(second):
        return Solution(fix=_plan(case, second, (index,), reason), evidence=(*evidence, *more))
    if not second.ok:
        return _obstacle(case, second, requirements, (*evidence, *more))
    return Solution(
        obstacle=f"only a build for accelerators (gigabytes) of {' '.join(requirements)} is there",
        advice="Name a CPU build in the candidate's `requirements`, or set `torch_index`.",
        evidence=(*evidence, *more),
    )


def _ask(
    case: Case, requirements: tuple[str, ...], extra: tuple[str, ...]
) -> tuple[ToolCall | Resolution, tuple[str, ...]]:
    """Return the resolver's answer with its event, or the call that would get it."""
    call = call_for(
        case.site,
        PipResolve().name,
        python=case.site.python,
        requirements=requirements,
        constraints=keep_constraints(case),
        extra_index=extra,
    )
    known = case.view.facts.find(call.tool, call.target, call.args)
    if known is None or not isinstance(known.observation, Resolution):
        return call, ()
    return known.observation, (known.event,)


def _for_accelerators(seen: Resolution) -> bool:
    prefixes = knowledge.load().accelerator_packages
    return any(move.name.startswith(prefixes) for move in seen.moves)


def _plan(case: Case, seen: Resolution, extra: tuple[str, ...], reason: str) -> FixPlan:
    versions = case.environment.versions if case.environment else {}
    pins = tuple(f"{move.name}=={move.to_version}" for move in seen.moves)
    named = [
        f"{move.name} {versions.get(move.name, '(new)')} → {move.to_version}"
        for move in seen.moves
        if move.name in versions
    ]
    added = len(seen.moves) - len(named)
    parts = ", ".join(named) or "nothing that is there"
    kept = ", ".join(keep_constraints(case)) or "nothing"
    text = f"{reason}: move {parts}; add {added} new; keep {kept}"
    call = ToolCall(
        tool=PipInstall().name,
        args={
            "python": case.site.python,
            "requirements": list(pins),
            "constraints": list(keep_constraints(case)),
            "extra_index": list(extra),
        },
        target=case.site.target,
        why=text,
    )
    return FixPlan((call,), text)


def _nothing_to_move(
    case: Case, seen: Resolution, requirements: tuple[str, ...], evidence: tuple[str, ...]
) -> Solution:
    """Say why nothing is installed: the resolver refuses, or has it all."""
    if not seen.ok:
        return _obstacle(case, seen, requirements, evidence)
    return Solution(
        obstacle=f"pip has {' '.join(requirements)} there already, so the cause is elsewhere",
        advice="See which file the failing import comes from: another copy may come first.",
        evidence=evidence,
    )


def _obstacle(
    case: Case, seen: Resolution, requirements: tuple[str, ...], evidence: tuple[str, ...]
) -> Solution:
    wish = " ".join(requirements)
    words = case.words()
    if seen.error_kind == "requires_python":
        return Solution(
            obstacle=f"{wish} needs Python {seen.requires_python or 'newer'}, and the environment "
            f"has {words['python_version']}",
            advice="Make an environment with a newer Python and name it in the goal: "
            "python3.X -m venv DIR.",
            evidence=evidence,
        )
    if seen.error_kind == "conflict":
        return Solution(
            obstacle=f"{wish} cannot be had without moving what must stay: {seen.error}",
            advice="Another release of the engine is needed, not a change of this environment.",
            evidence=evidence,
        )
    if seen.error_kind == "network":
        return Solution(
            obstacle=f"the package index cannot be reached to get {wish}: {seen.error}",
            advice="Check the network, proxy and index settings of pip there; then run again.",
            evidence=evidence,
        )
    return Solution(
        obstacle=f"pip cannot get {wish}: {seen.error}",
        advice="Look at pip's words above; the same command can be run by hand.",
        evidence=evidence,
    )
