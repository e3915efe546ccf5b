"""The self-test finds the true window, whatever the server says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.brains.dialect import Dialect
from agent.brains.failures import ModelFailed
from agent.brains.selftest import examine
from tests.lab.stub_model import Reply, refused
from tests.model_server import (
    GOOD,
    TEXT_CALLS,
    Model,
    examined,
    listed,
    served,
)

OLLAMA = {"models": [{"name": "m:latest", "model": "m:latest", "context_length": 20_480}]}
VERSION = {"/api/version": {"version": "0.12.0"}}
SHOWN = {"model_info": {"qwen3.context_length": 40_960}}


@pytest.mark.parametrize(
    ("routes", "window"),
    [
        (listed(max_model_len=32_768), 32_768),
        (listed(context_length=200_000), 200_000),
        (listed(context_window=131_072), 131_072),
        (listed(context_length=200_000, top_provider={"context_length": 65_536}), 65_536),
        (listed(meta={"n_ctx_train": 131_072}), 131_072),
        (
            listed(meta={"n_ctx_train": 131_072})
            | {"/props": {"default_generation_settings": {"n_ctx": 16_384}}},
            16_384,
        ),
        ({"/api/v0/models": {"data": [{"id": "m", "loaded_context_length": 24_000}]}}, 24_000),
        ({"/api/ps": OLLAMA, "/api/show": SHOWN}, 20_480),
        (VERSION | {"/api/show": {"parameters": "num_ctx    24576\n"}}, 24_576),
        (VERSION | {"/api/ps": {"models": []}, "/api/show": SHOWN}, 40_960),
        ({"/api/show": SHOWN}, 0),
        ({"/get_server_info": {"context_length": 28_000}}, 28_000),
        ({"/info": {"max_total_tokens": 16_384}}, 16_384),
        ({"/v1/models": {"data": [{"id": "other"}, {"id": "third"}]}}, 0),
        (listed(max_model_len=True, context_length="many"), 0),
        ({"/props": [], "/api/ps": {"models": "x"}, "/api/show": [], "/info": 7}, 0),
        (listed(max_model_len=10**400, meta={"n_ctx_train": 10**300}), 0),
        ({}, 0),
    ],
)
def test_what_the_server_says_of_its_window_is_taken(
    routes: dict[str, Any], window: int, tmp_path: Path
) -> None:
    dialect = examined(Model(), tmp_path, routes=routes)
    assert dialect.context_tokens == window
    assert dialect.notes == ()


@pytest.mark.parametrize("plain", [3.3, 4.0, 4.4, 5.0])
@pytest.mark.parametrize("routes", [{}, VERSION | {"/api/show": SHOWN}])
def test_a_silent_cut_is_noticed(plain: float, routes: dict[str, Any], tmp_path: Path) -> None:
    dialect = examined(Model(window=4096, cuts=True, plain=plain), tmp_path, routes=routes)
    assert dialect.context_tokens == 4096
    assert "cuts long requests without a word" in dialect.notes[0]
    assert "window is 4,096 tokens, which is little" in dialect.notes[1]


@pytest.mark.parametrize("plain", [2.0, 3.0, 3.3, 4.0, 4.4, 5.0, 5.6])
@pytest.mark.parametrize("calls", [GOOD, []])
def test_no_cut_is_seen_where_there_is_none(
    plain: float, calls: list[tuple[str, Any]], tmp_path: Path
) -> None:
    text = "" if calls else TEXT_CALLS
    dialect = examined(Model(plain=plain, in_text=text), tmp_path)
    assert dialect.context_tokens == 0
    assert not [note for note in dialect.notes if "cut" in note]


def test_an_overflow_names_the_window(tmp_path: Path) -> None:
    dialect = examined(Model(window=4000), tmp_path)
    assert dialect.context_tokens == 4000
    assert any("4,000 tokens, which is little" in note for note in dialect.notes)


def test_an_overflow_without_a_number_is_below_what_was_sent(tmp_path: Path) -> None:
    words = "prompt too long; exceeded max context length by 9 tokens"
    dialect = examined(Model(window=4000, limit_words=words), tmp_path)
    assert 3000 < dialect.context_tokens < 5000


@pytest.mark.parametrize("window", [2100, 2600, 4096, 5000])
def test_the_filler_is_made_to_fit(window: int, tmp_path: Path) -> None:
    model = Model(window=window)
    dialect = examined(model, tmp_path, routes=listed(max_model_len=window))
    assert dialect.context_tokens == window
    assert model.tokens(model.seen[-1]) + 512 <= window


def test_where_nothing_is_counted_the_first_word_tells(tmp_path: Path) -> None:
    fine = examined(Model(counts=False), tmp_path / "fine")
    assert fine.chars_per_token == Dialect().chars_per_token
    assert len(fine.notes) == 1
    assert "counts no tokens" in fine.notes[0]
    cut = examined(Model(counts=False, forgets=True), tmp_path / "cut")
    assert "may cut long requests" in cut.notes[1]
    assert cut.context_tokens == 0


def test_a_long_request_that_fails_otherwise_is_a_note(tmp_path: Path) -> None:
    def refuse(body: dict[str, Any]) -> Reply | None:
        return refused(503, "out of memory") if "kestrel" in str(body) else None

    dialect = examined(Model(refuses=(refuse,)), tmp_path)
    assert "window was not checked" in dialect.notes[0]
    assert dialect.native_tools
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_breaks_down_in_between_is_raised(tmp_path: Path) -> None:
    model = Model()
    model.refuses = (lambda _: refused(503, "busy") if len(model.seen) > 1 else None,)
    with served(model) as (_, endpoint), pytest.raises(ModelFailed, match="after 3 attempts"):
        examine(endpoint, cache=tmp_path, sleep=lambda _: None)
    assert list(tmp_path.iterdir()) == []
