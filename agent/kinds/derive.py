"""A change of an image: one layer on top, by a Dockerfile that is named by its content."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement

from agent.check import call_for
from agent.control import UseImage
from agent.dockerfile import dockerfile, name_of
from agent.fold import View
from agent.kinds.base import Case, FixPlan
from agent.site import Site
from agent.values import CallStatus, ToolCall
from tools.image_build import BuildImage
from tools.images import ImageState, InspectImage
from tools.packages import EnvironmentState

NO_WAY_OUT = (
    "CERTIFICATE_VERIFY_FAILED",
    "SSLError",
    "Could not fetch URL",
    "Max retries exceeded",
)
"""Words of a build that could not reach the package index: another build would not either."""


@dataclass(frozen=True, slots=True)
class Derived:
    """What came of planning: a look to make first, a fix, or why there is none."""

    probe: ToolCall | None = None
    fix: FixPlan | None = None
    obstacle: str = ""
    advice: str = ""
    evidence: tuple[str, ...] = ()


def derive(case: Case, requirements: tuple[str, ...], reason: str) -> Derived:
    """Plan an image with these requirements; one that was built before is used again.

    Args:
        case: the failure, on an image.
        requirements: what pip is asked for.
        reason: why, for the person who approves.
    """
    seen = case.environment
    broken = _no_way_out(case.view, case.site.target)
    if broken:
        return Derived(
            obstacle=f"a build here cannot reach the package index: {broken[1]}",
            advice="Let builds on that host reach an index (proxy, certificate in the base image, "
            "PIP_INDEX_URL), then run again.",
            evidence=(broken[0],),
        )
    base, event = _inspected(case, case.site.image)
    if isinstance(base, ToolCall) or seen is None:
        return Derived(probe=base if isinstance(base, ToolCall) else None)
    if not seen.pip_version:
        return Derived(
            obstacle=f"no pip works in {case.site.image}: {seen.pip_error or 'none is there'}",
            advice="Derive an image by hand, with the tool that it was made with, and name that.",
            evidence=event,
        )
    named = {name_in(text) for text in requirements}
    more = [text for text in kept(case.site, seen) if name_in(text) not in named]
    wanted = (*requirements, *more)
    text = dockerfile(base, seen, wanted, f"{case.site.image}: {reason}")
    tag = name_of(base.id, text)
    found, look = _inspected(case, tag)
    if isinstance(found, ToolCall):
        return Derived(probe=found)
    words = f"{reason}: one layer on {case.site.image}: {', '.join(wanted)}"
    if found.present:
        args = {"base": case.site.candidate.image, "image": tag}
        use = ToolCall(tool=UseImage().name, args=args, target=case.site.target, why=words)
        plan = FixPlan((use,), f"{words}; {tag}, built before, is that already")
        return Derived(fix=plan, evidence=(*event, *look))
    build = ToolCall(
        tool=BuildImage().name,
        args={
            "dockerfile": text,
            "tag": tag,
            "base": case.site.candidate.image,
            "base_id": base.id,
            "network": "host",
        },
        target=case.site.target,
        why=words,
    )
    return Derived(fix=FixPlan((build,), words), evidence=(*event, *look))


def kept(site: Site, seen: EnvironmentState) -> tuple[str, ...]:
    """Return exact pins of what may not move, which pip finds satisfied, and the goal's bounds."""
    keep = [name for name in site.candidate.keep if name in seen.versions]
    pins = [f"{name}=={seen.versions[name]}" for name in keep]
    bounds = [text for text in site.candidate.requirements if name_in(text) not in keep]
    return (*pins, *bounds)


def name_in(requirement: str) -> str:
    """Return the distribution that a requirement is about; empty where it is no requirement."""
    try:
        return Requirement(requirement).name
    except InvalidRequirement:
        return ""


def _inspected(case: Case, image: str) -> tuple[ImageState | ToolCall, tuple[str, ...]]:
    """Return what is known of an image with its event, or the look that tells."""
    call = call_for(case.site, InspectImage().name, image=image)
    known = case.view.facts.find(call.tool, call.target, call.args)
    if known is None or not isinstance(known.observation, ImageState):
        return call, ()
    return known.observation, (known.event,)


def _no_way_out(view: View, target: str) -> tuple[str, str] | None:
    """Return the event and words of a build that could not reach the index, if one failed so."""
    for record in view.calls.values():
        if record.call.tool != BuildImage().name or record.call.target != target:
            continue
        offline = any(word in record.message for word in NO_WAY_OUT)
        if record.status is CallStatus.FAILED and offline:
            return f"e{record.ended}", record.message.splitlines()[0][:200]
    return None
