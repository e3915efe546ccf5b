"""Long outputs are kept whole beside the transcript: redacted, by their hash, within bounds."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.outputs import HOLD, MIB, WINDOW, Outputs
from agent.redact import Redactor
from tests.lab.checkout import ROOT
from tools.command import Command, Kept, Result
from tools.connectors.base import HEAD_BYTES, TAIL_BYTES
from tools.connectors.local import Local

VALUE = "hunter2-correct-horse"
HOME = "/home/somebody"


def outputs(folder: Path, most_bytes: int = 1024 * MIB) -> Outputs:
    return Outputs(folder / "outputs", lambda: Redactor({"KEY": VALUE}, {"home": HOME}), most_bytes)


def printed(folder: Path, code: str, kept: Outputs | None = None, timeout_s: float = 60) -> Result:
    command = Command.of(sys.executable, "-c", code, timeout_s=timeout_s)
    return Local(kept or outputs(folder)).run(command)


def whole(folder: Path, kept: Kept | None) -> str:
    """The kept text; its name is its hash, and nobody else may read it."""
    assert kept is not None
    path = folder / "outputs" / kept.sha256
    data = path.read_bytes()
    assert hashlib.sha256(data).hexdigest() == kept.sha256
    assert len(data) == kept.bytes
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    return data.decode()


def test_a_long_output_is_kept_whole_and_named(tmp_path: Path) -> None:
    code = "import sys\nfor n in range(200_000): print('line', n)\nprint('bad', file=sys.stderr)"
    result = printed(tmp_path, code)
    assert whole(tmp_path, result.stdout_kept) == "".join(f"line {n}\n" for n in range(200_000))
    assert result.stdout_kept is not None
    assert result.stdout_kept.note == ""
    assert result.stderr_kept is None, "nothing is left out of it"
    place = f"{result.stdout_omitted} bytes left out; the whole: outputs/"
    assert f"{place}{result.stdout_kept.sha256} ...]" in result.stdout
    assert result.stdout.endswith("line 199999\n")
    again = printed(tmp_path, code)
    assert again.stdout_kept == result.stdout_kept
    assert len([*(tmp_path / "outputs").iterdir()]) == 1


@pytest.mark.parametrize("size", [HEAD_BYTES + TAIL_BYTES, HEAD_BYTES + TAIL_BYTES + 1])
def test_only_what_is_left_out_needs_a_file(tmp_path: Path, size: int) -> None:
    result = printed(tmp_path, f"print('x' * {size}, end='')")
    if size > HEAD_BYTES + TAIL_BYTES:
        assert whole(tmp_path, result.stdout_kept) == "x" * size
    else:
        assert result.stdout_kept is None
        assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize("shift", range(0, 60, 14))
@pytest.mark.parametrize("form", ["plain", "wrapped", "path", "token", "joined"])
def test_no_cut_lets_a_secret_through(tmp_path: Path, form: str, shift: int) -> None:
    """Secrets stand across every place where a window may be cut, in every form."""
    token = "hf_" + "aB3dE6gH9jK2mN5p" * 2
    secret = {
        "plain": VALUE,
        "wrapped": f"{VALUE[:9]}\n{VALUE[9:]}",
        "path": f"\n./{HOME}/x",
        "token": f" {token} ",
        "joined": f"\n{VALUE}" * 4,
    }[form]
    text = ""
    for place in (WINDOW - HOLD, WINDOW, 2 * (WINDOW - HOLD), 2 * WINDOW - HOLD):
        text += "." * (place - len(text) - len(secret) + shift) + secret
    text += "\n" + "y" * WINDOW
    kept = outputs(tmp_path)
    sheet = kept.open()
    for start in range(0, len(text), 4099):
        sheet.write(text[start : start + 4099])
    found = whole(tmp_path, sheet.close())
    assert found == kept.redactor().redact(text)
    flat = found.replace("\n", "")
    assert not any(value in flat for value in (VALUE, VALUE[:12], token, token[:18], HOME))


def test_a_key_without_an_end_is_not_kept(tmp_path: Path) -> None:
    sheet = outputs(tmp_path).open()
    sheet.write("before\n-----BEGIN PRIVATE KEY-----\n" + "MIIEvQ\n" * 300_000)
    kept = sheet.close()
    assert "cannot be checked" in kept.note
    assert not [path for path in (tmp_path / "outputs").glob("*") if b"MIIE" in path.read_bytes()]


def test_the_limit_of_a_run_is_said(tmp_path: Path) -> None:
    kept = outputs(tmp_path, MIB)
    first = printed(tmp_path, "print('é' * 400_000, end='')", kept)
    second = printed(tmp_path, "print('é' * 400_001, end='')", kept)
    assert first.stdout_kept == Kept(first.stdout_kept.sha256 if first.stdout_kept else "", 800_000)
    assert whole(tmp_path, second.stdout_kept) == "é" * ((MIB - 800_000) // 2)
    assert second.stdout_kept is not None
    assert second.stdout_kept.note.startswith("only its first 248576 bytes")
    assert "kept_output_mib" in second.stdout
    again = printed(tmp_path, "print('z' * 400_000)", outputs(tmp_path, MIB))
    assert again.stdout_kept is not None
    assert again.stdout_kept.sha256 == "", "what an earlier part of the run kept counts"
    assert again.ok


def test_a_full_disk_is_said_and_breaks_nothing(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("mounting a small file system needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
    try:
        result = printed(disk, "print('x' * 3_000_000)")
        assert result.ok
        assert result.stdout_kept == Kept(
            "", note="the whole was not kept: No space left on device"
        )
        assert "No space left on device ...]" in result.stdout
        assert [*(disk / "outputs").iterdir()] == [], "the room is given back"
    finally:
        subprocess.run(["umount", disk], check=True)


def test_what_was_cut_off_leaves_no_file(tmp_path: Path) -> None:
    seen: list[int] = []

    def listener(stream: str, text: str) -> None:
        seen.append(len(text))
        if sum(seen) > 2_000_000:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError):
        Local(outputs(tmp_path)).run(Command.of("yes", timeout_s=20), listener)
    assert [*(tmp_path / "outputs").iterdir()] == []
    half = tmp_path / "outputs" / ".1-1.part"
    half.write_text("of a run that was killed")
    assert printed(tmp_path, "print('x' * 400_000)").stdout_kept is not None
    assert not half.exists()


def test_memory_does_not_grow_with_the_output(tmp_path: Path) -> None:
    program = f"""
import resource, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from tests.test_outputs import outputs
from tools.command import Command
from tools.connectors.local import Local
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def run(count):
    words = ("sh", "-c", f"yes 'a line of a long output' | head -c {{count}}")
    return Local(outputs(Path({str(tmp_path)!r}))).run(Command.of(*words, timeout_s=120))
run(3_000_000)
before = peak()
result = run(300_000_000)
assert result.stdout_kept.bytes == 300_000_000, result
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 30_000
