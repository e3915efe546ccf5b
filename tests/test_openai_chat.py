"""The model brain drives whole runs: ready, waiting, charged, within its context."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.brains.adapt import without
from agent.brains.dialect import Dialect
from agent.brains.dialects import Parsed
from agent.brains.meter import Meter
from agent.brains.openai_chat import OpenAIChat
from agent.brains.talk import Options
from agent.replay import replay
from agent.settings import Price
from agent.values import Outcome
from tests.lab.stub_model import Asked, Reply, refused, serving
from tests.lab.stub_replies import chunks, sse
from tests.lab.world_runs import events, goal, outcome, play, take_up
from tests.lab.worlds import World
from tests.model_runs import TAKE, brain, run, said, takes, then

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

    def ask(body: bytes, *, on_text: Callable[[str], None], **more: Any) -> Any:
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


def test_what_is_known_is_told_from_the_request_on_that_shortens(tmp_path: Path) -> None:
    """Row 48: the very request that leaves old results out says what they showed."""

    def script(asked: Asked) -> Reply:
        turn = len(asked.body["messages"])
        args = {"path": "/srv/logs/server.log", "offset_bytes": turn * 100}
        return said("Reading.", [("read_file", args)], usage=(len(asked.raw) // 4, 5))

    wanted = goal(limits={"steps": 40})
    options = Options(context_tokens=9_000, reply_tokens=512)
    _, stub = run(tmp_path, script, wanted=wanted, options=options)
    shortened = ["call it again" in str(asked.body["messages"]) for asked in stub.asked]
    known = ["Known:" in asked.body["messages"][-1]["content"] for asked in stub.asked]
    assert any(shortened)
    assert known[shortened.index(True)]


def test_a_stream_that_breaks_off_has_cost_something(tmp_path: Path) -> None:
    """Row 44: what came before the break is charged."""
    broken = sse(*chunks(said("word " * 200))[:1], ends="cut")
    done, _ = run(tmp_path, then(broken))
    (failed,) = events(done, "request_failed")
    assert failed.usage.estimated
    assert failed.usage.completion_tokens > 100


def test_a_window_that_is_cut_in_silence_while_a_run_grows() -> None:
    """Row 88: the count stays where it was although more was sent; nothing is learnt from that."""
    meter = Meter(4.0, None)
    said_of = [meter.cut(Parsed(prompt_tokens=min(n // 4, 8192)), b"x" * n) for n in SIZES]
    first = next(n for n, words in zip(SIZES, said_of, strict=True) if words)
    assert 32_768 < first < 45_000


SIZES = range(8_000, 80_000, 2_000)
