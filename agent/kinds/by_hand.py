"""by-hand: what only a person may do; it is asked for word for word, and then looked at."""

from __future__ import annotations

import re
import shlex

from agent import provisioning
from agent.host_checks import INSTALLED, OURS, goal_of, readiness_of
from agent.kinds.base import Case, FixPlan, Hypothesis
from agent.site import Site
from agent.values import ToolCall
from tools.host_changes import OperatorStep
from tools.host_readiness import Readiness

MOST_NAMED = 5
"""Containers that are named in a command's remark; the others are counted."""


def explain(case: Case) -> Hypothesis:
    """Name the commands; the fix waits until a person says that they were run."""
    seen = readiness_of(case.view)
    commands = commands_for(case.failure.check, case.site, seen) if seen else ()
    if not commands:
        return case.hypothesis()
    text = f"a person does on {case.site.target}: {' ; '.join(commands)}"
    call = ToolCall(
        tool=OperatorStep().name,
        args={"commands": list(commands)},
        target=case.site.target,
        why=f"bringup may not, or does not, do this: {case.hypothesis().cause}.",
    )
    return case.hypothesis(fix=FixPlan((call,), text), advice="Run it again once it is done.")


def commands_for(check: str, site: Site, seen: Readiness) -> tuple[str, ...]:
    """Return what a person types for a check to hold; empty where nobody knows."""
    words = provisioning.load().operator
    goal = goal_of(site)
    running = _some(seen.docker_running)
    stops = f"stops these containers: {running}" if running else "no container runs now"
    filled = {
        "user": shlex.quote(_plain(seen.user)),
        "group": "docker",
        "os": _plain(seen.os_name),
        "memlock": goal.memlock,
        "nofile": goal.nofile,
        "running": "containers go on running (live-restore)" if seen.live_restore else stops,
    }
    templates: tuple[str, ...] = ()
    if check in INSTALLED:
        return _install(check, seen)
    if check == "docker_allowed":
        templates = (words.login,) if "docker" in seen.groups_next else (words.group,)
    elif check == "docker_usable":
        templates = (words.daemon_systemd if seen.systemd else words.daemon,)
    elif check == "limits_raised":
        templates = (words.login,) if OURS in seen.limits else words.limits
    else:
        starts_anew = seen.reboot or "mismatch" in seen.gpus
        driver = words.reboot if starts_anew else words.driver
        rest = {"driver_works": (driver,), "gpu_in_containers": words.runtime}
        templates = rest.get(check, ())
    return tuple(_filled(text, filled) for text in templates)


def _plain(text: str) -> str:
    """Return what may stand in a command of what a host calls itself."""
    return re.sub(r"[^A-Za-z0-9 ._@()-]", "", text)[:60]


def _some(names: tuple[str, ...]) -> str:
    """Name a few, and say how many there are besides."""
    first = ", ".join(map(_plain, names[:MOST_NAMED]))
    more = len(names) - MOST_NAMED
    return f"{first}, and {more} more" if more > 0 else first


def _install(check: str, seen: Readiness) -> tuple[str, ...]:
    family = provisioning.load().family(seen)
    if family is None:
        return ()
    part = INSTALLED[check]
    packages = family.choice(part, seen.known)
    before = () if packages else family.repository if part == "nvidia" else ()
    names = packages or family.packages[part][-1]
    return (*before, _filled(family.install, {"packages": " ".join(names)}))


def _filled(text: str, words: dict[str, str]) -> str:
    """Fill ``{name}`` by plain replacement."""
    for name, value in words.items():
        text = text.replace("{" + name + "}", value)
    return text
