"""Copies over ssh beside ``scp`` and ``rsync``: a large file, many small ones, a file's rest.

All go to a server of our own on loopback, from memory to memory (``/dev/shm``), so that no disk is
measured. Ours compares every file's sha256 and brings it to the disk; the others do neither. Ours
uses the open connection of a run, as runs do; theirs are processes that open one each time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.rounds import Case, Figures, Rounds, interleave, say
from tests.bench.table import Row, short
from tests.lab.need import need
from tests.lab.sshd import Sshd, server
from tests.ssh_host import connector
from tools.connectors.local import Local
from tools.connectors.ssh import Ssh
from tools.transfer_session import Copy, copy
from tools.transfer_side import Place

LARGE, SMALL, COUNT = 200_000_000, 2_000, 2_000
"""Bytes of the large file; bytes of each small one, and how many there are."""
MOST_TIMES = 0.67
"""Target: time beside scp's."""
MEMORY = Path("/dev/shm")  # noqa: S108
"""A file system in memory: a disk would be what is measured."""


def rows(rounds: int) -> list[Row]:
    """Measure so many rounds; none where none are asked for."""
    if not rounds:
        return []
    try:
        need(MEMORY.is_dir() and shutil.which("scp") is not None, f"no scp, or no {MEMORY}")
        with tempfile.TemporaryDirectory(prefix="bringup-bench-", dir=MEMORY) as name:
            folder = Path(name)
            with server(folder / "sshd", Subsystem="sftp internal-sftp") as sshd:
                host = connector(sshd)
                try:
                    return _Bench(folder, sshd, host).rows(rounds)
                finally:
                    host.close()
    except pytest.skip.Exception as missing:
        return [Row("copies over ssh", f"skipped: {missing}")]


class _Bench:
    """A folder in memory, and a host that is this machine."""

    def __init__(self, folder: Path, sshd: Sshd, host: Ssh) -> None:
        self._folder, self._sshd, self._host = folder, sshd, host
        self._large, self._small = folder / "large", folder / "small"
        self._large.write_bytes(os.urandom(LARGE))
        self._small.mkdir()
        for number in range(COUNT):
            inner = self._small / str(number % 20)
            inner.mkdir(exist_ok=True)
            (inner / str(number)).write_bytes(os.urandom(SMALL))
        self._to = folder / "to"

    def rows(self, rounds: int) -> list[Row]:
        """Measure, and return the table's lines."""
        table = []
        up = self._measured(self._large, self._up, self._theirs(self._large, up=True), rounds)
        table += _beside("200 MB to a host", up, MOST_TIMES)
        down = self._measured(self._large, self._down, self._theirs(self._large, up=False), rounds)
        table += _beside("200 MB from a host", down, MOST_TIMES)
        many = self._measured(self._small, self._up, self._theirs(self._small, up=True), rounds)
        table += _beside("2,000 files of 2 kB to a host", many, 1.0)
        return [*table, self._rest(rounds)]

    def _measured(
        self, what: Path, ours: Callable[[Path], None], theirs: dict[str, list[str]], rounds: int
    ) -> Rounds:
        cases: dict[str, Case] = {"ours": self._case(lambda: ours(what))}
        for name, words in theirs.items():
            cases[name] = self._case(lambda words=words: _run(words))  # type: ignore[misc]
        return interleave(cases, rounds)

    def _case(self, work: Callable[[], None]) -> Case:
        def case() -> Figures:
            if self._to.is_dir():
                shutil.rmtree(self._to)
            self._to.unlink(missing_ok=True)
            begin = time.perf_counter()
            work()
            return {"s": time.perf_counter() - begin}

        return case

    def _up(self, what: Path) -> None:
        copy(Copy(self._here(what), Place(self._host, str(self._to))), lambda text: None)

    def _down(self, what: Path) -> None:
        copy(Copy(Place(self._host, str(what)), self._here(self._to)), lambda text: None)

    def _here(self, path: Path) -> Place:
        return Place(Local(), str(path), sys.executable)

    def _theirs(self, what: Path, *, up: bool) -> dict[str, list[str]]:
        ends = [str(what), f"spark:{self._to}"] if up else [f"spark:{what}", str(self._to)]
        config = str(self._sshd.config)
        found = {"scp": ["scp", "-q", "-r", "-F", config, *ends]}
        if shutil.which("rsync"):
            slash = "/" if what.is_dir() else ""
            ends[0] += slash
            found["rsync"] = ["rsync", "-a", "-W", "-e", f"ssh -F {config}", *ends]
        return found

    def _rest(self, rounds: int) -> Row:
        """What the rest of a file costs, where a copy broke off before it."""

        def again() -> Figures:
            self._case(lambda: None)()
            wish = Copy(self._here(self._large), Place(self._host, str(self._to)))
            with pytest.raises(_Enough):
                copy(wish, _stop_late)
            begin = time.perf_counter()
            done = copy(wish, lambda text: None)
            lasted = time.perf_counter() - begin
            return {"s": lasted, "part": done.sent_bytes / done.bytes}

        whole = self._case(lambda: self._up(self._large))
        taken = interleave({"rest": again, "whole": whole}, rounds)
        ratio = taken.ratio("rest", "whole", "s")
        part = taken.median("rest", "part")
        return Row(
            f"going on with 200 MB of which {part:.0%} is missing",
            short(taken.median("rest", "s"), "s"),
            "all of it",
            short(taken.median("whole", "s"), "s"),
            ratio,
        )


class _Enough(Exception):
    """The copy is to break off here."""


def _stop_late(text: str) -> None:
    percent = text.partition("copy: ")[2].partition("%")[0]
    if percent.isdigit() and int(percent) >= 40:
        raise _Enough


def _run(words: list[str]) -> None:
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)


def _beside(what: str, taken: Rounds, most: float) -> list[Row]:
    found = []
    for name in (it for it in taken.figures if it != "ours"):
        ratio = taken.ratio("ours", name, "s")
        times = (short(taken.median(it, "s"), "s") for it in ("ours", name))
        row = Row(what, next(times), name, next(times), ratio)
        found.append(replace(row, judged=ratio, at_most=most) if name == "scp" else row)
    say(f"{what}: measured")
    return found


if __name__ == "__main__":
    from tests.bench.table import markdown

    sys.stdout.write(markdown(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 5)))
