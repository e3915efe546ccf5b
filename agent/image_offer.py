"""What is asked before an image is pulled: for which platforms it is, and whether it has room."""

from __future__ import annotations

from agent.check import call_for
from agent.fold import View
from agent.judge import Verdict
from agent.site import Site
from agent.values import ToolCall
from tools.docker_engine import DockerInfo
from tools.host import HostFacts, HostState
from tools.image_manifest import ImageManifest, ManifestState, pull_refusal


def offer_call(view: View, site: Site) -> ToolCall:
    """Ask the registry which platforms it has, and how large they are."""
    return call_for(site, ImageManifest().name, image=site.image)


def room_call(view: View, site: Site) -> ToolCall:
    """Ask how much room the disk of images has."""
    info, _ = view.facts.latest(DockerInfo, fresh=False)
    root = info.data_root if info else "/var/lib/docker"
    return call_for(site, HostFacts().name, python=site.host_python, paths=(root,))


def judge_offer(view: View, seen: ManifestState, site: Site) -> Verdict:
    """Whether one of the platforms is that of the engine."""
    info, _ = view.facts.latest(DockerInfo, fresh=False)
    refusal = pull_refusal(seen, info.platform if info else "", None)
    if not refusal:
        return Verdict(True, seen.headline())
    words = f"{site.image} cannot be pulled: {refusal}"
    return Verdict(False, "not for this host", words)


def judge_room(view: View, seen: HostState, site: Site) -> Verdict:
    """Whether what would be pulled has room."""
    info, _ = view.facts.latest(DockerInfo, fresh=False)
    look = offer_call(view, site)
    known = view.facts.find(look.tool, look.target, look.args)
    offered = known.observation if known else None
    free = min((disk.free_mib for disk in seen.disks if disk.free_mib is not None), default=None)
    refusal = (
        pull_refusal(offered, info.platform, free)
        if isinstance(offered, ManifestState) and info
        else ""
    )
    if not refusal:
        return Verdict(True, f"{free} MiB free")
    return Verdict(False, "no room", f"No space left on device: {refusal}")
