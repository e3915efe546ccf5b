"""Arguments made to fit a schema: the table of what is changed, and what is never touched."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.brains.arguments import fit

SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {
        "Port": {"type": "object", "properties": {"number": {"type": "integer"}}},
        "Mode": {"enum": ["read-only", "auto"], "type": "string"},
    },
    "required": ["must", "text", "must_list"],
    "properties": {
        "must": {"type": "integer"},
        "number": {"type": "number"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "either": {"type": ["integer", "string"]},
        "flag": {"type": "boolean"},
        "text": {"type": "string"},
        "note": {"type": "string"},
        "names": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "must_list": {"type": "array", "items": {"type": "string"}},
        "any_list": {"type": "array"},
        "ports": {"type": "array", "items": {"$ref": "#/$defs/Port"}},
        "port": {"$ref": "#/$defs/Port"},
        "mode": {"$ref": "#/$defs/Mode"},
        "level": {"enum": [1, 2], "type": "integer"},
        "kind": {"const": "look"},
        "options": {"type": "object", "additionalProperties": {"type": "string"}},
        "max_tokens": {"type": "integer"},
        "one_or_many": {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
        },
        "anything": {},
    },
}

LEFT_OUT = object()
COERCIONS: list[tuple[str, Any, Any]] = [
    ("must", "8000", 8000),
    ("must", " 8000 ", 8000),
    ("must", "8000.0", 8000),
    ("must", 8000.0, 8000),
    ("must", [8000], 8000),
    ("must", "-3", -3),
    ("maybe", "8000", 8000),
    ("number", "1.5", 1.5),
    ("number", "2", 2),
    ("number", "1e3", 1000.0),
    ("flag", "true", True),
    ("flag", "True", True),
    ("flag", "FALSE", False),
    ("text", 8, "8"),
    ("text", 8.5, "8.5"),
    ("text", ["x"], "x"),
    ("names", "x", ["x"]),
    ("names", '["a", "b"]', ["a", "b"]),
    ("names", "['a', 'b']", ["a", "b"]),
    ("names", "a, b", ["a, b"]),
    ("names", "[]", []),
    ("names", [1, "b"], ["1", "b"]),
    ("names", 3, ["3"]),
    ("numbers", ["1", 2], [1, 2]),
    ("numbers", "[1, 2]", [1, 2]),
    ("numbers", "7", [7]),
    ("any_list", "x", ["x"]),
    ("ports", '[{"number": "80"}]', [{"number": 80}]),
    ("ports", {"number": 80}, [{"number": 80}]),
    ("ports", [{"number": "80"}], [{"number": 80}]),
    ("port", '{"number": 80}', {"number": 80}),
    ("port", {"number": "80"}, {"number": 80}),
    ("port", {"Number": 80}, {"number": 80}),
    ("options", '{"a": "b"}', {"a": "b"}),
    ("mode", "Read-Only", "read-only"),
    ("level", "2", 2),
    ("kind", "LOOK", "look"),
    ("maybe", "null", LEFT_OUT),
    ("maybe", "None", LEFT_OUT),
    ("maybe", "", LEFT_OUT),
    ("flag", "", LEFT_OUT),
    ("flag", None, LEFT_OUT),
    ("note", None, LEFT_OUT),
    ("names", "null", LEFT_OUT),
]


def fitted(**args: Any) -> dict[str, Any]:
    return fit({"must": 1, "text": "t", **args}, SCHEMA)[0]


@pytest.mark.parametrize(("name", "value", "wanted"), COERCIONS, ids=lambda value: repr(value)[:30])
def test_row96_made_to_fit(name: str, value: Any, wanted: Any) -> None:
    found = fitted(**{name: value})
    if wanted is LEFT_OUT:
        assert name not in found
    else:
        assert found[name] == wanted
        assert type(found[name]) is type(wanted)
    assert fit({"must": 1, "text": "t", name: value}, SCHEMA)[1], "it is noted"


UNTOUCHED: list[tuple[str, Any]] = [
    ("must", 8000),
    ("must", "eight"),
    ("must", "8,000"),
    ("must", "8.5"),
    ("must", 8.5),
    ("must", True),
    ("must", [1, 2]),
    ("must", None),
    ("must", ""),
    ("must", "9" * 400),
    ("number", "nan"),
    ("number", "1e999"),
    ("number", 3),
    ("maybe", None),
    ("either", "8000"),
    ("either", 8000),
    ("flag", "yes"),
    ("flag", 1),
    ("text", '{"command": "ls"}'),
    ("text", '["a"]'),
    ("text", "8000"),
    ("text", "null"),
    ("text", ""),
    ("text", ["a", "b"]),
    ("text", {"a": 1}),
    ("text", True),
    ("text", None),
    ("note", "None"),
    ("names", ["a"]),
    ("names", []),
    ("names", "[a, b]"),
    ("must_list", " "),
    ("numbers", ["one"]),
    ("numbers", "[1, x]"),
    ("ports", [{"number": 80}]),
    ("port", "8000"),
    ("port", {"number": 80, "more": "1"}),
    ("mode", "readonly"),
    ("level", "3"),
    ("one_or_many", '["a"]'),
    ("one_or_many", ["a"]),
    ("anything", "8000"),
    ("unknown", "8000"),
]


@pytest.mark.parametrize(("name", "value"), UNTOUCHED, ids=lambda value: repr(value)[:30])
def test_row96_never_touched(name: str, value: Any) -> None:
    args = {"must": 1, "text": "t", name: value}
    assert fit(args, SCHEMA) == (args, ())


def test_row97_a_command_that_is_json_stays_as_it_is() -> None:
    args = {"must": 1, "text": '{"command": "ls"}'}
    assert fit(args, SCHEMA) == (args, ())


def test_row95_parameters_that_are_named_like_fields_go_through() -> None:
    names = ("summary", "timeout", "security_risk", "name", "arguments", "parameters", "args")
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    for name in names:
        assert fit({name: "x"}, schema) == ({name: "x"}, ())
    assert fit({"arguments": "x"}, schema)[0] == {"arguments": "x"}
    schema = {"type": "object", "properties": {"arguments": {"type": "object"}}}
    assert fit({"arguments": {"arguments": {}}}, schema)[0] == {"arguments": {"arguments": {}}}


@pytest.mark.parametrize("wrapper", ["arguments", "parameters", "args", "kwargs"])
def test_one_wrapper_is_taken_off(wrapper: str) -> None:
    inner = {"must": 1, "text": "t"}
    assert fit({wrapper: inner}, SCHEMA) == (inner, (f"taken out of {wrapper!r}",))
    assert fit({wrapper: json.dumps(inner)}, SCHEMA)[0] == inner
    assert fit({wrapper: "ls"}, SCHEMA)[0] == {wrapper: "ls"}
    assert fit({wrapper: inner, "text": "x"}, SCHEMA)[0] == {wrapper: inner, "text": "x"}


def test_names_in_another_spelling() -> None:
    for said in ("maxTokens", "max-tokens", "MaxTokens", "MAX_TOKENS"):
        assert fitted(**{said: "5"})["max_tokens"] == 5
    both = {"maxTokens": 1, "max_tokens": 2}
    assert fitted(**both) == {"must": 1, "text": "t", **both}
    twins: dict[str, Any] = {"properties": {"a_b": {}, "aB": {}}}
    assert fit({"a-b": 1}, twins) == ({"a-b": 1}, ())


@pytest.mark.parametrize(
    "schema", [{}, {"properties": None}, {"properties": {"a": None}, "required": 3}]
)
def test_schemas_that_say_little(schema: dict[str, Any]) -> None:
    assert fit({"a": "1", "b": None}, schema) == ({"a": "1", "b": None}, ())


def test_a_schema_that_leads_in_circles_ends() -> None:
    schema = {
        "$defs": {"A": {"$ref": "#/$defs/A"}, "B": {"anyOf": [{"$ref": "#/$defs/B"}]}},
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/B"}, "c": {"$ref": "x"}},
    }
    args = {"a": "1", "b": "1", "c": "1"}
    assert fit(args, schema)[0] == args
