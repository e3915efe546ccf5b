"""Facts of sixteen hosts as whole processes, beside pyinfra; and behind a slow line, beside one.

The hosts are ssh servers on loopback. pyinfra takes the eight facts by its own commands, one each;
we take the same eight through our connectors, and the doctor takes all that it knows of.
"""

from __future__ import annotations

import os
import pwd
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.bench.processes import LONGEST_S
from tests.bench.rounds import Case, Figures, Rounds, interleave, say
from tests.bench.table import Row, short
from tests.lab.checkout import ROOT
from tests.lab.environments import environment
from tests.lab.fleet import Fleet, fleet
from tests.lab.wire import wire
from tools.command import Command
from tools.connectors.local import Local

PYINFRA = "pyinfra==3.10.0"
THEIRS = "pyinfra 3.10.0"
FACTS = (
    "server.Hostname",
    "server.Kernel",
    "server.Arch",
    "server.LinuxDistribution",
    "hardware.Cpus",
    "hardware.Memory",
    "server.Mounts",
    "hardware.Ipv4Addrs",
)
NAMES = [f"gpu{number:02d}" for number in range(1, 17)]
DELAY_S = 0.15
"""Each way: a round trip takes 300 ms."""
MOST_RATIO, MOST_TIMES = 0.5, 2.0
"""Targets: eight facts beside the peer's; sixteen hosts behind a slow line beside one of them."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Files by which clients reach the hosts."""

    folder: Path
    hosts: Fleet
    peer: Path | None

    def lay_out(self, ports: Mapping[str, int] | None = None) -> _Place:
        """Write the files, for the hosts' own ports or others."""
        self.hosts.configure(dict(ports or {}))
        servers = self.hosts.servers
        at = {name: sshd.port for name, sshd in servers.items()} | dict(ports or {})
        theirs: list[tuple[str, dict[str, Any]]] = [
            (
                name,
                {
                    "ssh_hostname": "127.0.0.1",
                    "ssh_port": at[name],
                    "ssh_key": str(sshd.key),
                    "ssh_user": pwd.getpwuid(os.getuid()).pw_name,
                    "ssh_strict_host_key_checking": "no",
                },
            )
            for name, sshd in servers.items()
        ]
        (self.folder / "all.py").write_text(f"hosts = {theirs!r}\n")
        return self

    def process(self, *words: str | Path, codes: Sequence[int] = (0,)) -> Case:
        """Return a case that runs a command to its end and fails where it does."""
        env = {"HOME": str(self.folder), "BRINGUP_SSH_CONFIG": str(self.hosts.config)}
        argv = tuple(str(word) for word in words)

        def case() -> Figures:
            begin = time.perf_counter()
            command = Command(argv, env=env, cwd=str(ROOT), timeout_s=LONGEST_S)
            done = Local().run(command)
            seconds = time.perf_counter() - begin
            if done.code not in codes:
                raise RuntimeError(f"{argv}: {done.how}\n{done.tail}")
            return {"s": seconds}

        return case

    def facts(self, names: Sequence[str]) -> Case:
        """Our eight facts."""
        words = (sys.executable, "-m", "tests.bench.hosts_case", self.hosts.config)
        return self.process(*words, *names)

    def doctor(self, names: Sequence[str]) -> Case:
        """All that the doctor knows of; what it finds wrong is no failure here."""
        script = Path(sys.executable).with_name("bringup")
        return self.process(script, "doctor", "--json", *names, codes=(0, 1))

    def theirs(self) -> dict[str, Case]:
        """The peer's eight facts, where it is there."""
        if self.peer is None:
            return {}
        return {THEIRS: self.process(self.peer, "-y", self.folder / "all.py", "fact", *FACTS)}


def rows(rounds: int) -> list[Row]:
    """Measure; 0 rounds are no rows. Without the peer its cells stay empty."""
    if not rounds:
        return []
    try:
        peer, missing = environment(PYINFRA) / "bin" / "pyinfra", ""
    except RuntimeError as error:
        peer, missing = None, str(error).strip().splitlines()[-1]
    try:
        with tempfile.TemporaryDirectory(prefix="bringup-bench-") as folder:
            table = _all_rows(Path(folder), peer, rounds)
    except pytest.skip.Exception as error:
        return [Row("facts of 16 hosts", f"skipped: {error}")]
    return [*table, *([Row(THEIRS, f"skipped: {missing}")] if missing else [])]


def _all_rows(folder: Path, peer: Path | None, rounds: int) -> list[Row]:
    with fleet(folder / "hosts", NAMES) as hosts:
        place = _Place(folder, hosts, peer)
        near = _near(place.lay_out(), rounds)
        with _slow(hosts) as ports:
            return [*near, *_far(place.lay_out(ports), rounds)]


@contextmanager
def _slow(hosts: Fleet) -> Iterator[dict[str, int]]:
    """Put a slow line before each host; yields their ports."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(wire(sshd.port, delay_s=DELAY_S)).port
            for name, sshd in hosts.servers.items()
        }


def _near(place: _Place, rounds: int) -> list[Row]:
    say("facts of 16 hosts")
    cases = {"facts": place.facts(NAMES), "doctor": place.doctor(NAMES), **place.theirs()}
    taken = interleave(cases, rounds)
    return [
        _beside(taken, "8 facts of 16 hosts", "facts", MOST_RATIO),
        _beside(taken, "`bringup doctor`, 16 hosts, all that it knows", "doctor", None),
    ]


def _far(place: _Place, rounds: int) -> list[Row]:
    say("facts behind 300 ms")
    cases = {
        "facts 1": place.facts(NAMES[:1]),
        "facts 16": place.facts(NAMES),
        "doctor 1": place.doctor(NAMES[:1]),
        "doctor 16": place.doctor(NAMES),
        **place.theirs(),
    }
    taken = interleave(cases, rounds)
    return [
        _growth(taken, "8 facts behind 300 ms", "facts", MOST_TIMES),
        _growth(taken, "`bringup doctor` behind 300 ms", "doctor", None),
        _beside(taken, "8 facts of 16 hosts behind 300 ms", "facts 16", None),
    ]


def _growth(taken: Rounds, what: str, case: str, at_most: float | None) -> Row:
    """Sixteen hosts beside one; here they share processors, which the doctor's facts keep busy."""
    many, one = f"{case} 16", f"{case} 1"
    ratio = taken.ratio(many, one, "s")
    return Row(
        f"{what}: 16 hosts",
        short(taken.median(many, "s"), "s"),
        "one host",
        short(taken.median(one, "s"), "s"),
        ratio,
        judged=ratio,
        at_most=at_most,
        unit="times",
    )


def _beside(taken: Rounds, what: str, case: str, at_most: float | None) -> Row:
    """Our time beside the peer's eight facts."""
    ours = short(taken.median(case, "s"), "s")
    if THEIRS not in taken.figures:
        return Row(what, ours)
    ratio = taken.ratio(case, THEIRS, "s")
    theirs = short(taken.median(THEIRS, "s"), "s")
    beside = f"{THEIRS}, 8 facts"
    return Row(what, ours, beside, theirs, ratio, judged=ratio, at_most=at_most, unit="times")
