"""Risk, mode and grants give a decision; no rule means no.

deny > ask > allow, whatever the order. The policy of a run stands in its header, so a replay
decides the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from agent import knowledge
from agent.control import UsePort
from agent.explain import explain
from agent.goal import Goal
from agent.legible import hidden_in
from agent.private_files import kept_private
from agent.problems import Problem
from agent.values import ToolCall
from tools.base import Risk, Subject
from tools.container_changes import StopContainer
from tools.job_start import StartJob
from tools.jobs import StopJob

Mode = Literal["read-only", "supervised", "auto"]


class Word(StrEnum):
    """What a policy says of a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Policy(BaseModel):
    """What a run may do unasked; part of the run's header."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode = "supervised"
    yes: bool = False
    """``--yes``: asks up to CHANGE are answered by the flag."""
    on_ask: Literal["park", "deny"] = "park"
    """What an ask means where nobody can be asked."""
    paths: tuple[str, ...] = ()
    """Folders in which changes are granted."""
    ports: tuple[str, ...] = ()
    """Ports that may be listened on: ``8000`` or ``8000-8010``."""
    jobs: bool = True
    """Whether processes and containers that the run started itself may be stopped."""
    images: tuple[str, ...] = ()
    """Images of the goal: layers may be built on them, and containers started of them."""
    stop: tuple[str, ...] = ()
    """Containers of others whose stop may be asked for, and that ``--yes`` lets be stopped."""
    pull: bool = False
    """Whether images of the goal may be pulled."""
    download_gb: float = 0.0
    """Weights of up to so many gigabytes may be fetched."""
    download_mb: float = 500.0
    torch_index: str = ""
    """Index of CPU builds of torch."""

    def grants(self) -> tuple[str, ...]:
        """Say in words what is allowed unasked."""
        if self.mode != "auto":
            return ()
        words = [f"change what is inside {path}, and run it" for path in self.paths]
        words += [f"listen on port {port}" for port in self.ports]
        words += [f"build on {image}, and run it" for image in self.images]
        if self.pull:
            words.append("pull images of the goal")
        if self.download_gb:
            words.append(f"fetch weights of up to {self.download_gb:g} GB")
        if self.jobs:
            words.append("stop processes that this run started")
        return tuple(words)


class PolicyUnknown(Problem):
    """A recorded policy says what this version does not know."""


def recorded_policy(data: Mapping[str, Any], version: str) -> Policy:
    """Read the policy of a recorded run, which may be another version's.

    Raises:
        PolicyUnknown: this version does not know all that it says.
    """
    try:
        return Policy.model_validate(data)
    except ValidationError as error:
        words = f"a run of bringup {version} cannot be read by this version"
        raise PolicyUnknown(f"{words}: its policy: {explain(error, Policy)}") from error


class Decision(BaseModel):
    """A decision with its rule; a person reads the reason."""

    model_config = ConfigDict(frozen=True)

    word: Word
    reason: str


def policy_for(goal: Goal, mode: Mode, **more: object) -> Policy:
    """Build a run's policy from its goal: environments, ports and folders that the goal names."""
    ports = (str(goal.port), *goal.allow.ports)
    fields: dict[str, object] = {
        "mode": mode,
        "paths": goal.allow.paths,
        "ports": ports,
        "download_mb": goal.allow.download_mb,
        "images": tuple(item.image for item in goal.candidates if item.image),
        "stop": goal.allow.stop,
        "pull": goal.allow.pull,
        "download_gb": goal.allow.download_gb,
    }
    return Policy.model_validate(fields | more)


def decide(
    policy: Policy,
    call: ToolCall,
    risk: Risk,
    touches: tuple[Subject, ...],
    *,
    always_asks: bool = False,
    foreseen: bool = False,
    beyond: str = "",
) -> Decision:
    """Decide on one call.

    Args:
        policy: the run's.
        call: in its full form.
        risk: of this very call.
        touches: what it touches.
        always_asks: whether its tool is asked about in every mode.
        foreseen: whether it is exactly what code itself would do here.
        beyond: why a look goes beyond what the goal is about; empty where it does not.
    """
    never = _never(policy, call, risk, look=risk <= Risk.READ and not always_asks)
    if never:
        return Decision(word=Word.DENY, reason=never)
    if risk <= Risk.READ and not always_asks:
        return _look(policy, beyond)
    if always_asks:
        return Decision(word=Word.ASK, reason=f"{call.tool} always asks")
    if risk >= Risk.DESTROY:
        return Decision(word=Word.ASK, reason="it may lose data or end what is not ours")
    if _brings_accelerators(call) and policy.download_mb < ACCELERATOR_MB:
        return Decision(word=Word.ASK, reason="it downloads a build of gigabytes")
    if policy.mode == "supervised":
        return Decision(word=Word.ASK, reason="supervised: every change is asked about")
    return _by_grants(policy, call, touches, foreseen=foreseen)


