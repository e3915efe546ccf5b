"""A run that notes each command it sends, and a script that sends the same ones again."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from agent import approval, session, settings
from agent.brains.playbook import Playbook
from agent.connect import connector_to
from agent.engine import drive, stop_servers
from agent.events import AnyEvent
from agent.goal import Goal
from agent.runs import new_run
from agent.values import Outcome
from tests.lab.story import Yes
from tools.command import Command, OnOutput, Result
from tools.connectors.base import Connector


@dataclass(frozen=True, slots=True)
class Sent:
    """A command as the connector got it, and what came back."""

    command: Command
    result: Result


Line = Sent | float
"""A line of a script: a command, or a wait in seconds."""


class Noted:
    """A connector that writes down what goes through it."""

    def __init__(self, inner: Connector) -> None:
        self.name = inner.name
        self.script: list[Line] = []
        self._inner = inner

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        """Pass it on; see ``Connector.run``."""
        result = self._inner.run(command, on_output)
        self.script.append(Sent(command, result))
        return result

    def sleep(self, seconds: float) -> None:
        """Wait as a run does between two looks; a script has to wait as well."""
        self.script.append(seconds)
        time.sleep(seconds)

    def close(self) -> None:
        """Close what is inside."""
        self._inner.close()


@dataclass(frozen=True, slots=True)
class Played:
    """A run that reached its goal."""

    seconds: float
    """From before it begins until it has ended."""
    script: list[Line]
    events: list[AnyEvent]


def play(goal: Goal, folder: Path) -> Played:
    """Drive a goal on one host as the command line does, with yes to every question.

    Raises:
        RuntimeError: it did not reach its goal, so it is no figure.
    """
    folder.mkdir()
    begin = time.perf_counter()
    begun = session.begin(
        goal,
        approval.policy_for(goal, "supervised"),
        new_run(folder),
        brain=Playbook(),
        interactive=True,
        environ=settings.environment(),
    )
    ((name, connector),) = begun.run.connectors.items()
    noted = Noted(connector)
    begun.run.connectors, begun.run.sleep = {name: noted}, noted.sleep
    yes = Yes()
    try:
        outcome = drive(
            begun.run, lambda asked: {a.approval_id: yes.get("") for a in asked}, begun.checkpoint
        )
        seconds = time.perf_counter() - begin
        script, events = list(noted.script), list(begun.transcript.events)
        if outcome is not Outcome.READY:
            raise RuntimeError(f"the run ended {outcome}: {begun.run.view.ended}")
        stop_servers(begun.run)
    finally:
        begun.close()
        shutil.rmtree(folder)
    return Played(seconds, script, events)


def send_again(goal: Goal, script: list[Line]) -> float:
    """Send the same commands, one after the other, over one new connection; return the seconds.

    Raises:
        RuntimeError: one of them ended in another way: not the same was done.
    """
    begin = time.perf_counter()
    connector = connector_to(goal.hosts[0])
    try:
        for line in script:
            if isinstance(line, float):
                time.sleep(line)
                continue
            result = connector.run(line.command)
            if (result.ending, result.code) != (line.result.ending, line.result.code):
                shown = line.command.text[:200]
                raise RuntimeError(
                    f"{shown}: {result.how} and not {line.result.how}\n{result.tail}"
                )
        return time.perf_counter() - begin
    finally:
        connector.close()
