"""The faces: what a person or a program sees of a run, on whatever there is to show it."""

from __future__ import annotations

import io
import json
import re
import time
from typing import Any

import pytest
from rich.cells import cell_len

from agent import events as e
from agent.console import LiveFace, PlainFace
from agent.json_face import JsonFace
from agent.run import Live
from agent.values import CallStatus, Outcome
from tests.lab.sample_run import (
    ASKED,
    CAUSE,
    FOOTER,
    INSTALL,
    TRY,
    Step,
    called,
    ended,
    header,
    numbered,
    play,
    queued,
    ready,
    steps,
)
from tests.lab.terminal import CONTROLS, terminal

HOSTILE = "[red]x[/red] \x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\ \x1b[2J\0\x9b31m \u202eabc"


def shown(run: list[Step], encoding: str = "utf-8", **more: Any) -> str:
    console, written = terminal(encoding, **more)
    with LiveFace(console, footer=FOOTER) as face:
        play(face, run)
    return CONTROLS.sub("", written())


def lines_of(run: list[Step]) -> list[str]:
    """The finished lines alone: nothing moves where there is no terminal."""
    return shown(run, force_terminal=False, force_interactive=False).splitlines()


def test_a_run_reads_as_a_story_within_80_columns() -> None:
    lines = lines_of(steps())
    text = "\n".join(lines)
    spots = [
        "serve /srv/model",
        "look       host facts",
        "Debian 12 x86_64, 2 CPUs, user root",
        "says       Not known yet: config parses.",
        "KeyError: 'qwen3_5_text'",
        "diagnosis  transformers 4.57.6 does not know qwen3_5_text;",
        "seen in e12, e15",
        "plan       move transformers",
        "asks       a1: Install packages with pip.",
        "answer     yes, by person",
        "change     pip install",
        "✓ f1 verified",
        "healthy after 12.3 s",
        "✓ config_parses: Qwen3_5 by bare",
        "READY",
    ]
    places = [text.index(spot) for spot in spots]
    assert places == sorted(places)
    assert text.count(CAUSE[:40]) == 2, "once as the diagnosis, once at the end"
    assert [line for line in lines if cell_len(line) > 80] == [TRY]
    assert len(lines) < 60


def test_the_end_of_a_good_run_says_all_that_is_needed() -> None:
    lines = lines_of([header(), ready()])
    text = "\n".join(lines)
    for word in (
        "http://127.0.0.1:8000",
        "ready after 1 min 23 s",
        "first token after 0.21 s · 14.2 tokens/s",
        "✓ chat",
        "r1-t3.1 (bringup stop r1 ends it)",
    ):
        assert word in text
    assert lines[-3:] == [TRY, *FOOTER], "whole lines, to be copied"


@pytest.mark.parametrize("outcome", [item for item in Outcome if item is not Outcome.READY])
def test_a_run_that_is_not_ready_says_why_and_what_to_do(outcome: Outcome) -> None:
    limit = e.LimitReached(name="steps", value=60, text="60 turns were used")
    end = ended(
        outcome, cause="it is too old", evidence=["e7", "e9"], advice="Raise it.", running=["j1"]
    )
    text = "\n".join(lines_of([header(), *([limit] * (outcome is Outcome.LIMIT)), end]))
    panel = text[text.index("╭") :]
    assert outcome.value.replace("_", " ").upper() in panel
    for word in ("it is too old", "e7, e9", "Raise it.", "j1 (bringup stop r1 ends it)", *FOOTER):
        assert word in panel
    assert ("60 turns were used" in panel) is (outcome is Outcome.LIMIT)


