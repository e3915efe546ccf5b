"""Copies that break off: what is left is told, is no danger, and is gone on with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.need import need
from tests.lab.sshd import Sshd, server
from tests.lab.weak_link import WeakLink, weak_link
from tests.ssh_host import connector
from tests.test_transfer import each, kinds  # noqa: F401 - a fixture
from tests.transfer_desk import (
    at,
    big_file,
    copied,
    here,
    interrupt_at,
    parts,
    wait_for,
)
from tools.connectors.base import Connector
from tools.connectors.ssh import Ssh
from tools.errors import ConnectionFailed, ToolFailed

MIB = 1 << 20
KILLED = """
import sys, time
from tests.transfer_desk import copied, here
def tell(text):
    print(text, flush=True)
    time.sleep(60)
copied(here(sys.argv[1]), here(sys.argv[2]), tell=tell)
"""
"""Copies until it has told something, and then hangs."""


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    with server(tmp_path / "sshd") as running:
        yield running


@pytest.fixture
def link(sshd: Sshd) -> Iterator[WeakLink]:
    """What stands between us and the server."""
    with weak_link(sshd.port) as made:
        text = sshd.config.read_text().replace(f"Port {sshd.port}", f"Port {made.port}")
        sshd.config.write_text(text)
        known = sshd.known_hosts.read_text().replace(f":{sshd.port} ", f":{made.port} ")
        sshd.known_hosts.write_text(known)
        yield made


@pytest.fixture
def spark(sshd: Sshd, link: WeakLink) -> Iterator[Ssh]:
    host = connector(sshd, alive_s=1.0)
    yield host
    host.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    need(os.geteuid() == 0, "a small tmpfs can only be mounted by root")
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True)
    need(done.returncode == 0, f"a tmpfs cannot be mounted: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_link_that_drops_costs_only_the_rest(tmp_path: Path, spark: Ssh, link: WeakLink) -> None:
    data = big_file(tmp_path / "data", 24)
    link.breaks_at = 16 * MIB
    with pytest.raises(ConnectionFailed):
        copied(here(data), at(spark, tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()
    link.mend()
    wait_for(lambda: parts(tmp_path)[0].stat().st_size > 10 * MIB)
    done = copied(here(data), at(spark, tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == data.read_bytes()
    assert done.resumed_bytes > 10 * MIB
    assert done.sent_bytes == 24 * MIB - done.resumed_bytes
    assert link.up < done.sent_bytes + MIB, "the rest alone went over the link"


def test_the_same_from_a_host(tmp_path: Path, spark: Ssh, link: WeakLink) -> None:
    data = big_file(tmp_path / "data", 24)
    link.breaks_at = 16 * MIB
    with pytest.raises(ConnectionFailed):
        copied(at(spark, data), here(tmp_path / "copy"))
    link.mend()
    done = copied(at(spark, data), here(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == data.read_bytes()
    assert done.resumed_bytes > 10 * MIB
    assert link.down < 24 * MIB - done.resumed_bytes + MIB


def test_a_link_that_freezes_ends_by_silence(tmp_path: Path, sshd: Sshd, link: WeakLink) -> None:
    data = big_file(tmp_path / "data", 16)
    patient = connector(sshd, alive_s=60.0)
    link.freezes_at = 8 * MIB
    begun = time.monotonic()
    with pytest.raises(ConnectionFailed, match="nothing moved for 2 s"):
        copied(here(data), at(patient, tmp_path / "copy"), quiet_s=2.0)
    assert time.monotonic() - begun < 20
    patient.close()
    link.cut()
    link.mend()
    other = connector(sshd)
    wait_for(lambda: not _held(parts(tmp_path)[0]))
    done = copied(here(data), at(other, tmp_path / "copy"))
    other.close()
    assert done.resumed_bytes > 4 * MIB
    assert (tmp_path / "copy").read_bytes() == data.read_bytes()


def _held(part: Path) -> bool:
    """Whether a process has a file open."""
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            if any(fd.samefile(part) for fd in folder.iterdir() if fd.exists()):
                return True
        except OSError:
            continue
    return False


@pytest.mark.parametrize("where", ["here", "ssh"])
def test_ctrl_c_ends_at_once_and_what_came_is_used(tmp_path: Path, spark: Ssh, where: str) -> None:
    data = big_file(tmp_path / "data", 8)
    to = here(tmp_path / "copy") if where == "here" else at(spark, tmp_path / "copy")
    pressed: list[float] = []
    stop = interrupt_at(tmp_path)

    def tell(text: str) -> None:
        pressed.append(time.monotonic())
        stop(text)

    with pytest.raises(KeyboardInterrupt):
        copied(here(data), to, tell=tell)
    assert time.monotonic() - pressed[0] < 4, "it did not end by itself"
    wait_for(lambda: not _held(parts(tmp_path)[0]))
    assert copied(here(data), to).sent_files == 1
    assert (tmp_path / "copy").read_bytes() == data.read_bytes()


def test_we_are_killed_and_the_next_one_goes_on(tmp_path: Path) -> None:
    data = big_file(tmp_path / "data", 8)
    words = [sys.executable, "-c", KILLED, str(data), str(tmp_path / "copy")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"copy: ")
        process.send_signal(signal.SIGKILL)
    wait_for(lambda: bool(parts(tmp_path)) and not _held(parts(tmp_path)[0]))
    assert not (tmp_path / "copy").exists()
    copied(here(data), here(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == data.read_bytes()
    assert not parts(tmp_path)


@each
def test_a_disk_without_room_is_seen_before_a_byte_is_sent(
    tmp_path: Path,
    kinds: tuple[Connector, Connector],  # noqa: F811
    small_disk: Path,
) -> None:
    data = big_file(tmp_path / "data", 9)
    with pytest.raises(ToolFailed, match=r"9437184 bytes are to come and \d+ are free"):
        copied(at(kinds[0], data), at(kinds[1], small_disk / "copy"))
    assert not list(small_disk.iterdir())


@each
def test_a_disk_that_fills_up_in_the_middle(
    tmp_path: Path,
    kinds: tuple[Connector, Connector],  # noqa: F811
    small_disk: Path,
) -> None:
    data = big_file(tmp_path / "data", 7)
    filler = small_disk / "filler"

    def fill(text: str) -> None:
        if not filler.exists():
            filler.write_bytes(bytes(4 * MIB))

    with pytest.raises((ToolFailed, ConnectionFailed), match="in the middle of the copy"):
        copied(at(kinds[0], data), at(kinds[1], small_disk / "copy"), tell=fill)
    assert not (small_disk / "copy").exists()
    filler.unlink()
    done = copied(at(kinds[0], data), at(kinds[1], small_disk / "copy"))
    assert done.resumed_bytes > 0
    assert (small_disk / "copy").read_bytes() == data.read_bytes()


@each
def test_a_flipped_byte_in_what_was_there_is_found(
    tmp_path: Path,
    kinds: tuple[Connector, Connector],  # noqa: F811
) -> None:
    data = big_file(tmp_path / "data", 2)
    with pytest.raises(KeyboardInterrupt):
        copied(at(kinds[0], data), at(kinds[1], tmp_path / "copy"), tell=interrupt_at(tmp_path))
    (part,) = parts(tmp_path)
    torn = bytearray(data.read_bytes()[:MIB])
    torn[77] ^= 1
    part.write_bytes(torn)
    copied(at(kinds[0], data), at(kinds[1], tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == data.read_bytes()


@each
def test_a_source_that_changes_meanwhile_gives_no_file(
    tmp_path: Path,
    kinds: tuple[Connector, Connector],  # noqa: F811
) -> None:
    data = big_file(tmp_path / "data", 24)

    def change(text: str) -> None:
        with data.open("r+b") as file:
            file.truncate(23 * MIB)

    with pytest.raises(ToolFailed, match="changed while it was read"):
        copied(at(kinds[0], data), at(kinds[1], tmp_path / "copy"), tell=change)
    assert not (tmp_path / "copy").exists()
    copied(at(kinds[0], data), at(kinds[1], tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == data.read_bytes()


@each
def test_a_target_that_may_not_be_written_to(
    tmp_path: Path,
    kinds: tuple[Connector, Connector],  # noqa: F811
    small_disk: Path,
) -> None:
    (tmp_path / "data").write_text("data")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(ToolFailed, match="nothing may be written to"):
        copied(at(kinds[0], tmp_path / "data"), at(kinds[1], small_disk / "sub/copy"))


@each
def test_two_copies_to_one_place_never_mix(
    tmp_path: Path,
    kinds: tuple[Connector, Connector],  # noqa: F811
) -> None:
    data = big_file(tmp_path / "data", 4)
    refusals: list[str] = []
    started = threading.Event()

    def second(text: str) -> None:
        if started.is_set():
            return
        started.set()
        wait_for(lambda: bool(parts(tmp_path)))
        with pytest.raises(ToolFailed) as caught:
            copied(at(kinds[0], data), at(kinds[1], tmp_path / "copy"))
        refusals.append(str(caught.value))

    copied(at(kinds[0], data), at(kinds[1], tmp_path / "copy"), tell=second)
    assert "another transfer is writing" in refusals[0]
    assert (tmp_path / "copy").read_bytes() == data.read_bytes()
    assert not parts(tmp_path)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """119 GB must be thinkable: what we hold of a file does not depend on its size."""
    script = (
        "import resource, sys; from tests.transfer_desk import copied, here\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "copied(here(sys.argv[1]), here(sys.argv[2])); first = peak()\n"
        "copied(here(sys.argv[3]), here(sys.argv[4])); print(peak() - first)\n"
    )
    (tmp_path / "small").write_bytes(bytes(MIB))
    with (tmp_path / "large").open("wb") as file:
        file.truncate(300 * MIB)
    words = [str(tmp_path / name) for name in ("small", "small copy", "large", "large copy")]
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 20 * 1024, "KiB"
