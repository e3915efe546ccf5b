"""Arguments of calls: what is read as it stands, what is repaired, what is refused."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from agent.brains.arguments import read_arguments
from agent.brains.loose_json import Broken, read_value

REPAIRED = ("arguments repaired",)
LS = {"command": "ls"}

GOOD: dict[str, tuple[Any, dict[str, Any]]] = {
    "row74-string": ('{"command": "ls"}', LS),
    "row81-object": ({"command": "ls"}, LS),
    "row75-empty": ("", {}),
    "row75-blank": (" \n", {}),
    "row74-none": (None, {}),
    "row74-null": ("null", {}),
    "row73-no-arguments": ("{}", {}),
    "raw-line-end": ('{"command": "a\nb"}', {"command": "a\nb"}),
    "deep-but-not-too-deep": (
        '{"a": ' + "[" * 40 + "]" * 40 + "}",
        {"a": json.loads("[" * 40 + "]" * 40)},
    ),
}


@pytest.mark.parametrize(("raw", "args"), GOOD.values(), ids=GOOD)
def test_as_it_stood(raw: Any, args: dict[str, Any]) -> None:
    assert read_arguments(raw, False) == (args, "", ())


MENDED: dict[str, tuple[str, dict[str, Any]]] = {
    "row74-doubly-encoded": ('"{\\"command\\": \\"ls\\"}"', LS),
    "row74-three-times-encoded": (json.dumps(json.dumps(json.dumps(LS))), LS),
    "row76-fence": ('```json\n{"command": "ls"}\n```', LS),
    "row76-fence-unclosed": ('```\n{"command": "ls"}', LS),
    "row76-garbage-after": ('{"command": "ls"}</tool_call>', LS),
    "row76-brace-too-many": ('{"command": "ls"}}', LS),
    "row76-quote-too-many": ('{"command": "ls"}"', LS),
    "row76-prose-after": ('{"command": "ls"} That lists the files.', LS),
    "row76-last-brace-lost": ('{"command": "ls"', LS),
    "row76-two-braces-lost": ('{"a": {"b": ["c"]', {"a": {"b": ["c"]}}),
    "row76-in-single-quotes": ('\'{"command": "ls"}\'', LS),
    "row76-single-quoted": ("{'command': 'ls'}", LS),
    "row76-python-words": ("{'a': True, 'b': None}", {"a": True, "b": None}),
    "row76-bare-keys": ('{command: "ls"}', LS),
    "row76-comma-at-the-end": ('{"command": "ls",}', LS),
    "row76-comma-at-the-end-of-a-list": ('{"a": ["b", ]}', {"a": ["b"]}),
    "row76-unknown-escape": (r'{"pattern": "\d+\."}', {"pattern": r"\d+\."}),
    "row76-windows-path": (r'{"path": "C:\models\qwen"}', {"path": r"C:\models\qwen"}),
    "row76-quotes-not-escaped": ('{"command": "echo "hi" | cat"}', {"command": 'echo "hi" | cat'}),
    "row76-quote-in-single-quotes": ("{'command': 'echo \"hi\"'}", {"command": 'echo "hi"'}),
    "row76-three-quotes": ('{"command": """a\n"b" c"""}', {"command": 'a\n"b" c'}),
    "row76-empty-object-first": ('{}{"command": "ls"}', LS),
    "row76-sent-twice": ('{"command": "ls"}{"command": "ls"}', LS),
    "half-a-character": ('{"command": "\\ud83d"}', {"command": "\ufffd"}),
    "pair-in-broken-json": (r"{'a': '\ud83d\ude00'}", {"a": "\U0001f600"}),
}


@pytest.mark.parametrize(("raw", "args"), MENDED.values(), ids=MENDED)
def test_mended(raw: str, args: dict[str, Any]) -> None:
    assert read_arguments(raw, False) == (args, "", REPAIRED)


BAD: dict[str, tuple[Any, str]] = {
    "row74-list": (["ls"], "are a list, not an object"),
    "row74-list-in-json": ('["ls"]', "are a list, not an object"),
    "row74-number": (7, "are a number, not an object"),
    "row74-number-in-json": ("7 ", "are a number, not an object"),
    "row74-truth": (True, "are a truth value, not an object"),
    "row74-string-in-json": ('"ls"', "are a string, not an object"),
    "row74-something-else": (object(), "are something else, not an object"),
    "row76-prose": ("list the files please", "malformed"),
    "row76-prose-in-braces": ("{list the files please}", "malformed"),
    "row76-shell": ("ls -la", "malformed"),
    "row76-ends-in-a-string": ('{"command": "rm -rf /srv/bu', "it ends inside a string"),
    "row76-ends-in-a-string-with-a-brace": ('{"command": "rm -rf ${HOME}', "inside a string"),
    "row76-ends-in-a-string-with-quotes": ('{"command": "cp "a" "b', "inside a string"),
    "row76-one-quote-not-escaped": ('{"command": "echo "hi"}', "not escaped"),
    "row76-ends-after-a-number": ('{"port": 80', "after a number"),
    "row76-ends-after-a-colon": ('{"port":', "where a value should come"),
    "row76-ends-after-a-comma": ('{"a": "b",', "inside brackets"),
    "row76-ends-in-a-word": ('{"a": tru', "is no JSON value"),
    "row76-open-brace": ("{", "inside brackets"),
    "row76-comma-missing": ('{"a": 1 "b": 2}', "where a comma"),
    "row76-colon-missing": ('{"a" 1}', "colon is missing"),
    "row76-code": ('{"a": f(1)}', "is no JSON value"),
    "row76-two-objects": ('{"command": "a"}{"command": "b"}', "several objects"),
    "row76-three-objects": ('{}{"a": 1}{"a": 2}', "several objects"),
    "row76-wrong-bracket": ('{"a": [1, 2}', "where a comma"),
    "not-finite": ('{"a": NaN}', "'NaN' is no JSON value"),
    "not-finite-after-reading": ('{"a": 1e999}', "what JSON does not know"),
    "number-without-end": ('{"a": ' + "9" * 5000 + "}", "too long"),
    "too-deep": ('{"a": ' + "[" * 60 + "]" * 60 + "}", "nested deeper than 50"),
    "too-deep-object": (
        {"a": [[[[[[[{"b": {}}] * 2]]]]]], "c": json.loads("[" * 60 + "]" * 60)},
        "deeper",
    ),
    "row80-too-large": ('{"a": "' + "x" * 100_000 + '"}', "larger than 100 kB"),
    "row80-far-too-large": ("{" + " " * 1_000_000, "larger than 100 kB"),
    "row80-too-large-as-object": ({"a": "x" * 100_000}, "larger than 100 kB"),
    "no-json-inside": ({"a": {1, 2}}, "what JSON does not know"),
}


@pytest.mark.parametrize(("raw", "says"), BAD.values(), ids=BAD)
def test_refused(raw: Any, says: str) -> None:
    args, problem, _ = read_arguments(raw, False)
    assert args == {}
    assert says in problem
    assert "; " in problem, "it says what to do"
    assert len(problem) < 300


CUT = ("", None, '{"command": "rm -rf /srv/bu', '{"command": "ls"', "{", "{'a': 'b'}")


@pytest.mark.parametrize("raw", CUT)
def test_row91_cut_off_is_said_to_be_cut_off(raw: Any) -> None:
    args, problem, _ = read_arguments(raw, True)
    assert args == {}
    assert "cut off at the reply's length limit" in problem
    assert "malformed" not in problem


def test_row91_whole_arguments_of_a_cut_reply_are_taken() -> None:
    assert read_arguments('{"command": "ls"}', True) == (LS, "", ())


def test_every_beginning_of_arguments_is_refused_or_closed_without_loss() -> None:
    """No prefix gives a value that the whole does not have: nothing is run by halves."""
    whole = {"command": "rm -rf /srv/build", "ports": [8000, 8001], "deep": {"a": [True, "x{}"]}}
    text = json.dumps(whole)
    for end in range(1, len(text)):
        args, problem, _ = read_arguments(text[:end], False)
        assert problem or all(part_of(args[key], whole[key]) for key in args), text[:end]
        assert read_arguments(text[:end], True)[1]


def part_of(found: Any, whole: Any) -> bool:
    """Whether all that is in a value is in the whole one, at the same place and unchanged."""
    if isinstance(found, dict):
        return all(part_of(value, whole[key]) for key, value in found.items())
    if isinstance(found, list):
        return all(part_of(one, other) for one, other in zip(found, whole, strict=False))
    return bool(found == whole)


def test_prose_never_becomes_a_value() -> None:
    for text in ("yes", "{so} it is", "[see above]", "{a, b}", "'quoted", "- a\n- b", "a: b"):
        with pytest.raises(Broken):
            read_value(text)


def test_reading_is_quick() -> None:
    raw = json.dumps({"command": "tail -n 100 /var/log/x", "timeout": 30})
    begun = time.perf_counter()
    for _ in range(1000):
        read_arguments(raw, False)
    assert time.perf_counter() - begun < 0.5
