"""Draws the README's picture and excerpt from a recorded run: ``python -m tests.lab.picture``."""

from __future__ import annotations

import io
import re

from rich.console import Console

from agent import events as e
from agent.console import LiveFace
from agent.transcript import read
from agent.visible import cut
from tests.lab.checkout import ROOT

SOURCE = ROOT / "transcripts" / "story_a_demo.jsonl"
PICTURE = ROOT / "docs" / "demo.svg"
README = ROOT / "README.md"
WIDTH = 88
EXCERPT = re.compile(r"(?<=```text\n).*?(?=```)", re.DOTALL)
TOOLS = ("config_probe", "pip_resolve", "pip_install", "start_server", "watch_server", "chat_check")
"""Calls that the excerpt tells of, each once."""


def picture() -> str:
    """Play the run through the live face and return what it drew, as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, height=40)
    with LiveFace(console) as face, face.paused():  # the live region is gone in the end
        for event in read(SOURCE).events:
            face.on_event(event)
    return console.export_svg(title="bringup demo")


def excerpt() -> str:
    """Return ten lines of the run: its calls, the diagnosis, the fix, its end."""
    rows: list[str] = []
    told: set[str] = set()
    for event in read(SOURCE).events:
        words = _words(event, told)
        if words:
            rows.append(cut(f"{event.t:5.1f}s {event.id:<5}{event.type:<11} {words}", WIDTH + 12))
    return "\n".join(rows) + "\n"


def _words(event: e.AnyEvent, told: set[str]) -> str:
    if isinstance(event, e.CallEnded) and event.tool in TOOLS and event.tool not in told:
        told.add(event.tool)
        return f"{event.tool}: {event.message}"
    if isinstance(event, e.DiagnosisRecorded):
        return f"{event.diagnosis_id} {event.kind}: {event.cause} [{', '.join(event.evidence)}]"
    if isinstance(event, e.FixOpened):
        return f"{event.fix_id} of {event.diagnosis_id}, on {event.subject}"
    if isinstance(event, e.FixClosed):
        return f"{event.fix_id} {event.verdict}: {event.before} is gone"
    if isinstance(event, e.RunEnded):
        return f"{event.outcome}, exit {event.exit_code}: {event.summary}"
    return ""


def main() -> None:
    """Write both."""
    PICTURE.write_text(picture(), encoding="utf-8")
    text = README.read_text(encoding="utf-8")
    README.write_text(EXCERPT.sub(lambda _: excerpt(), text, count=1), encoding="utf-8")


if __name__ == "__main__":
    main()
