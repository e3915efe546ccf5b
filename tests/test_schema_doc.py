"""The page about the transcript's format says what the models say."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import schema_doc
from agent.event import Event

PAGE = Path(__file__).parent.parent / "docs" / "transcript.md"


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == schema_doc.page(text), "run: python -m agent.schema_doc docs/transcript.md"


@pytest.mark.parametrize("kind", schema_doc.EVENTS)
def test_every_event_and_field_is_on_the_page(kind: type[Event]) -> None:
    name = kind.model_fields["type"].default
    section = PAGE.read_text(encoding="utf-8").partition(f"### `{name}`\n")[2].partition("\n#")[0]
    assert kind.__doc__ is not None
    assert kind.__doc__.splitlines()[0].replace("``", "`") in section
    own = set(kind.model_fields) - set(Event.model_fields) - {"type"}
    assert own == {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
