"""Writing and reading transcripts: what is written is what is read: redacted, private, chained."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pickle
import stat
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from agent import schema_doc
from agent.events import AnyEvent, CallEnded, LimitReached, NoteAdded, RunStarted
from agent.redact import Redactor
from agent.transcript import MemoryTranscript, Transcript, TranscriptError, read
from agent.values import CallStatus

CANARY = "canary-4711"
NOTHING = Redactor({}, {})


def header(**more: Any) -> RunStarted:
    fields: dict[str, Any] = {
        "run_id": "r1",
        "started_at": "2026-11-30T14:22:33+01:00",
        "seed": "5eed",
        "version": "0.1.0",
        "goal": {"kind": "serve", "model": "m"},
        "brain": "playbook",
        "mode": "supervised",
        "interactive": True,
    }
    return RunStarted.model_validate(fields | more)


def filled(kind: Any, text: str) -> Any:
    """Build a value of any type that an event may hold, with ``text`` wherever text fits."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return {text: [{"deep": text}]}
    if origin is Literal:
        return args[0]
    if origin in (Union, UnionType):
        return filled(args[0], text)
    if origin is tuple:
        return (filled(args[0], text),)
    if origin is dict:
        return {text: filled(args[1], text)}
    return filled_class(kind, text)


def filled_class(kind: type[Any], text: str) -> Any:
    if kind is str:
        return text
    if issubclass(kind, Enum):
        return next(iter(kind))
    if issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        names = getattr(kind, "model_fields", None) or [f.name for f in dataclasses.fields(kind)]
        return kind(**{name: filled(hints[name], text) for name in names})
    return kind(1)


def every_event(text: str) -> list[Any]:
    return [filled(kind, text) for kind in schema_doc.EVENTS]


def texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [found for pair in value.items() for part in pair for found in texts_in(part)]
    if isinstance(value, list):
        return [found for item in value for found in texts_in(item)]
    return []


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "r1" / "transcript.jsonl"


def test_what_is_written_is_what_is_read(path: Path) -> None:
    times = iter([0.0, 1.5, 1.2, 9.0])
    with Transcript.create(path, NOTHING, lambda: next(times)) as transcript:
        assert transcript.append() == []
        first = transcript.append(header())
        both = transcript.append(NoteAdded(text="a\u2028b\nü漢"), NoteAdded(text="«home»"))
        transcript.append(*every_event("x"))
        events = transcript.events
    loaded = read(path)
    assert loaded.problems == ()
    assert list(loaded.events) == events
    assert events[:3] == first + both
    assert [event.seq for event in events] == list(range(len(events)))
    assert [event.t for event in events[:4]] == [0.0, 1.5, 1.5, 1.5]
    assert b"\r" not in path.read_bytes()


def test_each_line_names_the_one_before(path: Path) -> None:
    with Transcript.create(path, NOTHING) as transcript:
        transcript.append(header(), NoteAdded(text="a"), NoteAdded(text="b"))
    lines = path.read_bytes().splitlines()
    prevs = [json.loads(line)["prev"] for line in lines]
    hashes = [hashlib.sha256(line).hexdigest()[:16] for line in lines]
    assert prevs == ["", hashes[0], hashes[1]]


def test_canaries_in_every_event_reach_no_file(path: Path) -> None:
    redactor = Redactor({"HF_TOKEN": CANARY}, {"home": "/home/canary"})
    text = f"x {CANARY} /home/canary/y https://u:canarypw@h hf_canary0123456789abcdef"
    with Transcript.create(path, redactor) as transcript:
        transcript.append(header())
        written = transcript.append(*every_event(text))
        transcript.append(NoteAdded(text="/home/canary"))
    kinds = {event.type for event in written}
    assert kinds == {kind.model_fields["type"].default for kind in schema_doc.EVENTS}
    for file in path.parent.iterdir():
        assert b"canary" not in file.read_bytes()
    clean = "x «secret:HF_TOKEN» «home»/y https://u:«secret:shape-1»@h «secret:shape-2»"
    for event in written:
        found = [item for item in texts_in(event.model_dump(mode="json")) if "x «" in item]
        assert found, event.type
        assert set(found) == {clean}
    assert list(read(path).events) == transcript.events


def test_files_are_private_whatever_the_umask(path: Path) -> None:
    old = os.umask(0)
    try:
        with Transcript.create(path, NOTHING) as transcript:
            transcript.append(header())
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    modes = {item.name: stat.S_IMODE(item.stat().st_mode) for item in path.parent.iterdir()}
    assert modes == {"transcript.jsonl": 0o600, "lock": 0o600}


def test_a_run_is_never_written_over(path: Path) -> None:
    Transcript.create(path, NOTHING).close()
    with pytest.raises(TranscriptError, match="File exists; a run is never written over"):
        Transcript.create(path, NOTHING)
    path.unlink()
    path.symlink_to(path.parent / "elsewhere")
    with pytest.raises(TranscriptError, match="never written over"):
        Transcript.create(path, NOTHING)


def test_an_unwritable_folder_is_named_at_once() -> None:
    with pytest.raises(TranscriptError, match=r"/proc/x/transcript.jsonl.*BRINGUP_RUNS_DIR"):
        Transcript.create(Path("/proc/x/transcript.jsonl"), NOTHING)


