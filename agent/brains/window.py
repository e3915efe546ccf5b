"""How long a model's window is, as far as its server says so: every server says it elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from agent.brains.endpoint import Endpoint

_LISTED = ("max_model_len", "loaded_context_length", "context_length", "context_window")
"""In a row of ``/models``: vLLM and SGLang, LM Studio, OpenRouter and Together, Groq."""

_MOST = 10**9
"""Tokens that a window can have; what is more is no count of tokens."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window in tokens; 0 where nobody says."""

    tokens: int = 0
    at_most: int = 0
    """What the model was made for; the server may let it have less."""


def stated_window(endpoint: Endpoint) -> Window:
    """Ask the server's list of models, then the routes of those servers that do not list it.

    Where a server only loads a model when it is asked, it says more after a first request.
    """
    at_most = 0
    for look in (_listed, _llama_cpp, _lm_studio, _ollama, _ollama_file, _sglang, _tgi):
        found = look(endpoint)
        if found.tokens:
            return found
        at_most = at_most or found.at_most
    return Window(at_most=at_most)


def _listed(endpoint: Endpoint) -> Window:
    row = _row(endpoint.models(), endpoint.address.model)
    provider = row.get("top_provider")
    told = _first(provider, "context_length") or _first(row, *_LISTED)
    return Window(told, _first(row.get("meta"), "n_ctx_train") or _first(row, "max_context_length"))


def _llama_cpp(endpoint: Endpoint) -> Window:
    props = endpoint.get("/props")
    settings = props.get("default_generation_settings") if isinstance(props, dict) else None
    return Window(_first(settings, "n_ctx"))


def _lm_studio(endpoint: Endpoint) -> Window:
    row = _row(_rows(endpoint.get("/api/v0/models"), "data"), endpoint.address.model)
    return Window(_first(row, "loaded_context_length"), _first(row, "max_context_length"))


def _ollama(endpoint: Endpoint) -> Window:
    row = _row(_rows(endpoint.get("/api/ps"), "models"), endpoint.address.model)
    return Window(_first(row, "context_length"))


def _ollama_file(endpoint: Endpoint) -> Window:
    """Read a model file: what it sets counts, what the model was made for is an upper bound."""
    if not isinstance(endpoint.get("/api/version"), dict):
        return Window()  # what is posted to another server might be taken for a request
    shown = endpoint.get("/api/show", {"model": endpoint.address.model})
    if not isinstance(shown, dict):
        return Window()
    set_there = re.search(r"(?m)^num_ctx\s+(\d{1,9})", str(shown.get("parameters", "")))
    info = shown.get("model_info")
    made_for = [
        _first(info, key)
        for key in (info if isinstance(info, dict) else {})
        if str(key).endswith(".context_length")
    ]
    return Window(int(set_there[1]) if set_there else 0, max(made_for, default=0))


def _sglang(endpoint: Endpoint) -> Window:
    for path in ("/get_server_info", "/get_model_info"):
        told = _first(endpoint.get(path), "context_length", "max_context_length", "max_model_len")
        if told:
            return Window(told)
    return Window()


def _tgi(endpoint: Endpoint) -> Window:
    return Window(_first(endpoint.get("/info"), "max_total_tokens"))


def _first(row: Any, *keys: str) -> int:
    """Return the first of these that is a count of tokens."""
    for key in keys if isinstance(row, dict) else ():
        value = row.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST:
            return value
    return 0


def _rows(data: Any, key: str) -> list[dict[str, Any]]:
    rows = data.get(key) if isinstance(data, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _row(rows: list[dict[str, Any]], model: str) -> dict[str, Any]:
    """Return the model's row: by its name, with or without a tag; or the only one."""
    for same in _ways(model):
        for row in rows:
            if any(same(str(row.get(key, ""))) for key in ("id", "name", "model")):
                return row
    return rows[0] if len(rows) == 1 else {}


def _ways(model: str) -> Iterator[Callable[[str], bool]]:
    yield lambda name: name == model
    yield lambda name: name.partition(":")[0] == model
