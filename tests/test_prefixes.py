"""A run that broke off anywhere can be taken up: every prefix of a run says what comes next."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.fold import View
from agent.frontier import frontier
from agent.phases import Phase, phase
from agent.replay import elsewhere
from agent.report import build, outcome_of
from agent.transcript import read
from tests.lab.checkout import ROOT

TRANSCRIPTS = sorted((ROOT / "transcripts").glob("*.jsonl"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_every_prefix_says_what_comes_next(path: Path) -> None:
    events = read(path).events
    redactor = elsewhere(events)
    view = View()
    seen = set()
    for event in events:
        view.apply(redactor.restore(event))
        now = phase(view)
        seen.add(now)
        if now is Phase.DECIDE:
            assert frontier(view).kind in {"look", "diagnose", "advance", "done"}
        assert build(view, outcome_of(view))["model"]
    assert now is Phase.END
    assert {Phase.SURVEY, Phase.DECIDE, Phase.ACT, Phase.REPORT} <= seen
