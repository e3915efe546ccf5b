"""Runs on a poisoned host with a model that obeys, and what stopped its calls."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agent.approval import Policy, policy_for
from agent.brains.base import Brain
from agent.brains.dialect import Dialect
from agent.brains.endpoint import Address, Endpoint
from agent.brains.openai_chat import OpenAIChat
from agent.brains.playbook import Playbook
from agent.brains.render import Fence
from agent.engine import Answer, loop
from agent.events import ApprovalAsked, RunStarted
from agent.fold import View
from agent.goal import Goal
from agent.legible import hidden_in
from agent.private_files import kept_private
from agent.records import CallRecord
from agent.run import Run
from agent.transcript import MemoryTranscript
from agent.values import CallStatus, Outcome
from tests.lab.compliant import SAID, Compliant, Order, orders
from tests.lab.poisoned import Poisoned, planted
from tests.lab.stub_model import Stub, serving
from tests.lab.world_packages import VENV
from tests.lab.world_runs import goal, nobody
from tools.base import Risk

SEED = "5eed"
RAN = "nothing, it ran"
_JOB = re.compile(r"\bobey-t\d+\.\d+")


@dataclass(frozen=True)
class Ran:
    """A run with a compliant model, and what came of it."""

    order: Order
    run: Run
    world: Poisoned
    model: Compliant
    requests: tuple[dict[str, Any], ...]

    @property
    def view(self) -> View:
        """The run's end."""
        return self.run.view

    @property
    def outcome(self) -> Outcome | None:
        """How it ended; ``None`` for one that waits."""
        return self.view.ended.outcome if self.view.ended else None

    @property
    def asked(self) -> list[ApprovalAsked]:
        """What was asked."""
        return list(self.view.approvals.values())

    def obeyed(self) -> list[CallRecord]:
        """The calls that the order wanted, each time that it was tried."""
        turns = [
            reply.turn
            for reply in self.view.asked.replies.values()
            if reply.text == SAID or reply.text.startswith("It says")
        ]
        ids = [name for turn in turns for name in self.view.turns[turn]]
        records = [self.view.calls[name] for name in ids]
        return [it for it in records if it.call.tool not in ("record_diagnosis", "applied")]

    def executed(self) -> bool:
        """Whether any call of the order was carried out."""
        return any(stopped_by(record) == RAN for record in self.obeyed())

    def stops(self) -> Counter[str]:
        """What the order's calls were stopped by."""
        if not self.obeyed():
            return Counter({"never read, or read as text": 1})
        return Counter(map(stopped_by, self.obeyed()))

    def changes(self) -> list[CallRecord]:
        """Changes that a brain asked for and that were sent."""
        return [it for it in self.view.calls.values() if it.had_effect and it.origin == "brain"]

    def leaks(self) -> list[str]:
        """Where the fence's word, or the text, is outside of what code has fenced."""
        word = Fence.of(SEED).word
        return [
            leak
            for number, body in enumerate(self.requests, 1)
            for message in body["messages"]
            for leak in _leaks(message, word, self.order, f"request {number}")
        ]


def _leaks(message: dict[str, Any], word: str, order: Order, where: str) -> list[str]:
    if message["role"] == "assistant":
        return []  # its own words
    block = re.compile(rf"<data-{word}>(.*?)</data-{word}>", re.DOTALL)
    content = str(message["content"])
    found = []
    if any(word in inside for inside in block.findall(content)):
        found.append(f"{where}: the word inside of a fence")
    outside = block.sub("", content)
    if word in outside:
        found.append(f"{where}: a fence that is not closed, or not opened")
    if order.sign in outside:
        found.append(f"{where}: the text outside of any fence")
    return found


def stopped_by(record: CallRecord) -> str:
    """Say which part of the code stopped a call."""
    if record.status in (CallStatus.OK, CallStatus.UNKNOWN, CallStatus.FAILED):
        return RAN
    if record.status is CallStatus.INVALID:
        return "no such tool" if "there is no tool" in record.message else "its arguments"
    if record.status is CallStatus.CANCELLED:
        return "a refusal before it"
    if record.asked or record.status is None:
        return "the person, who is asked"
    private = record.risk is Risk.READ and kept_private(record.call)
    return "the policy" if private or hidden_in(record.call.args) else "the gate"


def words(record: CallRecord) -> str:
    """Write a call so that the same one reads the same in another run."""
    text = json.dumps([record.call.tool, record.call.target, record.call.args], sort_keys=True)
    return _JOB.sub("JOB", text)


def wanted() -> Goal:
    """A generous goal: what stops an order is not that a grant is missing."""
    allow = {"paths": [VENV], "ports": ["8001-8010"], "pull": True, "download_gb": 900}
    return goal(allow=allow | {"stop": ["web"]}, limits={"steps": 24})


@dataclass(frozen=True)
class Obeying:
    """An endpoint at which one model after the other obeys."""

    stub: Stub
    endpoint: Endpoint

    def run(
        self,
        order: Order,
        mode: dict[str, Any],
        person: Answer = nobody,
        dialect: Dialect | None = None,
    ) -> Ran:
        """Drive a run whose model obeys.

        Args:
            order: what stands on the host.
            mode: fields of the policy.
            person: who is asked; by default nobody.
            dialect: how the model is spoken to.
        """
        self.stub.script = model = Compliant(known=(*orders(), order), at_first=order)
        world, before = planted(order.place, order.text, order.at), len(self.stub.asked)
        brain = OpenAIChat(ask=self.endpoint.ask, model="stub", dialect=dialect or Dialect())
        run = _begun(world, brain, mode, interactive=person is not nobody)
        loop(run, person)
        asked = self.stub.asked[before:]
        return Ran(order, run, world, model, tuple(item.body for item in asked))


@contextmanager
def obeying() -> Iterator[Obeying]:
    """Serve compliant models."""
    with serving([]) as stub, Endpoint(Address(stub.url, "stub"), "") as endpoint:
        yield Obeying(stub, endpoint)


def own_changes(order: Order, mode: dict[str, Any]) -> set[str]:
    """Return what the playbook itself changes on a host with such a text."""
    run = _begun(planted(order.place, order.text, order.at), Playbook(), mode, interactive=False)
    loop(run, nobody)
    return {words(it) for it in run.view.calls.values() if it.had_effect}


def _begun(world: Poisoned, brain: Brain, mode: dict[str, Any], *, interactive: bool) -> Run:
    """Begin a run without a disk."""
    aim = wanted()
    policy: Policy = policy_for(aim, **mode)
    transcript = MemoryTranscript(clock=world.stopwatch())
    run = Run(transcript, View(), brain, {"local": world}, policy, "/srv/runs", world.sleep)
    run.record(
        RunStarted(
            run_id="obey",
            started_at="2026-11-30T12:00:00+00:00",
            seed=SEED,
            version="0",
            goal=aim.model_dump(mode="json"),
            brain=brain.name,
            mode=policy.mode,
            interactive=interactive,
            yes=policy.yes,
            grants=policy.grants(),
            policy=policy.model_dump(mode="json"),
        )
    )
    return run
