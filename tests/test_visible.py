"""Text from hosts in a timeline: it is shown literally, within the width, and can do nothing."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from agent import events as e
from agent.timeline import plain, render
from agent.transcript import MemoryTranscript
from agent.values import CallStatus, Outcome, ToolCall
from agent.visible import cut, in_ascii, visible

HOSTILE = [
    (
        "[red]x[/red] [link=http://h]y[/link] :smile:",
        "[red]x[/red] [link=http://h]y[/link] :smile:",
    ),
    ("\x1b[31mred\x1b[0m", "red"),
    ("a\x1b]8;;http://h\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
    ("a\x1b]0;title\x07b", "ab"),
    ("\x9b31mred \x9d0;t\x9cx", "red x"),
    ("a\x1b[2J\x1b[1;1Hb\x1bc", "ab"),
    ("10%\r50%\r100%", "100%"),
    ("nul\x00 bell\x07 back\x08", r"nul\x00 bell\x07 back\x08"),
    ("a\u202eb\u200bc\ufeff", r"a\u202eb\u200bc\ufeff"),
    ("\x1b", ""),
    ("\x1b[", ""),
    ("\x1b]never ends", ""),
]


def uncoloured(events: list[e.AnyEvent]) -> str:
    file = io.StringIO()
    Console(file=file, width=80, force_terminal=True, color_system=None).print(render(events))
    return file.getvalue()


@pytest.mark.parametrize(("text", "shown"), HOSTILE)
def test_text_from_a_host_is_only_read(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown
    transcript = MemoryTranscript()
    transcript.append(
        e.NoteAdded(text=f"<{text}>"),
        e.CallQueued(call=ToolCall(id="c1", tool=text), command=text),
        e.CallEnded(call_id="c1", tool=text, status=CallStatus.FAILED, message=f"<{text}>"),
        e.CheckRan(name=text, passed=False, text=text),
        e.RunEnded(outcome=Outcome.LIMIT, exit_code=4, summary=text, report={text: {text: [text]}}),
    )
    out = uncoloured(transcript.events)
    assert out.replace("\n", "").isprintable()
    if shown and "\r" not in text:
        assert f"<{shown}>" in out


def test_many_lines_are_cut_short_and_long_ones_at_the_edge() -> None:
    log = "\n".join(f"line {n} " + "漢" * 100 for n in range(100))
    transcript = MemoryTranscript()
    transcript.append(
        e.CallEnded(call_id="c1", tool="pip_install", status=CallStatus.FAILED, message=log),
        e.ReplyReceived(turn=1, text="word " * 5000),
    )
    lines = plain(transcript.events).splitlines()
    assert len(lines) < 30
    assert max(map(cell_len, lines)) <= 80
    assert lines[1].endswith("漢…")
    assert "                    … 92 more lines" in lines
    assert any("more lines)" in line for line in lines)


def test_cut_and_ascii() -> None:
    assert cut("abcdef", 4) == "abc…"
    assert cut("漢字漢字", 5) == "漢字…"
    assert cut("abcdef", 5, ascii_only=True) == "ab..."
    assert cut("abc", 3) == "abc"
    assert in_ascii("«env» → ✓ ü") == "<env> -> + \\xfc"


def test_an_hour_and_a_header_with_little_in_it() -> None:
    now = [0.0]
    transcript = MemoryTranscript(clock=lambda: now[0])
    transcript.append(
        e.RunStarted(
            run_id="r",
            started_at="",
            seed="",
            version="",
            goal={},
            brain="b",
            mode="auto",
            interactive=False,
            grants=("listen on port 8000",),
        )
    )
    now[0] = 3661
    transcript.append(e.LimitReached(name="minutes", value=60, text="an hour is over"))
    transcript.append(e.ErrorMet(text="connection lost", where="spark-1"))
    text = plain(transcript.events)
    assert (
        "         goal       ? on local\n         allowed    listen on port 8000\n\n1:01:01" in text
    )
    assert "\n\n1:01:01  limit      minutes: an hour is over\n" in text
    assert "error      spark-1: connection lost" in text
