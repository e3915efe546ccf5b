"""Transcripts when things go wrong: kills, torn and changed lines, full disks, two writers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agent.events import NoteAdded, RunStarted
from agent.lock import owner
from agent.redact import Redactor
from agent.transcript import Transcript, TranscriptError, read

ROOT = Path(__file__).parent.parent
NOTHING = Redactor({}, {})
HEADER = RunStarted(
    run_id="r1",
    started_at="2026-11-30T14:22:33+01:00",
    seed="5eed",
    version="0.1.0",
    goal={"kind": "serve"},
    brain="playbook",
    mode="supervised",
    interactive=True,
)
# Appends for ever and says, after each append, how many events are on the disk.
WRITER = """
import resource, sys
from pathlib import Path
from agent.events import NoteAdded
from agent.redact import Redactor
from agent.transcript import Transcript, TranscriptError
from agent.events import RunStarted

path, header, most = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
if most:
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
transcript = Transcript.create(path, Redactor({}, {}))
transcript.append(RunStarted.model_validate_json(header))
print(1, flush=True)
try:
    while True:
        transcript.append(NoteAdded(text="n" * 300), NoteAdded(text="m" * 700))
        print(len(transcript.events), flush=True)
except TranscriptError as error:
    print(error, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "r1" / "transcript.jsonl"


@pytest.fixture
def three(path: Path) -> Path:
    """A transcript of three events."""
    with Transcript.create(path, NOTHING) as transcript:
        transcript.append(HEADER, NoteAdded(text="äöü one"), NoteAdded(text="äöü two"))
    return path


@pytest.fixture
def writers() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate(timeout=10)


def start(writers: list[subprocess.Popen[str]], path: Path, most: int = 0) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", WRITER, str(path), HEADER.model_dump_json(), str(most)]
    writers.append(subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True))
    return writers[-1]


def said(process: subprocess.Popen[str]) -> str:
    if process.stdout is None:
        pytest.fail("the writer has no standard output")
    return process.stdout.readline().strip()


@pytest.mark.parametrize("index", range(6))
def test_a_killed_writer_loses_nothing_that_it_said(
    writers: list[subprocess.Popen[str]], path: Path, index: int
) -> None:
    process = start(writers, path)
    count = 0
    for _ in range(index + 1):
        count = int(said(process))
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=10)
    assert owner(path.with_name("lock")) is None
    loaded = read(path)
    assert len(loaded.events) >= count == 1 + 2 * index
    assert [event.seq for event in loaded.events] == list(range(len(loaded.events)))
    with Transcript.resume(path, NOTHING) as transcript:
        transcript.append(NoteAdded(text="on"))
    again = read(path)
    assert again.problems == ()
    assert len(again.events) == len(loaded.events) + 1


def test_two_writers(writers: list[subprocess.Popen[str]], path: Path) -> None:
    process = start(writers, path)
    assert said(process) == "1"
    assert owner(path.with_name("lock")) == process.pid
    with pytest.raises(TranscriptError, match=rf"process {process.pid} is writing this run"):
        Transcript.resume(path, NOTHING)
    with pytest.raises(TranscriptError, match=rf"process {process.pid} is writing this run"):
        Transcript.create(path.with_name("other.jsonl"), NOTHING)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=10)
    with Transcript.resume(path, NOTHING) as transcript:
        assert owner(path.with_name("lock")) == os.getpid()
        with pytest.raises(TranscriptError, match=rf"process {os.getpid()} is writing"):
            Transcript.resume(path, NOTHING)
        transcript.append(NoteAdded(text="on"))
    assert owner(path.with_name("lock")) is None
    assert read(path).problems == ()


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", "no JSON", '{"pid": 1, "start": "0"}', '{"pid": -1, "start": ""}', "\xff"],
)
def test_a_stale_or_damaged_lock_is_taken_over(three: Path, text: str) -> None:
    lock = three.with_name("lock")
    lock.write_text(text, encoding="latin-1")
    assert owner(lock) is None
    Transcript.resume(three, NOTHING).close()


def test_truncated_at_every_byte_of_the_last_line(three: Path, tmp_path: Path) -> None:
    whole = three.read_bytes()
    start_of_last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for size in range(start_of_last, len(whole)):
        path = tmp_path / f"{size}" / "t.jsonl"
        path.parent.mkdir()
        path.write_bytes(whole[:size])
        loaded = read(path)
        if size == len(whole) - 1:  # only the line break is missing
            assert (len(loaded.events), loaded.problems) == (3, ())
        else:
            assert len(loaded.events) == 2
            lost = size - start_of_last
            expected = [f"the last line is incomplete and left out ({lost} bytes)"] if lost else []
            assert [problem.partition(": ")[2] for problem in loaded.problems] == expected
        with Transcript.resume(path, NOTHING) as transcript:
            assert tuple(transcript.problems) == loaded.problems
            transcript.append(NoteAdded(text="on"))
        again = read(path)
        assert again.problems == ()
        assert [event.seq for event in again.events] == list(range(len(loaded.events) + 1))


