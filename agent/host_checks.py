"""The checks of a host that is made ready, and what may be done where they fail."""

from __future__ import annotations

from collections.abc import Callable

from agent import provisioning
from agent.check import CONNECTED, REACHED, Check, call_for, of_host
from agent.fold import View
from agent.judge import Verdict
from agent.provision_goal import ProvisionGoal
from agent.site import Site
from agent.values import ToolCall
from tools.host_readiness import HostReadiness, Readiness
from tools.os_packages import PackagePlan, PlanPackages

NEEDS = "needs operator: "
"""How the failure of a check begins that only a person can mend."""
OURS = "# Written by bringup"
"""How our file of limits begins."""
INSTALLED = {
    "python_installed": "python",
    "docker_installed": "docker",
    "toolkit_installed": "nvidia",
}
"""Checks that packages make true, with the part that names the packages."""


def goal_of(site: Site) -> ProvisionGoal:
    """Return the goal in its own form."""
    if not isinstance(site.goal, ProvisionGoal):
        raise TypeError(f"a goal of kind {site.goal.kind} makes no host ready")
    return site.goal


def look_call(view: View, site: Site) -> ToolCall:
    """Look at all of it at once."""
    packages = provisioning.load().all_packages
    environment = goal_of(site).environment
    return call_for(site, HostReadiness().name, environment=environment, packages=packages)


def readiness_of(view: View) -> Readiness | None:
    """Return what was last seen, be it stale."""
    seen, _ = view.facts.latest(HostReadiness, fresh=False)
    return seen


def missing_packages(view: View, site: Site) -> tuple[str, ...]:
    """Return the packages of the first wanted part that is not installed."""
    seen = readiness_of(view)
    family = provisioning.load().family(seen) if seen else None
    if seen is None or family is None:
        return ()
    for name, part in INSTALLED.items():
        wanted = part in goal_of(site).provide or (name == "docker_installed" and _gpus(site))
        if wanted and not _there(name, seen) and not (part == "python" and seen.env_pip):
            return family.choice(part, seen.known)
    return ()


def _gpus(site: Site) -> bool:
    return "nvidia" in goal_of(site).provide


def _there(name: str, seen: Readiness) -> bool:
    if name == "python_installed":
        return seen.ensurepip
    if name == "docker_installed":
        return bool(seen.docker_server or (seen.docker and seen.dockerd))
    return bool(seen.toolkit)


def _plan_call(view: View, site: Site) -> ToolCall | None:
    packages = missing_packages(view, site)
    return call_for(site, PlanPackages().name, packages=packages) if packages else None


def planned(seen: PackagePlan, site: Site) -> Verdict:
    """Apt would do it, and remove nothing for it."""
    if not seen.ok:
        return Verdict(False, "apt says no", f"apt cannot install it: {seen.error}")
    if seen.removed:
        words = f"installing it would remove {', '.join(seen.removed)}"
        return Verdict(False, words, words)
    return Verdict(True, seen.headline())


def looked_at(seen: Readiness, site: Site) -> Verdict:
    """It was."""
    return Verdict(True, seen.headline())


def _installed(name: str, what: str) -> Callable[[Readiness, Site], Verdict]:
    def judge(seen: Readiness, site: Site) -> Verdict:
        if _there(name, seen):
            return Verdict(True, f"{what} is installed")
        family = provisioning.load().family(seen)
        missing = f"{what} is missing"
        if family is None:
            words = f"{missing}, and nothing is known of packages on {seen.os_name or 'its system'}"
            return Verdict(False, missing, words)
        if not family.choice(INSTALLED[name], seen.known):
            return _by_hand(missing, "no configured repository has it")
        if family.manager != "apt-get":
            return _by_hand(missing, f"bringup installs with apt only, and this has {seen.manager}")
        return _changed_by_us(seen, missing)

    return judge


def _by_hand(missing: str, why: str) -> Verdict:
    return Verdict(False, missing, f"{NEEDS}{missing}, and {why}")


def _changed_by_us(seen: Readiness, missing: str) -> Verdict:
    """What is not there yet is for us where root can be become, else for the operator."""
    if seen.may_change:
        return Verdict(False, missing)
    if seen.sudo == "absent":
        return _by_hand(missing, f"there is no sudo, and {seen.user} is not root")
    return _by_hand(missing, f"sudo wants a password from {seen.user}")


def python_ready(seen: Readiness, site: Site) -> Verdict:
    """The environment is there, with pip."""
    folder = goal_of(site).environment
    if seen.env_python and seen.env_pip:
        return Verdict(True, f"{folder}: Python {seen.env_python}, pip {seen.env_pip}")
    if seen.env_there:
        words = f"{folder} is there, and is no Python environment with pip"
        return Verdict(False, words, words)
    return Verdict(False, f"{folder} does not exist yet")


