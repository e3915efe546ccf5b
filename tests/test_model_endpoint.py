"""Asking a model over real HTTP: where it is, what is sent, what there is besides."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent.brains.address import Address, root_of, shown
from agent.brains.endpoint import Endpoint
from agent.brains.failures import Kind, ModelFailed
from agent.brains.reading import ReplyReader
from agent.problems import Problem
from tests.lab.stub_model import refused, serving
from tests.model_client import HELLO, KEY, ask, endpoint

# Addresses


@pytest.mark.parametrize(
    "tail", ["", "/", "/v1", "/v1/", "/v1/chat/completions", "/v1/models", "//v1//"]
)
def test_every_way_to_write_the_address_reaches_the_same(tail: str) -> None:
    with serving([HELLO]) as stub:
        assert ask(stub, url=stub.root + tail).response["choices"]
        assert [asked.path for asked in stub.asked] == ["/v1/chat/completions"]
        assert stub.looked == []


@pytest.mark.parametrize(
    ("given", "bases"),
    [
        ("https://api.openai.com/v1", ["https://api.openai.com/v1"]),
        ("https://api.deepseek.com", ["https://api.deepseek.com/v1", "https://api.deepseek.com"]),
        ("https://ark.example/api/v3/", ["https://ark.example/api/v3"]),
        ("https://g.example/v1beta/openai/", ["https://g.example/v1beta/openai"]),
        ("https://x.openai.azure.com/openai/v1/", ["https://x.openai.azure.com/openai/v1"]),
        ("https://h.example/llm", ["https://h.example/llm/v1", "https://h.example/llm"]),
        ("https://h.example/inference/chat/completions", ["https://h.example/inference"]),
        ("localhost:8000", ["http://localhost:8000/v1", "http://localhost:8000"]),
        ("10.0.0.5:8000/v1", ["http://10.0.0.5:8000/v1"]),
        ("[::1]:8000/v1", ["http://[::1]:8000/v1"]),
        ("api.example.com/v1", ["https://api.example.com/v1"]),
        (" http://h:1/v1\n", ["http://h:1/v1"]),
        ("http://h:1/v1?api-version=1", ["http://h:1/v1"]),
    ],
)
def test_addresses_are_completed(given: str, bases: list[str]) -> None:
    assert list(Address(given, "m").bases()) == bases


@pytest.mark.parametrize("given", ["", "ftp://h/v1", "http://", "http://h:99999/v1", "http://[::1"])
def test_what_is_no_address_is_said_to_be_none(given: str) -> None:
    with pytest.raises(Problem, match="not an address of a server; write it as http://HOST:PORT"):
        Endpoint(Address(given, "m"), "")


def test_roots_and_what_is_shown() -> None:
    assert root_of("http://h/openai/v1") == "http://h"
    assert root_of("http://h/v1beta/openai") == "http://h"
    assert root_of("http://h/llm/v1") == "http://h/llm"
    assert shown("http://user:pass@h/v1?key=s3cret") == "http://h/v1"


def test_a_server_without_version_in_its_paths_is_found_and_remembered() -> None:
    with serving([HELLO, HELLO], base="/llm") as stub, endpoint(stub.root + "/llm") as made:
        for _ in range(2):
            made.ask(b"{}", stream=False)
        assert [asked.path for asked in stub.looked] == ["/llm/v1/chat/completions"]
        assert len(stub.asked) == 2


def test_a_query_goes_along() -> None:
    with serving([HELLO]) as stub:
        ask(stub, url=f"{stub.url}?api-version=2024-10-21")
        assert stub.asked[0].path == "/v1/chat/completions?api-version=2024-10-21"


# What is sent


def test_the_body_is_sent_as_it_is_and_once() -> None:
    body = b'{"model": "stub",  "messages": [], "x-own": 1e3}'
    with serving([HELLO]) as stub, endpoint(stub.url) as made:
        made.ask(body, stream=False)
        [asked] = stub.asked
        assert asked.raw == body
        assert asked.headers["content-type"] == "application/json"
        assert asked.headers["authorization"] == f"Bearer {KEY}"


def test_without_a_key_none_is_looked_for_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-vendor")
    with serving([HELLO]) as stub:
        ask(stub, key="")
        assert stub.asked[0].headers["authorization"] == "Bearer none"


@pytest.mark.parametrize("key", ["sk-two\nlines", "sk-\u2013dash", "\x00"])
def test_a_key_that_cannot_be_one_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(Problem) as caught:
        Endpoint(Address("http://127.0.0.1:1/v1", "m"), key)
    assert "sk-" not in str(caught.value)


def test_loopback_goes_through_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with serving([HELLO]) as stub:
        assert ask(stub).response["choices"]


def test_others_go_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with serving([]) as stub:
        monkeypatch.setenv("HTTP_PROXY", stub.root)
        monkeypatch.setenv("http_proxy", stub.root)
        with pytest.raises(ModelFailed):
            ask(stub, url="http://models.invalid:8000/v1")
        assert stub.asked[0].path == "http://models.invalid:8000/v1/chat/completions"


def test_nothing_heavy_is_imported_before_a_model_is_asked() -> None:
    code = (
        "import sys, agent.brains.endpoint, agent.brains.patience, agent.brains.selftest\n"
        "print([m for m in ('openai', 'httpx', 'httpx2', 'tenacity') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert out.stdout == "[]\n", out.stderr


# Models


LIST = {"object": "list", "data": [{"id": "qwen3-32b"}, {"id": "qwen3-8b"}, {"id": "embed"}]}


def test_a_model_that_is_not_there_has_its_neighbours_named() -> None:
    reply = refused(404, "The model `qwen-32b` does not exist.")
    routes = {"/v1/models": LIST}
    with (
        serving([reply], routes=routes) as stub,
        pytest.raises(
            ModelFailed, match=r"^no model 'qwen-32b' there: .*; it has qwen3-32b, "
        ) as e,
    ):
        ask(stub, model="qwen-32b")
    assert e.value.failure.kind is Kind.NOT_FOUND
    assert len(str(e.value)) <= 600


def test_a_missing_path_does_not_speak_of_models() -> None:
    with serving([], base="/elsewhere", routes={"/v1/models": LIST}) as stub:
        with pytest.raises(
            ModelFailed, match=r"HTTP 404: Not Found .*check the base URL"
        ) as caught:
            ask(stub, url=stub.root, model="embed")
        assert "no model" not in str(caught.value)


@pytest.mark.parametrize(
    ("listed", "rows"),
    [
        (LIST, LIST["data"]),
        ([{"id": "a"}, "b"], [{"id": "a"}]),
        ({"models": [{"name": "a"}]}, [{"name": "a"}]),
        ({"data": None}, []),
        ((404, {}, ""), []),
        ((200, {}, "<html>"), []),
        ((401, {}, "{}"), []),
        ("[" * 99999, []),
    ],
)
def test_models_are_listed_where_the_server_says(listed: Any, rows: list[Any]) -> None:
    reply = (200, {}, listed) if isinstance(listed, str) else listed
    with serving([], routes={"/v1/models": reply}) as stub, endpoint(stub.url) as made:
        assert made.models() == rows


def test_own_routes_are_below_the_root() -> None:
    routes: dict[str, Callable[..., Any] | dict[str, Any]] = {
        "/props": {"a": 1},
        "/api/show": lambda asked: {"method": asked.method, "sent": asked.body},
    }
    with serving([], routes=routes) as stub, endpoint(stub.url) as made:
        assert made.get("/props") == {"a": 1}
        assert made.get("/api/show", {"model": "m"}) == {"method": "POST", "sent": {"model": "m"}}
        assert made.get("/nothing") is None


def test_no_reply_is_read_without_end() -> None:
    def pieces() -> Iterator[bytes]:
        while True:
            yield b"x" * 1000

    with pytest.raises(ModelFailed, match="more than 10,000 bytes"):
        ReplyReader(largest=10_000).read(pieces())