def test_zeros_after_a_power_cut(three: Path) -> None:
    whole = three.read_bytes()
    three.write_bytes(whole + b"\0" * 4096)
    assert len(read(three).events) == 3
    Transcript.resume(three, NOTHING).close()
    assert three.read_bytes() == whole


@pytest.mark.parametrize(
    "line", [b"", b"\0\0", b'{"type":"note"', b'{"type":"gossip"}', b"\xff\xfe"]
)
def test_a_corrupt_middle_line_is_named(three: Path, line: bytes) -> None:
    lines = three.read_bytes().split(b"\n")
    three.write_bytes(b"\n".join([lines[0], line, *lines[2:]]))
    loaded = read(three)
    assert [event.seq for event in loaded.events] == [0, 2]
    (problem,) = loaded.problems
    assert f"{three}: line 2 cannot be read and is left out: " in problem
    with Transcript.resume(three, NOTHING) as transcript:
        assert transcript.append(NoteAdded(text="on"))[0].seq == 3
    assert read(three).problems == loaded.problems


def test_a_corrupt_header_is_named(three: Path) -> None:
    three.write_bytes(b"#" + three.read_bytes())
    loaded = read(three)
    assert [event.seq for event in loaded.events] == [1, 2]
    assert "the header is missing" in loaded.problems[0]
    assert "line 1 cannot be read" in loaded.problems[1]


@pytest.mark.parametrize("change", ["edited", "removed", "swapped", "repeated"])
def test_a_changed_line_breaks_the_chain(path: Path, change: str) -> None:
    with Transcript.create(path, NOTHING) as transcript:
        transcript.append(HEADER, *[NoteAdded(text=f"note {n}") for n in range(4)])
    lines = path.read_bytes().splitlines(keepends=True)
    if change == "edited":
        lines[2] = lines[2].replace(b"note 1", b"note 9")
    elif change == "removed":
        del lines[2]
    elif change == "swapped":
        lines[2], lines[3] = lines[3], lines[2]
    else:
        lines.insert(2, lines[1])
    path.write_bytes(b"".join(lines))
    problems = read(path).problems
    broken = [problem.split(": ")[1] for problem in problems if "the chain is broken" in problem]
    first = {"edited": "line 4", "removed": "line 3", "swapped": "line 3", "repeated": "line 3"}
    assert broken[0] == first[change]
    assert len(problems) == len(broken)


def test_a_size_limit_is_a_clear_error(writers: list[subprocess.Popen[str]], path: Path) -> None:
    process = start(writers, path, most=4000)
    words = [said(process) for _ in range(5)]
    assert words[:4] == ["1", "3", "5", "7"]
    assert words[4] == (
        f"{path}: cannot write the transcript: File too large;"
        " make room there, then go on with `bringup resume`"
    )
    process.wait(timeout=10)
    loaded = read(path)
    assert (len(loaded.events), loaded.problems) == (7, ())
    assert path.stat().st_size < 4000


def test_a_change_after_a_corrupt_line_is_seen_too(path: Path) -> None:
    with Transcript.create(path, NOTHING) as transcript:
        transcript.append(HEADER, *[NoteAdded(text=f"note {n}") for n in range(4)])
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = b"gone\n"
    lines[3] = lines[3].replace(b"note 2", b"note 9")
    path.write_bytes(b"".join(lines))
    spots = [problem.split(": ")[1] for problem in read(path).problems]
    assert [spot[:6] for spot in spots] == ["line 2", "line 5"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("cannot mount a small disk here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(transcript: Transcript) -> None:
    for _ in range(100):
        transcript.append(NoteAdded(text="n" * 3000), NoteAdded(text="m"))


def test_a_full_disk_loses_no_event_and_ends_with_room(small_disk: Path) -> None:
    filler = small_disk / "filler"
    path = small_disk / "r1" / "transcript.jsonl"
    with Transcript.create(path, NOTHING) as transcript:
        transcript.append(HEADER)
        filler.write_bytes(b"x" * 30_000)
        with pytest.raises(TranscriptError, match="No space left on device; make room there"):
            fill(transcript)
        full = read(path)
        assert full.problems == ()
        assert list(full.events) == transcript.events
        assert 3 <= len(full.events) < 50
        filler.unlink()
        transcript.append(NoteAdded(text="on"))
        assert list(read(path).events) == transcript.events
    assert read(path).problems == ()


def test_no_room_for_a_new_run(small_disk: Path) -> None:
    with suppress(OSError):
        (small_disk / "filler").write_bytes(b"x" * 200_000)
    with pytest.raises(
        TranscriptError, match=r"cannot create .*No space left on device; make room"
    ):
        Transcript.create(small_disk / "r1" / "transcript.jsonl", NOTHING)