def _never(policy: Policy, call: ToolCall, risk: Risk, *, look: bool) -> str:
    """Say why nobody is even asked; empty where somebody may be."""
    if policy.mode == "read-only" and risk > Risk.READ:
        return "the run is read-only"
    hidden = "" if look else hidden_in(call.args)
    if hidden:
        return f"a call holds {hidden}, which nobody would see: write it with plain characters"
    return kept_private(call)


def _look(policy: Policy, beyond: str) -> Decision:
    if not beyond:
        return Decision(word=Word.ALLOW, reason="it only looks")
    word = Word.DENY if policy.mode == "read-only" else Word.ASK
    return Decision(word=word, reason=f"it looks further than the goal: {beyond}")


def _by_grants(
    policy: Policy, call: ToolCall, touches: tuple[Subject, ...], *, foreseen: bool
) -> Decision:
    if call.tool in OF_ONES_OWN:
        return Decision(word=Word.ASK, reason="no grant covers a command of one's own")
    if call.tool in STOPS:
        return _stop(policy, call)
    if not foreseen and call.tool not in ANYBODYS:
        return Decision(word=Word.ASK, reason="it is not what the playbook would do here")
    special = _RULES.get(call.tool)
    if special is not None:
        return special(policy, call)
    outside = [subject for subject in touches if not _granted(policy, subject)]
    if outside or not touches:
        names = ", ".join(str(subject) for subject in outside) or "something unnamed"
        return Decision(word=Word.ASK, reason=f"no grant covers {names}")
    return Decision(word=Word.ALLOW, reason="granted")


ACCELERATOR_MB = 2000.0
"""At least so many megabytes come with a build for accelerators (torch's own wheels, 2026)."""


def _brings_accelerators(call: ToolCall) -> bool:
    words = call.args.get("requirements") or ()
    prefixes = knowledge.load().accelerator_packages
    return any(str(word).lower().startswith(prefixes) for word in words)


def _granted(policy: Policy, subject: Subject) -> bool:
    if subject.kind == "job":
        return policy.jobs
    if subject.kind == "port":
        return any(_in_range(int(subject.key), text) for text in policy.ports)
    if subject.kind in {"environment", "file", "model", "program"}:
        return any(_inside(subject.key, path) for path in policy.paths)
    return False


def _stop(policy: Policy, call: ToolCall) -> Decision:
    """A stop is granted for what the run started itself.

    The gate has made sure that a container is the run's; a job bears the name of the call that
    started it, which the purpose names.
    """
    own = call.tool == StopContainer().name or str(call.args["job"]).endswith(
        f"-{call.purpose.ref}"
    )
    if call.purpose.kind == "recover" and policy.jobs and own:
        return Decision(word=Word.ALLOW, reason="granted: the run started it itself")
    return Decision(word=Word.ASK, reason="it ends what others may be using")


def _start(policy: Policy, call: ToolCall) -> Decision:
    if any(_in_range(int(call.args["port"]), text) for text in policy.ports):
        return Decision(word=Word.ALLOW, reason="granted: the goal's server on a port of the goal")
    return Decision(word=Word.ASK, reason=f"no grant covers port {call.args['port']}")


def _build(policy: Policy, call: ToolCall) -> Decision:
    return Decision(word=Word.ALLOW, reason="granted: packages on an image of the goal")


def _pull(policy: Policy, call: ToolCall) -> Decision:
    if policy.pull:
        return Decision(word=Word.ALLOW, reason="granted: the goal allows pulls")
    return Decision(word=Word.ASK, reason="the goal does not allow pulls (`allow: {pull: true}`)")


def _fetch(policy: Policy, call: ToolCall) -> Decision:
    size = float(call.args.get("most_gb", SMALL_GB))
    if 0 < size <= policy.download_gb:
        return Decision(word=Word.ALLOW, reason=f"granted: up to {policy.download_gb:g} GB")
    large = f"{size:g} GB" if size else "a size that is not known"
    reason = f"no grant covers a download of {large} (`allow.download_gb`)"
    return Decision(word=Word.ASK, reason=reason)


SMALL_GB = 0.001
"""What a config.json alone is taken for."""
STOPS = (StopContainer().name, StopJob().name)
"""Tools that end what runs; a job may be one of an earlier run."""
OF_ONES_OWN = (StartJob().name, "exec_in_container")
"""Tools that run whatever they are told."""
ANYBODYS = (UsePort().name,)
"""Tools of which a granted place is all that matters. By any other a brain can bring its own code
or data to that place, so that the call itself has to be what code would do."""
_RULES: dict[str, Callable[[Policy, ToolCall], Decision]] = {
    "start_service": _start,
    "build_image": _build,
    "pull_image": _pull,
    "fetch_config": _fetch,
    "fetch_weights": _fetch,
}
"""What ``auto`` grants to tools that reach far, where the call is the playbook's own."""


def _in_range(port: int, text: str) -> bool:
    low, _, high = text.partition("-")
    return int(low) <= port <= int(high or low)


def _inside(path: str, folder: str) -> bool:
    inner, outer = PurePosixPath(path), PurePosixPath(folder)
    return ".." not in inner.parts and (inner == outer or outer in inner.parents)
