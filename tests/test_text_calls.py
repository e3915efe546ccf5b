"""Calls that a server left in the reply's text: every format, and what is no call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.brains.names import Toolbox
from agent.brains.text_calls import find_calls
from tests.offered import OFFERED

CASES = yaml.safe_load((Path(__file__).parent / "dialects" / "text_calls.yaml").read_text("utf-8"))
TOOLBOX = Toolbox(OFFERED)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_text(case: dict[str, Any]) -> None:
    found = find_calls(case["text"], TOOLBOX, cut_off=case.get("cut_off", False))
    said = [[call.name, call.args] for call in found.calls]
    assert said == case.get("calls", [])
    assert found.text == case.get("left", "")
    assert found.attempted == case.get("attempted", "")
    if "form" in case:
        assert found.form == case["form"]
    problems = "".join(call.problem for call in found.calls)
    assert case.get("problem", "") in problems
    assert bool(problems) == ("problem" in case)
