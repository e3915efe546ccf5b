"""Runs goals for tests as the command line does, without a face."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent import approval, goal, session, settings
from agent.brains.base import Brain
from agent.brains.playbook import Playbook
from agent.engine import drive, stop_servers
from agent.events import ApprovalAsked
from agent.runs import new_run
from agent.session import Session


def free_port() -> int:
    """Return a port that nobody holds now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def serve_goal(folder: Path, venv: Path, **more: Any) -> goal.Goal:
    """Return a goal to serve ``folder/model`` from an environment; ``more`` replaces keys."""
    candidate = {"venv": str(venv), "engine": "transformers", "requirements": ["torch==2.13.0"]}
    data: dict[str, Any] = {
        "model": str(folder / "model"),
        "hosts": [{"name": "local", "address": "local", "python": sys.executable}],
        "candidates": [candidate | more.pop("candidate", {})],
        "port": free_port(),
        "options": {"device": "cpu"},
        "allow": {"paths": [str(venv)]},
        "limits": {"steps": 40, "minutes": 10},
        "on_interrupt": "stop",
    }
    return goal.parse_goal(data | more, base=folder, where="test")


Answers = Mapping[str, Any] | Callable[[ApprovalAsked], Any] | None
"""Answers by approval, or a function of what is asked; ``None``: nobody is there."""


def _given(answers: Answers, asked: list[ApprovalAsked]) -> dict[str, Any] | None:
    """Return the answers to what is asked now; ``None`` parks the run."""
    if callable(answers):
        found = {item.approval_id: answers(item) for item in asked}
    else:
        found = {item.approval_id: (answers or {}).get(item.approval_id) for item in asked}
    given = {name: answer for name, answer in found.items() if answer is not None}
    for item in asked:  # to a question of the brain's own, yes is its first choice
        answer = given.get(item.approval_id)
        if isinstance(answer, dict) and answer["answer"] == "yes" and "yes" not in item.choices:
            given[item.approval_id] = {**answer, "answer": item.choices[0]}
    return given or None


@contextlib.contextmanager
def driven(
    wanted: goal.Goal,
    folder: Path,
    *,
    mode: approval.Mode = "auto",
    brain: Brain | None = None,
    endpoint: Mapping[str, str] | None = None,
    answers: Answers = None,
    **policy: Any,
) -> Iterator[Session]:
    """Drive a goal to its end and hand the session over; what it started is stopped afterwards."""
    chosen = settings.load()
    begun = session.begin(
        wanted,
        approval.policy_for(wanted, mode, torch_index=chosen.torch_index, **policy),
        new_run(folder / "runs"),
        brain=brain or Playbook(),
        endpoint=endpoint,
        interactive=answers is not None,
        environ=settings.environment(),
    )
    try:
        drive(begun.run, lambda asked: _given(answers, asked), begun.checkpoint)
        yield begun
    finally:
        stop_servers(begun.run)
        begun.close()