def docker_allowed(seen: Readiness, site: Site) -> Verdict:
    """The user may speak to the daemon."""
    if seen.docker_server or seen.sudo == "root" or "docker" in seen.groups:
        return Verdict(True, f"{seen.user} may use Docker")
    missing = f"{seen.user} is not in the group docker"
    if "docker" in seen.groups_next:
        return _by_hand("this login does not have the group docker", "the next one will")
    return _changed_by_us(seen, missing)


def docker_usable(seen: Readiness, site: Site) -> Verdict:
    """The daemon answers the user."""
    if seen.docker_server:
        return Verdict(True, f"Docker {seen.docker_server}")
    lines = seen.docker_error.strip().splitlines()
    said = lines[-1] if lines else "it says nothing"
    return Verdict(False, "no daemon", f"{NEEDS}the Docker daemon does not answer: {said}")


def driver_works(seen: Readiness, site: Site) -> Verdict:
    """``nvidia-smi`` names a GPU."""
    if seen.gpus.startswith("GPU "):
        return Verdict(True, seen.gpus.splitlines()[0])
    if not seen.gpu_pci and not seen.gpus:
        words = f"no NVIDIA GPU is seen on {site.target}"
        return Verdict(False, "no GPU", words)
    said = seen.gpus.strip().splitlines()[-1] if seen.gpus.strip() else "nvidia-smi is missing"
    return Verdict(False, "no driver", f"{NEEDS}the NVIDIA driver does not work: {said}")


def gpu_in_containers(seen: Readiness, site: Site) -> Verdict:
    """Docker knows NVIDIA's runtime."""
    if "nvidia" in seen.docker_runtimes:
        return Verdict(True, "Docker has the runtime nvidia")
    return _changed_by_us(seen, "Docker does not know the runtime nvidia")


def limits_raised(seen: Readiness, site: Site) -> Verdict:
    """This login has them."""
    goal = goal_of(site)
    has = f"this login may lock {seen.memlock} KiB of memory and open {seen.nofile} files"
    if _reaches(seen.memlock, goal.memlock) and _reaches(seen.nofile, goal.nofile):
        return Verdict(True, has)
    if OURS in seen.limits:
        return _by_hand(has, "the limits file has more: a new login, or UsePAM in sshd, is missing")
    return _changed_by_us(seen, has)


def limits_to_set(view: View, site: Site) -> dict[str, str]:
    """Return the limits that are wanted; where a login may do more already, it stays so."""
    seen, goal = readiness_of(view) or Readiness(), goal_of(site)
    pairs = {"memlock": (seen.memlock, goal.memlock), "nofile": (seen.nofile, goal.nofile)}
    return {name: has if _reaches(has, wanted) else wanted for name, (has, wanted) in pairs.items()}


def _reaches(has: str, wanted: str) -> bool:
    if has == "unlimited" or wanted == "unlimited":
        return has == "unlimited"
    return has.isdecimal() and int(has) >= int(wanted)


def _of_host(
    name: str, says: str, judge: Callable[[Readiness, Site], Verdict], *needs: str
) -> Check:
    return Check(name, says, look_call, judge, of_host, (*REACHED, *needs), of_candidate=False)


HOST_CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        CONNECTED,
        _of_host("host_looked_at", "the host was looked at", looked_at),
        Check(
            "packages_planned",
            "what is missing can be installed, and nothing is removed for it",
            _plan_call,
            planned,
            of_host,
            ("host_looked_at",),
            idle=Verdict(True, "nothing is to be installed"),
            of_candidate=False,
        ),
        _of_host(
            "python_installed",
            "a Python that can make environments is installed",
            _installed("python_installed", "Python with venv"),
        ),
        _of_host(
            "python_ready",
            "the Python environment is there, with pip",
            python_ready,
            "python_installed",
        ),
        _of_host(
            "docker_installed", "Docker is installed", _installed("docker_installed", "Docker")
        ),
        _of_host("docker_allowed", "the user may use Docker", docker_allowed, "docker_installed"),
        _of_host(
            "docker_usable",
            "the Docker daemon answers the user",
            docker_usable,
            "docker_installed",
            "docker_allowed",
        ),
        _of_host("driver_works", "the NVIDIA driver works", driver_works),
        _of_host(
            "toolkit_installed",
            "NVIDIA's container toolkit is installed",
            _installed("toolkit_installed", "NVIDIA's container toolkit"),
        ),
        _of_host(
            "gpu_in_containers",
            "Docker can hand NVIDIA GPUs to containers",
            gpu_in_containers,
            "driver_works",
            "docker_usable",
            "toolkit_installed",
        ),
        _of_host("limits_raised", "logins have the limits", limits_raised),
    )
}
"""By name."""
