"""One glance at a value's JSON sees whatever walking through the value would find."""

from __future__ import annotations

import random

import pytest

from agent.harmless import written
from agent.redact import Redactor
from tests.test_redact import DIGESTS, PATHS, SECRET, forms

SECRETS = {"HF_TOKEN": SECRET, "SHORT": "root", "PLAIN": "hunter22"}
TELLING = (
    *(*forms(SECRET).values(), *forms("hunter22").values(), *DIGESTS, *PATHS.values()),
    *("--api-key", "a\udcffb", "hf_" + "a" * 20, "Looking in indexes: x", "[" * 99),
)
BETWEEN = ("", "\\n", "\f", "\n", "\\", '"', "\t", "\0", "\x1b[0m", "\x7f", "\b", "é", "n", "/")


def test_one_glance_sees_what_walking_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of harmless and telling pieces come out alike, whether glanced at or only walked."""
    redactor, walking = (Redactor(SECRETS, PATHS) for _ in range(2))
    monkeypatch.setattr(walking, "_harmless", lambda text: False)
    dice = random.Random(7)  # noqa: S311
    glanced = 0
    for _ in range(1000):
        pieces = dice.choices(BETWEEN, k=3) + dice.choices(TELLING, k=dice.randrange(2))
        dice.shuffle(pieces)
        text = "".join(pieces)
        value = dice.choice([[text], {text: 1}, {"a": [text, 1, None, {"b": (text, True)}]}])
        glanced += redactor.leaves(written(value) or "\\\\")
        assert redactor.redact(value) == walking.redact(value), value
    assert 100 < glanced < 800
