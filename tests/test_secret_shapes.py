"""A pattern is only tried where one of its hints is seen, and no secret slips through by that."""

from __future__ import annotations

import itertools
import json

import pytest

from agent.redact import Redactor
from agent.secret_forms import SHAPES, hints_in

BEFORE = ("", "x ", "{'", '{"', '{\\"', "export ", "--", "--db-", "--hf-api-", "Authorization: ")
NAMES = (
    "API_KEY",
    "HF_TOKEN",
    "DB_PASSWORD",
    "X_PASSWD",
    "A_SECRET",
    "MY_KEY",
    "TOKEN",
    "PGPASSWORD",
)
WORDS = (
    "password",
    "token",
    "secret",
    "api-key",
    "auth",
    "Bearer",
    "basic",
    "https://u",
    "gh",
    "sk-",
)
BETWEEN = ("=", ": ", "': '", '": "', '\\": \\"', '\\\\\\": \\\\\\"', " ", '="', ":", "p_")
VALUES = ("canary99", "dXNlcjpjYW5hcnk=", "p4ss@host", "0123456789abcdefABCDEF0123456789abcd")
TEXTS = ["".join(parts) for parts in itertools.product(BEFORE, (*NAMES, *WORDS), BETWEEN, VALUES)]


@pytest.mark.parametrize("place", range(len(SHAPES)))
def test_where_a_pattern_matches_there_is_a_hint(place: int) -> None:
    hints, pattern = SHAPES[place]
    for text in TEXTS:
        assert not pattern.search(text) or not hints_in(text).isdisjoint(hints), text


def test_the_texts_are_worth_trying() -> None:
    tried = [pattern for _, pattern in SHAPES if any(map(pattern.search, TEXTS))]
    assert len(tried) > 7


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("--db-password canary99", "canary99"),
        ("{'OPENAI_API_KEY': 'canary99'}", "canary99"),
        (json.dumps('{"OPENAI_API_KEY": "canary99"}'), "canary99"),
        ("DB_PASSWD: canary99", "canary99"),
        (json.dumps(json.dumps('{"auth": "dXNlcjpjYW5hcnk="}')), "dXNlcjpjYW5hcnk="),
    ],
)
def test_a_secret_in_another_spelling_is_seen_too(text: str, secret: str) -> None:
    assert secret not in Redactor({}, {}).redact(f"a {text} b")
