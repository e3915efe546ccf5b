"""Risk, mode and grants give a decision; no rule means no.

deny > ask > allow, whatever the order. The policy of a run stands in its header, so a replay
decides the same.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict

from agent import knowledge
from agent.goal import Goal
from agent.values import ToolCall
from tools.base import Risk, Subject
from tools.jobs import StartJob

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
    """Whether processes that the run started itself may be stopped."""
    download_mb: float = 500.0
    torch_index: str = ""
    """Index of CPU builds of torch."""

    def grants(self) -> tuple[str, ...]:
        """Say in words what is allowed unasked."""
        if self.mode != "auto":
            return ()
        words = [f"change what is inside {path}, and run it" for path in self.paths]
        words += [f"listen on port {port} of this machine" for port in self.ports]
        if self.jobs:
            words.append("stop processes that this run started")
        return tuple(words)


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
    }
    return Policy.model_validate(fields | more)


def decide(
    policy: Policy,
    call: ToolCall,
    risk: Risk,
    touches: tuple[Subject, ...],
    *,
    always_asks: bool = False,
) -> Decision:
    """Decide on one call."""
    if risk <= Risk.READ and not always_asks:
        return Decision(word=Word.ALLOW, reason="it only looks")
    if policy.mode == "read-only" and risk > Risk.READ:
        return Decision(word=Word.DENY, reason="the run is read-only")
    if always_asks:
        return Decision(word=Word.ASK, reason=f"{call.tool} always asks")
    if risk >= Risk.DESTROY:
        return Decision(word=Word.ASK, reason="it may lose data or end what is not ours")
    if _brings_accelerators(call) and policy.download_mb < ACCELERATOR_MB:
        return Decision(word=Word.ASK, reason="it downloads a build of gigabytes")
    if policy.mode == "supervised":
        return Decision(word=Word.ASK, reason="supervised: every change is asked about")
    return _by_grants(policy, call, touches)


def _by_grants(policy: Policy, call: ToolCall, touches: tuple[Subject, ...]) -> Decision:
    if call.tool == StartJob().name:
        return Decision(word=Word.ASK, reason="no grant covers a command of one's own")
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


def _in_range(port: int, text: str) -> bool:
    low, _, high = text.partition("-")
    return int(low) <= port <= int(high or low)


def _inside(path: str, folder: str) -> bool:
    inner, outer = PurePosixPath(path), PurePosixPath(folder)
    return ".." not in inner.parts and (inner == outer or outer in inner.parents)
