"""One run of N steps with the openai brain and a target that answers at once.

``python -m tests.bench.chat_case STEPS FOLDER PORT FORM CONTEXT`` prints its figures as one JSON
line. All is real but the target and the model: graph, checkpoints, synced transcript, redaction,
projection of the messages, the client and its connection.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent import approval, engine, goal, runs, session
from agent.brains.dialect import Dialect
from agent.brains.endpoint import Address, Endpoint
from agent.brains.openai_chat import OpenAIChat
from agent.brains.talk import Options
from agent.interrupts import terminable
from agent.redact import Redactor, secrets_of
from agent.values import Outcome
from tests.bench.episode import SECRETS
from tests.bench.fake_endpoint import LEAD
from tests.bench.rounds import Figures
from tests.bench.target import Instant


def chat(steps: int, folder: Path, port: int, form: str, context: int) -> Figures:
    """Drive a run as the command line does.

    Raises:
        RuntimeError: it did not take all its steps.
    """
    wanted = goal.parse_goal(
        {
            "model": "/srv/models/tiny",
            "candidates": [{"venv": "/srv/env"}],
            "limits": {"steps": steps + 10, "minutes": 60, "tokens": 10**9},
        },
        base=folder,
        where="bench",
    )
    address = Address(f"http://127.0.0.1:{port}/v1", "bench")
    endpoint = Endpoint(address, SECRETS["API_KEY"])
    clocks: list[float] = []
    brain = OpenAIChat(
        ask=_clocked(endpoint.ask, clocks),
        model=address.model,
        dialect=Dialect(streams=form == "stream"),
        clean=Redactor(secrets_of(SECRETS), {}).redact,
        options=Options(context_tokens=context),
        close=endpoint.close,
    )
    begun = session.begin(
        wanted,
        approval.policy_for(wanted, "auto"),
        runs.new_run(folder, name="run"),
        brain=brain,
        endpoint={"base_url": address.base_url, "model": address.model},
        interactive=False,
        environ=SECRETS,
    )
    begun.run.connectors = {host.name: Instant() for host in wanted.hosts}
    try:
        with terminable():
            outcome = engine.drive(begun.run, lambda _: None, begun.checkpoint)
    finally:
        begun.close()
    if outcome is not Outcome.NOT_REACHED or len(clocks) != steps + LEAD + 1:
        raise RuntimeError(f"a run of {steps} steps ended {outcome} after {len(clocks)}")
    return processor(clocks)


def _clocked(ask: Callable[..., Any], clocks: list[float]) -> Callable[..., Any]:
    """Note the processor's clock whenever the model is asked."""

    def clocked(*words: Any, **more: Any) -> Any:
        clocks.append(time.process_time())
        return ask(*words, **more)

    return clocked


def processor(clocks: list[float]) -> Figures:
    """Return processor time a step in ms, and the most memory that was held in MB."""
    used = clocks[-1] - clocks[LEAD]
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1e-6 if sys.platform == "darwin" else 1e-3
    return {"cpu_ms": 1e3 * used / (len(clocks) - 1 - LEAD), "rss_mb": most * unit}


if __name__ == "__main__":
    number, place, where, shape, window = sys.argv[1:]
    measured = chat(int(number), Path(place), int(where), shape, int(window))
    sys.stdout.write(json.dumps(measured) + "\n")
