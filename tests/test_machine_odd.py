"""Answers that no machine gives: of other kinds, far too long, far too deep."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.machines import MARKER
from tools.command import Ending, Result
from tools.errors import BadReply
from tools.gpus import gpus_of
from tools.machine import MachineFacts, read_machine
from tools.machine_disks import disks_of
from tools.machine_docker import docker_of
from tools.machine_host import clock_of, cpu_of
from tools.machine_network import network_of
from tools.machine_processes import processes_of
from tools.machine_text import Part, parts_of

NONE = Part()
CASE = Path(__file__).parent / "parsers" / "machine_facts" / "mig.json"


def part(text: str) -> Part:
    return Part(text, 0)


def answer(**parts: str) -> Result:
    rows = (f"{MARKER} {key}=\x02\n{text}\n\nended 0\n\n\x03" for key, text in parts.items())
    return Result(Ending.EXITED, code=0, stdout="\n".join([*rows, f"{MARKER} end=1\n"]))


@pytest.mark.parametrize(
    "info",
    [
        '{"SecurityOptions":5}',
        '{"DiscoveredDevices":5,"Runtimes":[],"SecurityOptions":{"rootless":1}}',
        '{"DiscoveredDevices":["a",{"ID":5}],"Images":"many"}',
        "[" * 30_000,
        '{"Images":' + "9" * 5000 + "}",
        "null",
    ],
)
def test_an_engine_that_tells_odd_things(info: str) -> None:
    rows = f'version {{"Server":{{"Version":"28.2.2"}}}}\ninfo {info}\nservice {info}'
    docker, _ = docker_of(part(rows), part('"Images" ' + "[" * 30_000 + " 1"))
    assert docker is not None
    assert (docker.server, docker.rootless) == ("28.2.2", False)
    assert isinstance(read_machine(answer(docker=rows), MARKER), MachineFacts)


def test_what_no_parser_foresaw_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def odd(*parts: object) -> None:
        raise TypeError("'int' object is not iterable")

    monkeypatch.setattr("tools.machine.read_parts", odd)
    with pytest.raises(BadReply, match=r"cannot be read \(TypeError: 'int' object"):
        read_machine(answer(system="uname_n a"), MARKER)


def test_numbers_that_are_none() -> None:
    long = "9" * 5000
    ended = Result(Ending.EXITED, code=0, stdout=f"m a=\x02\nx\n\nended {long}\n\n\x03")
    assert parts_of("m", ended)["a"].code is None
    assert cpu_of(part(f"quota {long} ²")).limit is None
    assert clock_of(part(long), NONE, NONE, 1.0, 2.0) is None
    rdma = "gid\tmlx\t1\t²\t0000:0000:0000:0000:0000:ffff:c000:0201\tRoCE v2\ta0\nport\tmlx\t1"
    assert network_of(NONE, part(rdma)).rdma[0].roce_v2 == ()
    links = f"GPU{long}\tX"
    gpus_of(NONE, part("², 9.0"), part(links), part("pci a"), [], {})


def dashes(size: int) -> object:
    return processes_of(part(f"7\t0\troot\t2048\t0::/\t{'-' * size}"))


def markers(size: int) -> object:
    stdout = "m a=\x02\n" * (size // 8) + "x\x03"
    return parts_of("m", Result(Ending.EXITED, code=0, stdout=stdout))


def digits(size: int) -> object:
    return disks_of(part(f"disk\troot\t/\t0\twritable\t{'1' * size}"), NONE)


def tags(size: int) -> object:
    lines = ["<a>"] * (size // 8) + ["</b>"] * (size // 8)
    return gpus_of(part("\n".join(lines)), NONE, NONE, part("pci a"), [], {})


@pytest.mark.parametrize("read", [dashes, markers, digits, tags])
def test_a_text_that_is_longer_takes_longer_and_no_more(read: Callable[[int], object]) -> None:
    """Twenty times the text took four hundred times the time; the least of some tries counts."""

    def seconds(size: int) -> float:
        found = []
        for _ in range(3):
            begun = time.process_time()
            read(size)
            found.append(time.process_time() - begun)
        return min(found)

    few, many = seconds(4_000), seconds(80_000)
    assert many < 100 * max(few, 0.0002)


def test_memory_of_a_divided_gpu_is_not_the_machines() -> None:
    case = json.loads(CASE.read_text("utf-8"))
    stdout = case["result"]["stdout"].replace("<total>143771 MiB<", "<total>N/A<", 1)
    facts = read_machine(Result(Ending.EXITED, code=0, stdout=stdout), case["marker"])
    assert facts.gpus is not None
    assert facts.memory is not None
    first = facts.gpus.gpus[0]
    assert (first.mig, first.unified, first.total_mib, first.used_mib) == ("on", False, None, 4111)
    assert (facts.memory.unified, first.link) == (False, "PCIe 5 x16")
