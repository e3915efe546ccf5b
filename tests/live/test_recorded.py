"""The recorded replies show what they are kept for."""

from __future__ import annotations

import json

import pytest

from tests.live.record import OUT
from tests.live.replies import Reply
from tests.live.wanted import WANTED

KEPT = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in OUT.glob("*.json")}


def test_all_are_kept() -> None:
    assert set(KEPT) == set(WANTED)


@pytest.mark.parametrize("name", sorted(KEPT))
def test_it_shows_what_it_is_for(name: str) -> None:
    kept, wanted = KEPT[name], WANTED[name]
    reply = Reply(kept["status"], kept["content_type"], kept["body"])
    assert wanted.shows(reply)
    assert kept["about"] == wanted.about
    assert kept["request"]["messages"] == wanted.messages
    assert kept["request"].items() >= wanted.request.items()
