"""Machines for tests of the doctor: recorded ones, and this one with something missing."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agent.doctor.findings import findings
from tests.lab.need import need
from tools.command import Command, Ending, OnOutput, Result
from tools.connectors.base import Connector
from tools.connectors.local import Local
from tools.machine import MachineFacts, machine_command, read_machine
from tools.machine_parts import Nic

CASES = Path(__file__).parent / "parsers" / "machine_facts"
MARKER = "m-7c40"


def recorded(name: str) -> MachineFacts:
    """Read a recorded machine; its file says where it comes from."""
    case = json.loads((CASES / f"{name}.json").read_text("utf-8"))
    result = Result(**{**case["result"], "ending": Ending(case["result"]["ending"])})
    return read_machine(result, case["marker"])


class Retold:
    """A host that answers as a recorded machine did, with some words replaced by others."""

    name = "retold"

    def __init__(self, case: str, changed: Mapping[str, str]) -> None:
        self._case = json.loads((CASES / f"{case}.json").read_text("utf-8"))
        self._changed = changed

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        text: str = self._case["result"]["stdout"]
        for old, new in {self._case["marker"]: command.argv[3], **self._changed}.items():
            assert old in text
            text = text.replace(old, new)
        return Result(Ending.EXITED, code=0, stdout=text, duration_s=0.1)

    def close(self) -> None:
        """Nothing is open."""


def ask(
    *shell: str,
    host: Connector | None = None,
    env: Mapping[str, str] | None = None,
    slow_s: int = 8,
) -> Result:
    """Run the script on a machine, by default this one.

    Args:
        shell: words in front of the script's own, ``sh`` where there are none.
        host: the machine.
        env: further variables.
        slow_s: how long a driver and an engine may take.
    """
    command = machine_command(MARKER, slow_s=slow_s)
    argv = (*shell, *command.argv[1:]) if shell else command.argv
    return (host or Local()).run(replace(command, argv=argv, env=dict(env or {})))


def look(*shell: str, host: Connector | None = None, **more: str) -> MachineFacts:
    """Run the script and read its answer; ``more`` are variables."""
    sent = time.time()
    result = ask(*shell, host=host, env=more)
    assert result.ok, result
    assert result.stderr == ""
    return read_machine(result, MARKER, sent, time.time())


def codes(facts: MachineFacts) -> set[str]:
    return {finding.code for finding in findings(facts)}


def nics(facts: MachineFacts) -> tuple[Nic, ...]:
    assert facts.network is not None
    return facts.network.nics


def agree(facts: MachineFacts, other: MachineFacts) -> bool:
    """Whether two looks saw one machine: what stands still is the same."""
    system, again = facts.system, other.system
    assert facts.memory is not None
    assert other.memory is not None
    assert system is not None
    assert again is not None
    same = (system.boot_id, system.kernel, system.os) == (again.boot_id, again.kernel, again.os)
    sizes = facts.memory.total_mib == other.memory.total_mib
    return same and sizes and [nic.name for nic in nics(facts)] == [nic.name for nic in nics(other)]


def path_without(folder: Path, *programs: str) -> str:
    """Make a folder with all programs of the PATH but these, and return it as a PATH."""
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(":")):
        for program in Path(place).glob("*") if Path(place).is_dir() else ():
            link = folder / program.name
            link.unlink(missing_ok=True)
            if program.name not in programs:
                link.symlink_to(program)
    return str(folder)


def applets(folder: Path) -> str:
    """Make a folder with the programs of busybox alone, and return it; skip without busybox."""
    busybox = shutil.which("busybox")
    need(busybox is not None, "busybox is missing (apt-get install busybox)")
    folder.mkdir()
    for name in Local().run(Command.of(str(busybox), "--list")).stdout.split():
        (folder / name).symlink_to(str(busybox))
    return str(folder)


def program(folder: Path, name: str, text: str, rest: str = "") -> str:
    """Write a shell script as a program, and return a PATH on which it comes before the rest."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return f"{folder}:{rest or os.environ['PATH']}"
