"""The model brain in whole runs on a simulated host, over real HTTP to a stub of a model's server.

What the stub answers is up to each test; what is sent is checked by the strictest server's rules in
every one of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.brains.adapt import without
from agent.brains.dialect import Dialect
from agent.brains.endpoint import Address, Endpoint
from agent.brains.openai_chat import OpenAIChat, Options
from agent.replay import replay
from agent.session import Session
from agent.settings import Price
from agent.values import CallStatus, Outcome
from tests.lab.strict_history import strict_problems
from tests.lab.stub_model import Asked, Reply, Stub, refused, serving
from tests.lab.stub_replies import said as counted
from tests.lab.world_runs import events, goal, outcome, play, take_up
from tests.lab.worlds import World

TAKE = ("take_suggestion", {"id": "s1"})


def said(text: str, calls: Any = (), usage: Any = None, **more: Any) -> dict[str, Any]:
    """Return a completion whose server does not count tokens unless it is told to."""
    return counted(text, calls, usage=usage, **more)


def takes(asked: Asked) -> Reply:
    """Answer as a model that follows every suggestion."""
    return said("Taking it.", [TAKE], usage=(len(asked.raw) // 4, 20))


@contextmanager
def brain(stub: Stub, **more: Any) -> Iterator[OpenAIChat]:
    fields: dict[str, Any] = {"dialect": Dialect(), "sleep": lambda _: None}
    with Endpoint(Address(stub.url, "stub"), "", timeout_s=5) as endpoint:
        yield OpenAIChat(ask=endpoint.ask, model="stub", **(fields | more))


def run(folder: Path, script: Any, world: World | None = None, **more: Any) -> tuple[Session, Stub]:
    """Drive a run with a model that answers by a script; every request must be a valid one."""
    of_brain = {key: more.pop(key) for key in ("dialect", "options", "clean") if key in more}
    with serving(script) as stub, brain(stub, **of_brain) as model:
        done = play(folder, world or World(), more.pop("wanted", goal()), brain=model, **more)
    for asked in stub.asked:
        assert strict_problems(asked.body) == []
    return done, stub


def then(*replies: Reply | Callable[[Asked], Reply]) -> Callable[[Asked], Reply]:
    """Answer with these in turn, and follow suggestions afterwards."""
    waiting = list(replies)

    def script(asked: Asked) -> Reply:
        reply = waiting.pop(0) if waiting else takes
        return reply(asked) if callable(reply) else reply

    return script


DIALECTS = {
    "streamed": Dialect(),
    "not streamed": Dialect(streams=False),
    "no system role": Dialect(system="user"),
    "one call a message": Dialect(parallel=False),
}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_a_model_that_follows_suggestions_brings_the_goal_up(
    tmp_path: Path, dialect: Dialect
) -> None:
    done, stub = run(tmp_path, takes, dialect=dialect)
    assert outcome(done) is Outcome.READY
    assert all(asked.body.get("stream", False) is dialect.streams for asked in stub.asked)
    tools = [event.tool for event in events(done, "call_ended")]
    assert {"record_diagnosis", "pip_install", "applied", "start_server"} <= set(tools)
    assert done.run.view.asked.usage.prompt_tokens > 1000


def test_calls_written_in_text(tmp_path: Path) -> None:
    """Row 84: a model without a tool interface writes fenced JSON, and is shown its tools so."""
    block = '```json\n{"name": "take_suggestion", "arguments": {"id": "s1"}}\n```'

    def script(asked: Asked) -> Reply:
        assert "tools" not in asked.body
        assert '"name":"take_suggestion"' in asked.body["messages"][0]["content"]
        return said(f"I take it.\n{block}", usage=(len(asked.raw) // 4, 5))

    done, _ = run(tmp_path, script, dialect=Dialect(native_tools=False))
    assert outcome(done) is Outcome.READY
    assert events(done, "reply")[0].text == "I take it."


def test_it_replays_without_any_endpoint(tmp_path: Path) -> None:
    script = then(refused(503, "busy"), "reset", said("", [("grep", {"pattern": "x"})]))
    done, _ = run(tmp_path, script)
    played = replay(done.transcript.path)
    assert played.difference is None
    assert played.compared == played.total > 50


def test_attempts_that_fail_are_on_record_and_the_run_goes_on(tmp_path: Path) -> None:
    """Rows 39, 43 and 92."""
    done, _ = run(tmp_path, then(refused(429, "slow down"), refused(503, "busy")))
    assert outcome(done) is Outcome.READY
    failed = events(done, "request_failed")
    assert [(event.kind, event.status, event.final) for event in failed] == [
        ("rate", 429, False),
        ("server", 503, False),
    ]
    assert all(event.wait_s > 0 for event in failed)


NEVER = {
    "key": (refused(401, "bad key"), "key"),
    "no such model": (refused(404, "model not found"), "not_found"),
    "a request that is refused": (refused(400, "unknown field: foo"), "request"),
    "no money": (refused(402, "top up"), "quota"),
}


@pytest.mark.parametrize(("reply", "kind"), NEVER.values(), ids=NEVER)
def test_what_cannot_change_is_asked_once(tmp_path: Path, reply: Reply, kind: str) -> None:
    """Row 39: one request, and the run waits; nothing is lost."""
    world = World()
    done, stub = run(tmp_path, [reply], world)
    assert len(stub.asked) == 1
    assert [(event.kind, event.final) for event in events(done, "request_failed")] == [(kind, True)]
    assert outcome(done) is None
    with serving(takes) as later, brain(later) as model:
        taken = take_up(done.folder, world, model)
        from agent.engine import drive

        assert drive(taken.run, lambda asked: None, taken.checkpoint) is Outcome.READY
        taken.close()
    assert replay(done.transcript.path).difference is None


def test_a_field_that_a_server_refuses_is_left_out(tmp_path: Path) -> None:
    def script(asked: Asked) -> Reply:
        if "stream_options" in asked.body:
            return refused(400, "Unrecognized request argument supplied: stream_options")
        return takes(asked)

    done, stub = run(tmp_path, script)
    assert outcome(done) is Outcome.READY
    assert sum("stream_options" in asked.body for asked in stub.asked) == 1


def test_what_is_changed_for_a_refused_field() -> None:
    assert without(Dialect(), "messages[2].reasoning_content") is None
    echoing = Dialect(echo_reasoning="reasoning_content")
    changed = without(echoing, "messages[2].reasoning_content")
    assert changed is not None
    assert changed.echo_reasoning == ""
    assert without(Dialect(), "foo") is None


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


def test_usage_is_charged_by_the_price_table(tmp_path: Path) -> None:
    price = Price(input=1000.0, output=2000.0, cached=0.0)
    wanted = goal(limits={"usd": 12.0})
    done, _ = run(tmp_path, takes, wanted=wanted, options=Options(price=price))
    assert outcome(done) is Outcome.LIMIT
    assert events(done, "limit")[0].name == "usd"
    alarm = [event for event in events(done, "hint") if event.name == "usd"]
    spent = done.run.view.asked.usage
    assert len(alarm) == 1
    assert spent.cost_usd == pytest.approx(
        spent.prompt_tokens / 1e3 + spent.completion_tokens / 500
    )


def test_usage_is_reckoned_where_a_server_does_not_tell(tmp_path: Path) -> None:
    """Row 44."""
    done, _ = run(tmp_path, lambda asked: said("", [TAKE]))
    assert outcome(done) is Outcome.READY
    usage = events(done, "reply")[0].usage
    assert usage.estimated
    assert usage.prompt_tokens > 1000


def test_an_interrupt_in_the_middle_of_a_reply_is_charged(tmp_path: Path) -> None:
    """Row 44: what was streamed until then has cost something, and is on record."""
    world = World()

    def ask(body: bytes, *, stream: bool, on_text: Callable[[str], None]) -> Any:
        on_text("I was about to say " * 20)
        raise KeyboardInterrupt

    model = OpenAIChat(ask=ask, model="m", dialect=Dialect())
    done = play(tmp_path, world, brain=model)
    assert outcome(done) is Outcome.INTERRUPTED
    (failed,) = events(done, "request_failed")
    assert (failed.kind, failed.usage.estimated) == ("cancelled", True)
    assert failed.usage.completion_tokens > 50


def test_reasoning_is_sent_back_where_a_server_wants_it(tmp_path: Path) -> None:
    """Row 87."""

    def script(asked: Asked) -> Reply:
        for row in asked.body["messages"]:
            wanted = bool(row.get("tool_calls"))
            assert (row.get("reasoning_content") == "Thinking.") is wanted
        return said("", [TAKE], reasoning_content="Thinking.", usage=(len(asked.raw) // 4, 5))

    done, _ = run(tmp_path, script, dialect=Dialect(echo_reasoning="reasoning_content"))
    assert outcome(done) is Outcome.READY
    done, stub = run(tmp_path / "2", then(said("", [TAKE], reasoning_content="Thinking.")))
    assert "Thinking." not in stub.asked[1].raw.decode()
    assert events(done, "reply")[0].reasoning == "Thinking."


def test_only_the_tools_that_are_named_are_offered(tmp_path: Path) -> None:
    done, stub = run(tmp_path, takes, options=Options(tools=("grep", "read_file")))
    names = {tool["function"]["name"] for tool in stub.asked[0].body["tools"]}
    assert {"grep", "read_file", "give_up"} <= names
    assert "pip_install" not in names
    assert outcome(done) is Outcome.READY, "a suggestion may use others"


def test_a_long_run_stays_within_a_short_context(tmp_path: Path) -> None:
    """Rows 48 and 49: executed changes and open fixes stay in view, nothing is done twice."""
    lines = {"path": "/srv/logs/server.log"}

    def script(asked: Asked) -> Reply:
        turn = len(asked.body["messages"])
        if turn % 3 == 0:
            return takes(asked)
        args = {**lines, "offset_bytes": turn * 100}
        return said("Reading.", [("read_file", args)], usage=(len(asked.raw) // 4, 5))

    wanted = goal(limits={"steps": 200})
    options = Options(context_tokens=9_000, reply_tokens=512)
    done, stub = run(tmp_path, script, wanted=wanted, options=options)
    assert outcome(done) is Outcome.READY
    assert max(len(asked.raw) for asked in stub.asked) / 4 <= 9_000
    installs = [event for event in events(done, "call_ended") if event.tool == "pip_install"]
    assert len(installs) == 1
    last = stub.asked[-1].body["messages"][-1]["content"]
    assert "pip_install" in last.partition("Changes that were made")[2]
    json.loads(stub.asked[-1].raw)