def test_a_parked_run_has_no_end_and_says_what_it_waits_for() -> None:
    text = "\n".join(lines_of([header(), queued("t2.2", "pip_install"), ASKED]))
    assert "PARKED" in text
    assert "bringup approve r1" in text
    assert INSTALL[:30] in text
    assert "BROKEN OFF" in "\n".join(lines_of([header()]))
    gone_on = [header(), ended(Outcome.INTERRUPTED), *called("t1.1", "grep", "found"), ready()]
    text = "\n".join(lines_of(gone_on))
    assert "READY" in text
    assert "INTERRUPTED" not in text
    gone_on = [header(), ended(Outcome.INTERRUPTED), queued("t2.2", "pip_install"), ASKED]
    assert "PARKED" in "\n".join(lines_of(gone_on))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_utf_8(encoding: str) -> None:
    text = shown(steps(), encoding)
    assert text.isascii()
    assert "+ chat: 32 tokens" in text
    assert "+ f1 verified" in text
    assert "|  READY" in text or "-  READY" in text
    assert "transformers 4.57.6 -> 5.24.0" in text


def test_no_color() -> None:
    console, written = terminal(no_color=True)
    with LiveFace(console, footer=FOOTER) as face:
        play(face, steps())
    codes = {
        code for found in re.findall(r"\x1b\[([0-9;]+)m", written()) for code in found.split(";")
    }
    assert codes <= {"0", "1", "2", "3"}, "bold, dim and italic only"


def test_text_from_hosts_can_do_nothing() -> None:
    run = numbered(
        [
            header(),
            *called("t1.1", HOSTILE, f"{HOSTILE} {'x' * 100_000}", "brain", ("output", HOSTILE)),
            *called(
                "t1.2", "grep", HOSTILE, "brain", ("progress", HOSTILE), status=CallStatus.FAILED
            ),
            ended(Outcome.NOT_REACHED, cause=HOSTILE, advice=HOSTILE, running=[HOSTILE]),
        ]
    )
    text = shown(run)
    assert "[red]x[/red] link" in text, "markup is text"
    assert "\\u202eabc" in text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]|evil", text)
    assert max(map(cell_len, text.splitlines())) <= 80 * 5
    assert len(text.splitlines()) < 80
    out = io.StringIO()
    with PlainFace(out) as plain:
        play(plain, run)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]|evil", out.getvalue())


def test_plain_lines() -> None:
    out = io.StringIO()
    run = steps()
    with PlainFace(out, footer=FOOTER) as face:
        play(face, run)
        lines = out.getvalue().splitlines()
        assert all(re.match(r"\d\d:\d\d [a-z]+: \S", line) for line in lines)
    assert max(map(len, lines)) <= 400
    text = out.getvalue()
    assert f"begins: pip install: {INSTALL}" in text
    assert "Collecting package" not in text, "output is not echoed"
    assert text.splitlines()[-3:] == [TRY, *FOOTER]
    assert "READY" in text


def test_plain_lines_in_ascii() -> None:
    raw = io.BytesIO()
    with PlainFace(io.TextIOWrapper(raw, encoding="ascii")) as face:
        play(face, steps())
        assert raw.getvalue().isascii(), "and flushed at once"
        assert b"4.57.6 -> 5.24.0" in raw.getvalue()


def test_a_heartbeat_tells_that_a_silent_command_runs() -> None:
    out = io.StringIO()
    with PlainFace(out, heartbeat_s=0.05) as face:
        play(face, numbered([header(), queued("t1.1", "pip_install")]))
        time.sleep(0.2)
        assert "still running" not in out.getvalue()
        play(face, [e.CallStarted(call_id="t1.1", t=3), Live("t1.1", "output", "a\nb 10%\rb 20%")])
        deadline = time.monotonic() + 5
        while out.getvalue().count("still running") < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
    assert "00:03 still running: pip install for 00:00: b 20%" in out.getvalue()
    quiet = out.getvalue()
    time.sleep(0.15)
    assert out.getvalue() == quiet


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_json_lines_are_the_events_and_nothing_else(encoding: str) -> None:
    raw = io.BytesIO()
    face = JsonFace(io.TextIOWrapper(raw, encoding=encoding))
    run = steps()
    play(face, run)
    lines = raw.getvalue().decode(encoding).splitlines()
    told = [step for step in run if not isinstance(step, Live)]
    assert [e.EVENT.validate_json(line) for line in lines] == told
    assert all(json.loads(line)["type"] for line in lines)