def test_resume_goes_on_with_number_time_and_chain(path: Path) -> None:
    with Transcript.create(path, Redactor({}, {}), lambda: 7.0) as transcript:
        transcript.append(header(), NoteAdded(text="https://u:one@h"))
    with Transcript.resume(path, Redactor({}, {}), lambda: 0.5) as again:
        assert again.events == transcript.events
        assert again.problems == []
        again.append(NoteAdded(text="https://u:two@h"))
    loaded = read(path)
    assert loaded.problems == ()
    assert list(loaded.events) == again.events
    event = loaded.events[-1]
    assert isinstance(event, NoteAdded)
    assert (event.seq, event.t, event.text) == (2, 7.5, "https://u:«secret:shape-2»@h")


def test_nothing_to_resume(path: Path) -> None:
    with pytest.raises(TranscriptError, match="no transcript here"):
        Transcript.resume(path, NOTHING)


def test_closed_is_closed(path: Path) -> None:
    transcript = Transcript.create(path, NOTHING)
    transcript.close()
    transcript.close()
    with pytest.raises(TranscriptError, match="it is closed"):
        transcript.append(header())


def test_subscribers_hear_of_events_that_are_on_the_disk(path: Path) -> None:
    heard: list[tuple[str, int]] = []

    def on_disk(event: AnyEvent) -> None:
        heard.append((event.id, len(path.read_bytes().splitlines())))

    def broken(event: AnyEvent) -> None:
        raise BrokenPipeError(32, "hf_canary0123456789abcdef")

    with Transcript.create(path, NOTHING) as transcript:
        transcript.subscribe(broken)
        transcript.subscribe(on_disk)
        transcript.append(header(), NoteAdded(text="a"))
        transcript.append(NoteAdded(text="b"))
    assert heard == [("e0", 2), ("e1", 2), ("e2", 3)]
    (problem,) = transcript.problems
    assert "failed at e0 and was switched off: BrokenPipeError" in problem
    assert "canary" not in problem
    assert len(read(path).events) == 3


def test_a_subscriber_that_writes_is_heard_in_order() -> None:
    transcript = MemoryTranscript()
    heard: list[str] = []

    def answer(event: AnyEvent) -> None:
        if event.type == "note" and event.text == "a":
            transcript.append(NoteAdded(text="b"))

    transcript.subscribe(answer)
    transcript.subscribe(lambda event: heard.append(event.id))
    transcript.append(NoteAdded(text="a"))
    assert heard == ["e0", "e1"]


def test_memory_writes_the_same_events_as_a_file(path: Path) -> None:
    with Transcript.create(path, Redactor({}, {"home": "/h/u"}), lambda: 1.0) as transcript:
        transcript.append(header(), NoteAdded(text="/h/u/x"))
    memory = MemoryTranscript(Redactor({}, {"home": "/h/u"}), lambda: 1.0)
    memory.append(header(), NoteAdded(text="/h/u/x"))
    assert memory.events == transcript.events
    assert MemoryTranscript().append(NoteAdded(text="/h/u/x"))[0].text == "/h/u/x"  # type: ignore[union-attr]


def test_hostile_values_are_written_readably_or_not_at_all(path: Path) -> None:
    deep: Any = "bottom"
    for _ in range(400):
        deep = [deep]
    seen = {"deep": deep, "nan": float("nan"), "huge": 10**40, "lone\udcff": "\x00\ud800"}
    event = CallEnded(call_id="c", tool="t", status=CallStatus.OK, observation=seen)
    with Transcript.create(path, NOTHING) as transcript:
        transcript.append(header(), event)
        with pytest.raises(TranscriptError, match="LimitReached event could not be read again"):
            transcript.append(
                NoteAdded(text="x"), LimitReached(name="a", value=float("inf"), text="")
            )
        transcript.append(NoteAdded(text="after"))
    loaded = read(path)
    assert loaded.problems == ()
    assert list(loaded.events) == transcript.events
    assert [event.type for event in loaded.events] == ["run_started", "call_ended", "note"]


def test_an_event_number_of_six_digits(path: Path) -> None:
    path.parent.mkdir(parents=True)
    line = header(seq=0).model_dump_json().encode()
    with path.open("wb") as file:
        for seq in range(1, 100_001):
            file.write(line + b"\n")
            prev = hashlib.sha256(line).hexdigest()[:16].encode()
            line = b'{"type":"note","text":"n","seq":%d,"prev":"%s"}' % (seq, prev)
        file.write(line + b"\n")
    with Transcript.resume(path, NOTHING) as transcript:
        transcript.append(NoteAdded(text="n"))
    loaded = read(path)
    assert loaded.problems == ()
    assert [event.seq for event in loaded.events] == list(range(100_002))
    assert loaded.events[-1].id == "e100001"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"hello\n", "no whole event"),
        (b"hello\nworld\n", "not a transcript of bringup"),
        (b"- !!python/object/apply:os.system ['touch PWNED']\n- x\n", "not a transcript"),
        (pickle.dumps(Path("x")), "not a transcript"),
        (b'{"type":"run_started","format":1}\n{"a":1}\n', "not a transcript"),
        (b'{"type":"run_started","format":2,"new":{"field":1}}\n', "format 2.*use a newer bringup"),
    ],
)
def test_what_is_no_transcript_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "t.jsonl"
    file.write_bytes(content)
    with pytest.raises(TranscriptError, match=reason):
        read(file)
    with pytest.raises(TranscriptError, match=reason):
        Transcript.resume(file, NOTHING)
    assert file.read_bytes() == content
    assert not Path("PWNED").exists()


@pytest.mark.parametrize("name", ["missing", ".", "/dev/zero", "nul\0byte", "n" * 300])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(TranscriptError, match=r"cannot read the transcript|not a file"):
        read(tmp_path / name)
