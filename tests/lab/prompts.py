"""Writes what a model is shown, as golden files: ``python -m tests.lab.prompts``.

The tools' schemas, and the messages at chosen turns of recorded runs; a change of a prompt, a tool
or a result's rendering shows as a diff there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent.brains.base import Request
from agent.brains.briefing import now
from agent.brains.dialect import Dialect
from agent.brains.projection import Projection
from agent.brains.render import Fence
from agent.brains.schemas import schemas
from agent.brains.suggestions import suggest
from agent.brains.texts import template
from agent.fold import View
from agent.frontier import frontier
from agent.replay import elsewhere
from agent.transcript import read
from tests.lab.checkout import ROOT

FOLDER = ROOT / "tests" / "prompts"
TURNS = {"story_a_demo": 3, "refused": 4, "story_a_spark": 9}
"""Recorded runs, and the turn that is asked for."""


def view_before(name: str, turn: int) -> View:
    """Return a recorded run as it was when a turn was asked for."""
    recorded = read(ROOT / "transcripts" / f"{name}.jsonl").events
    redactor = elsewhere(recorded)
    view = View()
    for event in recorded:
        if event.type == "request" and event.turn == turn:
            break
        view.apply(redactor.restore(event))
    return view


def projected(view: View, dialect: Dialect, *, facts: bool = False) -> list[dict[str, Any]]:
    """Return the messages of the next request."""
    fence = Fence.of(view.header.seed if view.header else "")
    system = template("system").substitute(fence=fence.word, tools="")
    projection = Projection(view, system.strip(), dialect, fence)
    projection.update()
    request = Request(view, frontier(view))
    messages: list[dict[str, Any]] = json.loads(
        projection.body(now(request, suggest(request), fence, facts=facts))
    )
    return messages


def as_text(messages: list[dict[str, Any]]) -> str:
    """Write messages for people to read."""
    rows: list[str] = []
    for message in messages:
        rows.append(f"--- {message['role']} {message.get('tool_call_id', '')}".rstrip())
        rows.append(message["content"] or "")
        rows += [
            f"call {call['id']} {call['function']['name']} {call['function']['arguments']}"
            for call in message.get("tool_calls", ())
        ]
    return "\n".join(line.rstrip() for row in rows for line in row.split("\n")) + "\n"


def pages() -> dict[Path, str]:
    """Return every golden file with what it should say."""
    tools = json.dumps(schemas(), indent=1, ensure_ascii=False)
    found = {FOLDER / "tools.json": f"{tools}\n"}
    for name, turn in TURNS.items():
        messages = projected(view_before(name, turn), Dialect())
        found[FOLDER / f"{name}_{turn}.txt"] = as_text(messages)
    return found


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
