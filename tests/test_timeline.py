"""The timeline of a run: what it says, and that text from hosts can do nothing but be read."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.cells import cell_len
from rich.console import Console

from agent import events as e
from agent.timeline import Timeline, plain, render
from agent.transcript import MemoryTranscript
from agent.values import CallStatus, FixVerdict, Outcome, Purpose, ToolCall
from tools.base import Risk, Subject
from tools.command import Ending, Result

ENVIRONMENT = Subject(kind="environment", key="«env»")
PROBE = "«env»/bin/python -I -c 'import json, sys; print(json.dumps(sys.version_info[:3]))' @8d2f"


def call(id: str, tool: str, *, purpose: Purpose | None = None, target: str = "local") -> ToolCall:
    return ToolCall(id=id, tool=tool, purpose=purpose or Purpose(), target=target)


def ended(
    id: str,
    tool: str,
    message: str,
    seconds: float = 0.4,
    status: CallStatus = CallStatus.OK,
) -> e.CallEnded:
    return e.CallEnded(call_id=id, tool=tool, status=status, message=message, duration_s=seconds)


def looked(id: str, tool: str, message: str, origin: str = "survey") -> list[e.AnyEvent]:
    return [
        e.CallQueued.model_validate({"call": call(id, tool), "origin": origin, "command": PROBE}),
        e.CallStarted(call_id=id),
        ended(id, tool, message),
    ]


STORY: list[tuple[float, Sequence[e.AnyEvent]]] = [
    (
        0.0,
        [
            e.RunStarted(
                run_id="20261130-142233-ab12",
                started_at="2026-11-30T14:22:33+01:00",
                seed="5eed",
                version="0.1.0",
                goal={
                    "kind": "serve",
                    "model": "«goal»/ckpt",
                    "hosts": [{"name": "local", "address": "local"}],
                    "candidates": [{"venv": "«env»", "engine": "transformers"}],
                    "host": "127.0.0.1",
                    "port": 8000,
                    "checks": ["config_parses", "process_up", "health", "chat"],
                },
                brain="playbook",
                mode="supervised",
                interactive=True,
            )
        ],
    ),
    (
        0.4,
        [
            *looked(
                "s1",
                "host_facts",
                "Debian GNU/Linux 12 x86_64, 2 CPUs, 6012 of 7821 MiB memory free, user root",
            ),
            *looked("s2", "python_environment", "Python 3.11.7, pip 24.0, 61 packages, writable"),
            *looked("s3", "port_owner", "free"),
        ],
    ),
    (2.1, [e.RequestMade(turn=1, digest="90ab")]),
    (
        2.2,
        [
            e.ReplyReceived(
                turn=1,
                text="The model's config has to parse before anything else is worth doing.",
                calls=(call("t1c1", "autoconfig"),),
            ),
            e.CallQueued(call=call("t1c1", "autoconfig"), command=PROBE),
            e.CallStarted(call_id="t1c1"),
        ],
    ),
    (
        4.9,
        [
            ended(
                "t1c1",
                "autoconfig",
                "qwen3_5_text, transformers 4.57.6: The checkpoint you are trying to load has model"
                " type `qwen3_5_text` but Transformers does not recognize this architecture.",
                2.7,
                CallStatus.FAILED,
            ),
            e.HypothesisRanked(
                hypotheses=(
                    {"kind": "version_pin", "cause": "transformers 4.57.6 is too old", "score": 3},
                    {"kind": "config_mismatch", "cause": "the config is not qwen3_5's", "score": 1},
                )
            ),
            e.DiagnosisRecorded(
                diagnosis_id="d1",
                kind="version_pin",
                cause="transformers 4.57.6 does not know qwen3_5_text; 5.2.0 and newer do",
                evidence=("e14", "e8"),
                subject=ENVIRONMENT,
                check="config_parses",
                plan="install transformers 5.24.0 into this environment; torch stays as it is",
            ),
            e.CallQueued(
                call=call("t2c1", "pip_install", purpose=Purpose(kind="fix", ref="d1")),
                risk=Risk.CHANGE,
                touches=(ENVIRONMENT,),
                command="«env»/bin/python -m pip install transformers==5.24.0 torch==2.13.0+cpu",
            ),
            e.ApprovalAsked(
                approval_id="a1",
                call_id="t2c1",
                title="Install transformers 5.24.0",
                command="«env»/bin/python -m pip install transformers==5.24.0 torch==2.13.0+cpu",
                risk=Risk.CHANGE,
                touches=(ENVIRONMENT,),
                target="local",
                why="the model's class came with transformers 5.2.0",
                undo="pip install transformers==4.57.6 huggingface-hub==0.36.0",
                reason="supervised: every change is asked about",
            ),
        ],
    ),
    (31.0, [e.ApprovalAnswered(approval_id="a1", answer="yes", by="person", note="go on")]),
    (
        31.2,
        [
            e.FixOpened(fix_id="f1", diagnosis_id="d1", subject=ENVIRONMENT, target="local"),
            e.CallStarted(call_id="t2c1"),
        ],
    ),
    (
        47.0,
        [
            ended("t2c1", "pip_install", "installed transformers 5.24.0; 0 conflicts", 15.8),
            *looked("f1c1", "autoconfig", "qwen3_5_text: Qwen3_5TextConfig", "fix_check"),
            e.FixClosed(
                fix_id="f1",
                verdict=FixVerdict.VERIFIED,
                before="config_parses: ValueError: model type `qwen3_5_text`",
                after="",
                evidence=("e24",),
            ),
        ],
    ),
    (
        62.0,
        [
            e.CallQueued(call=call("t3c1", "watch_server"), command="«env»/bin/python watch"),
            e.CallStarted(call_id="t3c1"),
            *(
                e.CallSampled(
                    call_id="t3c1", n=n, argv=("w",), result=Result(Ending.EXITED, code=0)
                )
                for n in (1, 2, 3)
            ),
            ended("t3c1", "watch_server", "listening on 127.0.0.1:8000 after 9 s", 9.1),
            e.NoteAdded(text="please keep it running"),
            e.Claimed(text="the server answers (e31)"),
            e.CheckRan(name="config_parses", passed=True, text="Qwen3_5TextConfig"),
            e.CheckRan(
                name="chat", passed=True, text="well-formed, 32 tokens in 0.61 s, 52 tokens/s"
            ),
            e.CheckRan(name="gpu_busy", passed=None, text="no GPU is visible here"),
            e.RunEnded(
                outcome=Outcome.READY,
                exit_code=0,
                summary="ready at http://127.0.0.1:8000",
                report={
                    "model": "«goal»/ckpt",
                    "checks": [{"name": "chat"}],
                    "fixes": [{"fix": "f1", "cause": "too old", "verdict": "verified"}],
                    "running": ["server-1"],
                    "address": "http://127.0.0.1:8000",
                    "seconds_to_ready": 71.3,
                    "advice": "",
                    "try": "curl http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type:"
                    ' application/json\' -d \'{"model": "«goal»/ckpt", "max_tokens": 32}\'',
                },
            ),
        ],
    ),
]


def story() -> list[e.AnyEvent]:
    now = [0.0]
    transcript = MemoryTranscript(clock=lambda: now[0])
    for t, events in STORY:
        now[0] = t
        transcript.append(*events)
    return transcript.events


def test_the_story_at_80_columns() -> None:
    text = plain(story())
    assert max(map(cell_len, text.splitlines())) <= 80
    assert text.splitlines()[:12] == [
        "         bringup    20261130-142233-ab12",
        "         started    2026-11-30T14:22:33+01:00",
        "         mode       supervised · playbook · asks",
        "         serve      «goal»/ckpt on local, 127.0.0.1:8000",
        "         in         «env» (transformers)",
        "         proved by  config_parses, process_up, health, chat",
        "",
        "  00:00  survey     host_facts: Debian GNU/Linux 12 x86_64, 2 CPUs, 6012 of…  e3",
        "         survey     python_environment: Python 3.11.7, pip 24.0, 61 package…  e6",
        "         survey     port_owner: free                                          e9",
        "",
        "  00:02  says       The model's config has to parse before anything else is",
    ]
    for line in (
        "         look       autoconfig                               e14  ✗ failed 2.7 s",
        "                    $ «env»/bin/python -I -c 'import json, sys; print(json.dump…",
        "  00:04  suspects   1. transformers 4.57.6 is too old",
        "         diagnosis  transformers 4.57.6 does not know qwen3_5_text; 5.2.0 and",
        "                    seen in e14, e8 · told by config_parses",
        "         asks       Install transformers 5.24.0",
        "                    change · environment «env» · on local",
        "  00:31  answer     yes, by person: go on",
        "         change     pip_install for d1                             e22  ✓ 15.8 s",
        "         verdict    f1 verified",
        "                    after:  the check holds",
        "                    looked 3 times",
        "         you        please keep it running",
        "         claims     the server answers (e31)",
        "         check      ✓ chat: well-formed, 32 tokens in 0.61 s, 52 tokens/s",
        "         check      ? gpu_busy: no GPU is visible here",
        "         outcome    ready                                                 exit 0",
        "         fixes      f1 · too old · verified",
        "                    seconds to ready: 71.3",
    ):
        assert line in text.splitlines(), line


@pytest.mark.parametrize("width", [39, 60, 80, 200])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_every_width_and_encoding(width: int, ascii_only: bool) -> None:
    text = plain(story(), width=width, ascii_only=ascii_only)
    assert max(map(cell_len, text.splitlines())) <= width
    assert text.isascii() is ascii_only
    assert not [line for line in text.splitlines() if line.endswith(" ")]
    for words in ("20261130", "install", "ready"):
        assert words in text


def drawn(events: list[e.AnyEvent], **options: object) -> str:
    file = io.StringIO()
    fixed = {"width": 80, "force_terminal": True, "color_system": "standard"}
    Console(file=file, **{**fixed, **options}).print(render(events))  # type: ignore[arg-type]
    return file.getvalue()


def test_colours_only_where_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[32m" in drawn(story())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in drawn(story())
    assert "\x1b" not in plain(story())


def test_a_call_without_an_end_and_one_without_a_beginning() -> None:
    transcript = MemoryTranscript()
    transcript.append(
        ended("c9", "grep", "", status=CallStatus.UNKNOWN),
        e.CallQueued(
            call=call("c1", "pip_install", target="spark-1"), risk=Risk.CHANGE, command="x"
        ),
        e.CallStarted(call_id="c1"),
    )
    lines = plain(transcript.events).splitlines()
    assert lines[0].split() == ["00:00", "call", "grep", "e0", "?", "unknown", "0.4", "s"]
    assert lines[1:] == [
        "         change     pip_install on spark-1",
        "                    $ x",
        "                    its end is not on record",
    ]


def test_one_event_at_a_time_gives_the_same_rows() -> None:
    timeline = Timeline()
    rows = [row for event in story() for row in timeline.rows(event)]
    assert tuple(rows + timeline.unfinished()) == render(story()).rows
