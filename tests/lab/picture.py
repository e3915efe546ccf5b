"""Draws the README's picture from a recorded run: ``python -m tests.lab.picture``."""

from __future__ import annotations

import io

from rich.console import Console

from agent.console import LiveFace
from agent.transcript import read
from tests.lab.checkout import ROOT

SOURCE = ROOT / "transcripts" / "story_a_demo.jsonl"
PICTURE = ROOT / "docs" / "demo.svg"
WIDTH = 88


def main() -> None:
    """Play the run through the live face and keep what it drew."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, height=40)
    with LiveFace(console) as face:
        with face.paused():  # without the live region, which is gone in the end
            for event in read(SOURCE).events:
                face.on_event(event)
    PICTURE.write_text(console.export_svg(title="bringup demo"), encoding="utf-8")


if __name__ == "__main__":
    main()
