"""Tools as a model reads them: short, complete, and the way back from what it says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.brains.schemas import KINDS, called, may_change, read_purpose, said_arguments, schemas
from agent.control import CONTROLS
from agent.values import Purpose, ToolCall
from tests.lab.prompts import pages
from tools.registry import TOOLS

MOST_CHARACTERS = 23_400
"""At 3.88 characters a token, as SmolLM2's tokenizer counted these schemas, 6,000 tokens."""
OFFERED = [tool for tool in TOOLS if tool.name != "engine_probe"]
"""Nobody could write the arguments of that one by hand."""
ALL = [*OFFERED, *CONTROLS.values()]


def functions() -> dict[str, dict[str, Any]]:
    rows = [*schemas(kind="host"), *schemas()]
    return {row["function"]["name"]: row["function"] for row in rows}


def names(rows: list[dict[str, Any]]) -> set[str]:
    return {row["function"]["name"] for row in rows}


def test_every_tool_is_there_and_all_are_short() -> None:
    apart = {tool.name for tool in OFFERED if tool.runs_in == "host"}
    assert set(functions()) == {tool.name for tool in ALL} | {"take_suggestion"}
    for_models, for_hosts = schemas(), schemas(kind="host")
    assert apart == names(for_hosts) - names(for_models), "no model is shown both"
    for rows in (for_models, for_hosts):
        assert len(json.dumps(rows, separators=(",", ":"))) <= MOST_CHARACTERS


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
def test_no_argument_has_a_name_of_ours(tool: Any) -> None:
    """Row 95: an argument is never eaten because of its name."""
    assert not {"target", "purpose", "why"} & set(tool.args_type.model_fields)


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
def test_a_schema_is_one_that_strict_servers_take(tool: Any) -> None:
    """Row 94: an object with properties, every required name among them, each with a type."""
    parameters = functions()[tool.name]["parameters"]
    assert parameters["type"] == "object"
    assert set(parameters.get("required", ())) <= set(parameters["properties"])
    assert all("type" in part or "enum" in part for part in parameters["properties"].values())
    assert "$ref" not in json.dumps(parameters)
    assert ("purpose" in parameters["properties"]) == may_change(tool)


@pytest.mark.parametrize("tool", OFFERED, ids=lambda tool: tool.name)
def test_what_a_model_must_give_is_what_the_tool_needs(tool: Any) -> None:
    needed = {name for name, field in tool.args_type.model_fields.items() if field.is_required()}
    asked = set(functions()[tool.name]["parameters"].get("required", ()))
    assert asked - {"purpose"} == needed


def test_only_some_tools_or_one_kind() -> None:
    some = {row["function"]["name"] for row in schemas(["grep", "read_file"])}
    assert some == {"grep", "read_file", "take_suggestion", *CONTROLS}
    of_venv = {row["function"]["name"] for row in schemas(kind="venv")}
    assert "start_server" in of_venv
    assert "start_service" not in of_venv


PURPOSES = {
    "fix d1": Purpose(kind="fix", ref="d1"),
    " Fix: d12 ": Purpose(kind="fix", ref="d12"),
    "advance process_up": Purpose(kind="advance", ref="process_up", postcondition="process_up"),
    "recover t3.1": Purpose(kind="recover", ref="t3.1"),
    "requested (e7)": Purpose(kind="requested", ref="e7"),
    "": Purpose(),
}


@pytest.mark.parametrize("said", PURPOSES)
def test_a_purpose_in_words(said: str) -> None:
    assert read_purpose(said) == (PURPOSES[said], "")


@pytest.mark.parametrize("said", ["because", "look", "fixing things", "the person wants it"])
def test_a_purpose_that_is_none_says_what_there_is(said: str) -> None:
    purpose, problem = read_purpose(said)
    assert purpose == Purpose()
    assert all(kind in problem for kind in KINDS)


def test_an_object_as_purpose() -> None:
    assert read_purpose({"kind": "fix", "ref": "d2"})[0] == Purpose(kind="fix", ref="d2")
    assert read_purpose(["fix", "d2"]) == (Purpose(), "")


def test_there_and_back() -> None:
    args = {"python": "/e/bin/python", "requirements": ["einops"], "purpose": "fix d1"}
    call = called("pip_install", args, "", "local", "It is missing.")
    assert call.purpose == Purpose(kind="fix", ref="d1")
    assert (call.args, call.why) == (
        {k: args[k] for k in ("python", "requirements")},
        "It is missing.",
    )
    assert said_arguments(call, "local") == args
    away = called("grep", {"pattern": "x", "path": "/y", "target": "h/box"}, "", "h")
    assert away.target == "h/box"
    assert said_arguments(away, "h") == {"pattern": "x", "path": "/y", "target": "h/box"}


def test_what_could_not_be_read_stays_so() -> None:
    call = called("grep", {}, "the arguments are not valid JSON", "local")
    assert call == ToolCall(tool="grep", problem="the arguments are not valid JSON")


@pytest.mark.golden
@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_prompts_are_as_recorded(path: Any) -> None:
    assert path.read_text(encoding="utf-8") == pages()[path], "`make golden` writes it anew"
