"""Commands over ssh beside OpenSSH's ControlMaster: time, round trips, memory, and long outputs."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bench.processes import figures
from tests.bench.rounds import Figures, interleave
from tests.bench.table import Row, short
from tests.lab.sshd import Sshd, server
from tests.lab.wire import wire
from tests.ssh_host import connector
from tools.command import Command
from tools.connectors.base import Connector
from tools.connectors.ssh import Ssh

MOST_TIMES, MOST_TRIPS, MOST_GROWTH, MOST_MIB = 0.5, 1.2, 1.1, 100.0
"""Targets: time beside ControlMaster; round trips of a command; late commands beside early ones;
growth of memory with 2 GB of output."""
SERIES, MANY = 40, 500
READ = ("cat", "/etc/hostname")
BULK = ("head", "-c", "5000000", "/dev/zero")
SCRIPT = Command.of("sh", "-s", stdin="cat /etc/hostname\n")


def rows(rounds: int) -> list[Row]:
    """Measure over a server of our own, on loopback; none where no rounds are asked for."""
    if not rounds:
        return []
    try:
        with (
            tempfile.TemporaryDirectory(prefix="bringup-bench-") as folder,
            server(Path(folder)) as sshd,
        ):
            found = [*_beside(sshd, rounds), *_trips(sshd, rounds), *_many(sshd)]
    except pytest.skip.Exception as missing:
        return [Row("commands over ssh", f"skipped: {missing}")]
    return [*found, *_long_outputs()]


def _beside(sshd: Sshd, rounds: int) -> list[Row]:
    """Run the same commands over a connection of ours and over one that ControlMaster holds."""
    with _reached(sshd) as host, _master(sshd) as ssh:

        def theirs(words: tuple[str, ...]) -> None:
            subprocess.run(
                [*ssh, *words], check=True, stdin=subprocess.DEVNULL, capture_output=True
            )

        def ours(words: tuple[str, ...]) -> None:
            _need_ok(host, Command(words))

        cases = {
            "ours": _timed(lambda: ours(READ), SERIES),
            "theirs": _timed(lambda: theirs(READ), SERIES),
            "ours, 5 MB": _timed(lambda: ours(BULK), 3),
            "theirs, 5 MB": _timed(lambda: theirs(BULK), 3),
        }
        taken = interleave(cases, max(3, rounds))
    table = []
    for what, end in (("a command on an open connection", ""), ("5 MB of output", ", 5 MB")):
        ratio = taken.ratio(f"ours{end}", f"theirs{end}", "ms")
        table.append(
            Row(
                what,
                short(taken.median(f"ours{end}", "ms"), "ms"),
                "ssh, ControlMaster",
                short(taken.median(f"theirs{end}", "ms"), "ms"),
                ratio,
                judged=None if end else ratio,
                at_most=None if end else MOST_TIMES,
                unit="times",
            )
        )
    return table


def _trips(sshd: Sshd, rounds: int) -> list[Row]:
    """Run commands through a proxy that is late, and divide by its delay."""
    table = []
    for trip_s in (0.05, 0.2):
        with wire(sshd.port, delay_s=trip_s / 2) as late:
            text = sshd.config.read_text()
            sshd.config.write_text(
                text.replace(f"Port {sshd.port}", f"Port {late.port}")
                + "StrictHostKeyChecking no\nHostKeyAlias spark\n"
            )
            with sshd.known_hosts.open("a") as file:
                file.write(f"spark {sshd.host_key()}\n")
            with _reached(sshd) as host, _master(sshd) as ssh:
                words = [*ssh, *READ]
                options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
                cases = {
                    "ours": _timed(lambda h=host: _need_ok(h, Command(READ)), 5),  # type: ignore[misc]
                    "with input": _timed(lambda h=host: _need_ok(h, SCRIPT), 5),  # type: ignore[misc]
                    "theirs": _timed(
                        lambda w=words, o=options: subprocess.run(w, check=True, **o),  # type: ignore[misc]
                        5,
                    ),
                }
                taken = interleave(cases, max(3, rounds))
            sshd.config.write_text(text)
        trips = {name: taken.median(name, "ms") / trip_s / 1e3 for name in cases}
        where = f"{trip_s * 1e3:.0f} ms away"
        table += [
            Row(
                f"a command, {where}",
                short(trips["ours"], "round trips"),
                "ssh, ControlMaster",
                short(trips["theirs"], "round trips"),
                trips["ours"] / trips["theirs"],
                judged=trips["ours"],
                at_most=MOST_TRIPS,
                unit="round trips",
            ),
            Row(f"a script on standard input, {where}", short(trips["with input"], "round trips")),
        ]
    return table


def _many(sshd: Sshd) -> list[Row]:
    """Run many commands and see whether the process grows, and the late ones stay as fast."""
    with _reached(sshd) as host:
        for _ in range(50):
            _need_ok(host, Command(READ))
        before = _held()
        taken = [_milliseconds(lambda: _need_ok(host, Command(READ))) for _ in range(MANY)]
        after = _held()
    growth = statistics.median(taken[-100:]) / statistics.median(taken[:100])
    return [
        Row(
            f"{MANY} commands over ssh: memory, descriptors, threads more",
            f"{after[0] - before[0]} KiB, {after[1] - before[1]}, {after[2] - before[2]}",
        ),
        Row(
            f"the last 100 of {MANY} commands over ssh",
            short(statistics.median(taken[-100:]), "ms"),
            "the first 100",
            short(statistics.median(taken[:100]), "ms"),
            growth,
            judged=growth,
            at_most=MOST_GROWTH,
            unit="times",
        ),
    ]


def _long_outputs() -> list[Row]:
    """Measure 2 GB of output in a process of its own: by memory, and kept whole."""
    found = figures("long_output")
    return [
        Row(
            "2 GB of output, kept whole: memory more than for 3 MB",
            short(found["grown_mib"], "MiB"),
            judged=found["grown_mib"],
            at_most=MOST_MIB,
            unit="MiB",
        ),
        Row(
            "2 GB of output, kept whole and redacted",
            short(found["kept_s"], "s"),
            "head and tail only",
            short(found["plain_s"], "s"),
            found["kept_s"] / found["plain_s"],
        ),
    ]


@contextmanager
def _reached(sshd: Sshd) -> Iterator[Ssh]:
    host = connector(sshd)
    try:
        _need_ok(host, Command(READ))
        yield host
    finally:
        host.close()


@contextmanager
def _master(sshd: Sshd) -> Iterator[list[str]]:
    """Give the words of an OpenSSH client whose connection is open."""
    with tempfile.TemporaryDirectory(prefix="bm-") as folder:
        share = ["-o", f"ControlPath={folder}/c", "-o", "ControlMaster=auto"]
        words = ["ssh", "-F", str(sshd.config), *share, "-o", "ControlPersist=60", "spark"]
        null = subprocess.DEVNULL
        subprocess.run([*words, "true"], check=True, stdin=null, stdout=null, stderr=null)
        try:
            yield words
        finally:
            end = [*words[:-1], "-O", "exit", words[-1]]
            subprocess.run(end, check=False, capture_output=True)


def _timed(work: Callable[[], object], times: int) -> Callable[[], Figures]:
    """Make a case whose figure is the median of some runs in a row, in ``ms``."""

    def case() -> Figures:
        return {"ms": statistics.median(_milliseconds(work) for _ in range(times))}

    return case


def _milliseconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1e3


def _need_ok(host: Connector, command: Command) -> None:
    result = host.run(command)
    if not result.ok:
        raise RuntimeError(f"{command.text}: {result.how}")


def _held() -> tuple[int, int, int]:
    """Return what this process holds: KiB of memory, descriptors, threads."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    kib = pages * os.sysconf("SC_PAGE_SIZE") // 1024
    return kib, len([*Path("/proc/self/fd").iterdir()]), threading.active_count()
