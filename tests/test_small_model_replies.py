"""What a small real model's server once answered, word for word, is read as it was meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.brains.address import Address
from agent.brains.dialects import NotAReply, parse
from agent.brains.endpoint import Endpoint
from agent.brains.failures import ModelFailed
from agent.brains.schemas import schemas
from tests.lab.checkout import ROOT
from tests.lab.stub_model import serving

RECORDED = sorted((ROOT / "tests" / "dialects" / "smollm2").glob("*.json"))
CALLS = {
    "arguments_are_a_list": ("read_file",),
    "broken_call": None,
    "broken_call_streamed": None,
    "broken_history": None,
    "call": ("read_file",),
    "call_after_result": ("port_owner",),
    "call_and_text_streamed": ("port_owner",),
    "call_cut_off_streamed": (),
    "call_in_text": ("read_file",),
    "call_in_text_cut_off": (),
    "call_in_text_streamed": ("read_file",),
    "call_streamed": ("read_file",),
    "calls": ("give_up", "port_owner"),
    "code_instead": (),
    "error_streamed": None,
    "invented_result": (),
    "nothing": (),
    "only_told": (),
    "other_model": None,
    "repeats_itself": (),
    "text": (),
    "text_streamed": (),
    "tools_not_shown": (),
    "unknown_field": None,
    "unknown_tool": ("free",),
    "unknown_tool_in_text": (),
    "wrong_argument_in_text": ("port_owner",),
}
"""Tools that are called, by file; ``None``: the server refuses."""


def read(path: Path) -> tuple[str, ...] | None:
    """Return the names of the calls of a recorded answer; ``None`` where it is a refusal."""
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    tools = kept["request"].get("tools") or schemas()
    answer = (kept["status"], {"Content-Type": kept["content_type"]}, kept["body"])
    with serving([answer]) as stub, Endpoint(Address(stub.url, "m"), "", timeout_s=5) as endpoint:
        try:
            body = json.dumps(kept["request"]).encode()
            done = endpoint.ask(body, stream=bool(kept["request"].get("stream")))
            return tuple(call.name for call in parse(done.response, tools).calls)
        except (ModelFailed, NotAReply):
            return None


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_it_is_read_as_it_was_meant(path: Path) -> None:
    assert read(path) == CALLS[path.stem]
