"""Asks a stub of a model's server, for tests of what comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agent.brains.address import Address
from agent.brains.endpoint import Answer, Endpoint
from agent.brains.failures import ModelFailed
from tests.lab.stub_model import Reply, Stub, said, serving

KEY = "sk-secret/secret+12345"
HELLO = said("Hello there", usage=(12, 3))
CALLS = said("Looking.", [("look", {"path": "/x"}), ("stop", {})], usage=(50, 20))


@contextmanager
def endpoint(url: str, key: str = KEY, model: str = "stub", **limits: float) -> Iterator[Endpoint]:
    with Endpoint(Address(url, model), key, **limits) as made:
        yield made


def ask(stub: Stub, *, stream: bool = True, url: str = "", **settings: Any) -> Answer:
    body = {"model": "stub", "messages": [{"role": "user", "content": "é"}], "stream": stream}
    with endpoint(url or stub.url, **settings) as made:
        return made.ask(json.dumps(body).encode(), stream=stream)


def failure_of(reply: Reply, **settings: Any) -> ModelFailed:
    with serving([reply, reply]) as stub, pytest.raises(ModelFailed) as caught:
        ask(stub, **settings)
    return caught.value
