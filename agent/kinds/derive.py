"""A change of an image: one layer on top, by a Dockerfile that is named by its content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from agent.check import call_for
from agent.control import UseImage
from agent.fold import View
from agent.kinds.base import Case, FixPlan
from agent.site import Site
from agent.values import CallStatus, ToolCall
from tools.image_build import BuildImage
from tools.images import ImageState, InspectImage
from tools.packages import EnvironmentState

PREFIX = "bringup."
"""Images that are made here are named ``bringup.HASH``."""
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
    wanted = (*requirements, *kept(case.site, seen))
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
    """Return exact pins of what may not move; pip finds them satisfied and leaves them alone."""
    keep = [name for name in site.candidate.keep if name in seen.versions]
    return tuple(f"{name}=={seen.versions[name]}" for name in keep)


def dockerfile(
    base: ImageState, seen: EnvironmentState, requirements: tuple[str, ...], reason: str
) -> str:
    """Return the text of the one layer; words go as a list, which no shell reads."""
    words = [seen.executable, "-m", "pip", "install", "--no-cache-dir", "--progress-bar", "off"]
    words += ["--disable-pip-version-check", "--root-user-action", "ignore"]
    words += ["--break-system-packages"] if seen.externally_managed else []
    words += ["--", *requirements]
    comment = " ".join(reason.split())
    lines = [f"# {comment}", f"FROM {base.id}"]
    lines += ["USER root"] if base.user not in ("", "root", "0") else []
    lines += [f"RUN {json.dumps(words, ensure_ascii=True)}"]
    lines += [f"USER {base.user}"] if base.user not in ("", "root", "0") else []
    return "\n".join(lines) + "\n"


def name_of(base_id: str, text: str) -> str:
    """Return the image's name: the same base and the same Dockerfile have the same."""
    digest = hashlib.sha256(f"{base_id}\n{text}".encode()).hexdigest()
    return f"{PREFIX}{digest[:16]}"


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
