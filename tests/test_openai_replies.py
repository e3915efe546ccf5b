"""Replies of every kind in whole runs: each is answered, none breaks the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.brains.talk import Options
from agent.values import CallStatus, Outcome
from tests.lab.stub_model import Asked, Reply, refused
from tests.lab.world_runs import events, outcome
from tests.model_runs import TAKE, run, said, takes, then


def window(limit: int) -> Callable[[Asked], Reply]:
    """Answer as a server with a short context that says so."""

    def script(asked: Asked) -> Reply:
        tokens = len(asked.raw) // 4
        if tokens + asked.body["max_tokens"] > limit:
            text = (
                f"This model's maximum context length is {limit} tokens. However, you requested "
                f"{tokens + asked.body['max_tokens']} tokens"
            )
            return refused(400, text)
        return takes(asked)

    return script


def test_an_overflow_corrects_the_context_and_is_not_repeated(tmp_path: Path) -> None:
    """Rows 40 and 89: the window that the server names is kept to from then on."""
    done, stub = run(tmp_path, window(12_000))
    assert outcome(done) is Outcome.READY
    assert [event.kind for event in events(done, "request_failed")] == ["overflow"]
    kept = [asked for asked in stub.asked if asked is not stub.asked[0]]
    assert all(len(asked.raw) / 4 + asked.body["max_tokens"] <= 12_000 for asked in kept)


def test_a_context_that_is_too_short_ends_the_run_cleanly(tmp_path: Path) -> None:
    """Row 40: at most two more tries, then the limit and a report."""
    done, stub = run(tmp_path, window(1_000))
    assert outcome(done) is Outcome.LIMIT
    assert events(done, "limit")[0].name == "context"
    assert len(stub.asked) <= 3
    assert events(done, "run_ended")[0].report["cause"]


def test_a_context_that_is_cut_in_silence_is_noticed(tmp_path: Path) -> None:
    """Row 88: the server answers 200 and has read a part only."""
    done, stub = run(tmp_path, lambda asked: said("", [TAKE], usage=(1000, 5)))
    assert outcome(done) is Outcome.LIMIT
    assert "read only 1,000 tokens" in events(done, "request_failed")[0].text
    assert len(stub.asked) <= 3


def test_a_reply_that_is_cut_off_gets_more_room_next_time(tmp_path: Path) -> None:
    """Rows 91 and 93."""
    cut = said("I will", [("read_file", '{"path": "/srv')], finish="length")
    done, stub = run(tmp_path, then(cut), options=Options(reply_tokens=512))
    assert outcome(done) is Outcome.READY
    first = events(done, "call_ended")[3]
    assert first.status is CallStatus.INVALID
    assert "cut off" in first.message
    assert [asked.body["max_tokens"] for asked in stub.asked[:3]] == [512, 1024, 512]


EMPTY = {
    "nothing": said("", usage=None),
    "reasoning only": said("", reasoning_content="Hmm, well.", usage=None),
    "a refusal": said("", refusal="I cannot help with that.", usage=None),
}


@pytest.mark.parametrize("reply", EMPTY.values(), ids=EMPTY)
def test_a_reply_without_a_call_gets_one_nudge(tmp_path: Path, reply: Reply) -> None:
    """Row 99: it is never taken for an end; the run ends with a status of its own."""
    done, stub = run(tmp_path, lambda asked: reply)
    assert outcome(done) is Outcome.LIMIT
    assert events(done, "limit")[0].name == "silence"
    assert 2 <= len(stub.asked) <= 3
    assert "without a call does nothing" in stub.asked[1].body["messages"][-1]["content"]


def test_one_word_and_then_calls(tmp_path: Path) -> None:
    done, _ = run(tmp_path, then(said("Let me think.")))
    assert outcome(done) is Outcome.READY


BAD_CALLS = {
    "73 no arguments": ("grep", "{}", "pattern"),
    "74 a list": ("grep", "[1]", "object"),
    "74 a number": ("grep", "3", "object"),
    "76 garbage": ("grep", "pattern: x", "arguments"),
    "77 no such tool": ("grepp", '{"pattern": "x", "path": "/y"}', "did you mean grep"),
    "97 JSON as a command": ("shell", '{"command": "{\\"command\\": \\"ls\\"}"}', "plain text"),
    "no such suggestion": ("take_suggestion", '{"id": "s9"}', "s1"),
    "no purpose": (
        "pip_install",
        '{"python": "/srv/env/bin/python", "requirements": ["x"]}',
        "fix",
    ),
}


@pytest.mark.parametrize(("name", "arguments", "words"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_a_call_that_is_none_is_answered_with_what_is_wrong(
    tmp_path: Path, name: str, arguments: str, words: str
) -> None:
    """Rows 73 to 80 and 97: one error for that very call, and the next request is still valid."""
    done, stub = run(tmp_path, then(said("", [(name, arguments)])))
    assert outcome(done) is Outcome.READY
    answer = stub.asked[1].body["messages"][-1]["content"]
    assert words in answer.partition("# Where it stands")[0]


def test_ids_that_come_twice_are_told_apart(tmp_path: Path) -> None:
    """Row 85: two calls with one id get one result each."""
    looks = [("grep", {"pattern": "x", "path": "/a"}), ("grep", {"pattern": "y", "path": "/b"})]
    reply = said("", looks)
    for call in reply["choices"][0]["message"]["tool_calls"]:
        call["id"] = "same"
    done, stub = run(tmp_path, then(reply))
    assert outcome(done) is Outcome.READY
    results = [row for row in stub.asked[1].body["messages"] if row["role"] == "tool"]
    assert len(results) == 2
