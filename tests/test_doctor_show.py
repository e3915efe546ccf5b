"""What people see of machines: short, within 80 columns, and never what a host wants to draw."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from agent.doctor.ask import Answer
from agent.doctor.between import Between
from agent.doctor.checkup import Checkup, title
from agent.doctor.finding import Finding
from agent.doctor.findings import findings
from agent.doctor.listed import findings_listed
from agent.doctor.pair import pair_of
from agent.doctor.show import Shown, ShownPair, summary
from agent.doctor.words import lines_of, part_of, size, speed
from agent.goal_parts import Host
from agent.inventory_parts import Member
from tests.lab.terminal import CONTROLS, terminal
from tools.machine import MachineFacts
from tools.machine_parts import (
    Clock,
    Cpu,
    Disk,
    Docker,
    Environment,
    Gpu,
    Gpus,
    Holder,
    Limits,
    Memory,
    Network,
    Nic,
    Process,
    Python,
    RdmaPort,
    Service,
    System,
)

HOSTILE = "[red]x[/red]\x1b[2J\x1b]8;;http://evil\x07\n\u202egnp\u200b" + "w" * 200
GB10 = Gpu(index=0, name="NVIDIA GB10", compute_capability="12.1", unified=True)
SPARK = MachineFacts(
    system=System(os="Ubuntu 24.04.3 LTS", arch="aarch64", kernel="6.11", product="DGX Spark"),
    cpu=Cpu(cores=20),
    memory=Memory(
        total_mib=122_572,
        available_mib=93_000,
        unified=True,
        holders=(
            Process(pid=7, command="/opt/e/bin/python -m vllm.entrypoints serve", mib=24_000),
        ),
    ),
    gpus=Gpus(driver="580.95.05", cuda="13.0", gpus=(GB10,)),
    docker=Docker(
        server="28.3.3",
        runtimes=("nvidia", "runc"),
        images=12,
        images_mib=86_000,
        services=(Service(name="glm", image="lab/glm:4.7", ports=("8000",), mib=2061),),
    ),
    python=Python(
        path="/usr/bin/python3",
        version="3.12.3",
        pip=True,
        venv=False,
        environments=(Environment(path="/opt/e", packages={"vllm": "0.14.1"}, torch_cuda="13.0"),),
    ),
    disks=(Disk(mount="/", total_mib=3_800_000, free_mib=1_200_000),),
    network=Network(
        nics=(
            Nic(name="enP7s7", state="up", speed_mbit=1000, mtu=1500, addresses=("10.0.0.11/24",)),
            Nic(
                name="enp1s0f0np0",
                state="up",
                speed_mbit=200_000,
                mtu=9000,
                addresses=("192.168.100.1/24", "fe80::1/64"),
                rdma="rocep1s0f0",
            ),
        ),
        rdma=(RdmaPort(device="rocep1s0f1", state="DOWN"),),
    ),
    limits=Limits(memlock_kib=-1, shm_mib=61_286, nofile=1024),
    clock=Clock(skew_s=-7.25, within_s=0.1),
)
H200 = tuple(
    Gpu(
        index=number,
        name="NVIDIA H200",
        total_mib=143_771,
        free_mib=143_771 - number * 1000,
        holders=(Holder(pid=number, command="python train.py", mib=number * 1000),),
    )
    for number in range(8)
)


def member(name: str = "spark-1", **more: object) -> Member:
    return Member.model_validate(
        {"name": name, "host": Host(name="h", address="h"), "listed": True, **more}
    )


def checkup(*answers: Answer, shared: tuple[Finding, ...] = ()) -> Checkup:
    found = {it.member.name: findings(it.facts) if it.facts else [] for it in answers}
    return Checkup(answers, found, shared, Between())


def drawn(what: object, width: int = 80, encoding: str = "utf-8") -> list[str]:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    console = Console(file=file, width=width, no_color=True, force_terminal=False)
    console.print(what)
    file.flush()
    return raw.getvalue().decode(encoding).splitlines()


def test_a_machine_in_a_few_lines() -> None:
    assert lines_of(SPARK) == [
        ("system", "Ubuntu 24.04.3 LTS aarch64, 20 CPUs, kernel 6.11, DGX Spark"),
        (
            "memory",
            "90.8 of 119.7 GiB free, unified with the GPU, most by vllm.entrypoints 23.4 GiB",
        ),
        ("gpu", "NVIDIA GB10 (sm 12.1), memory unified, driver 580.95.05, CUDA 13.0"),
        ("docker", "28.3.3 with NVIDIA GPUs, 12 images, 84.0 GiB"),
        ("", "runs glm, lab/glm:4.7, 8000, 2.0 GiB"),
        ("python", "3.12.3 at /usr/bin/python3, without venv"),
        ("", "/opt/e: vllm 0.14.1 (13.0)"),
        ("disks", "/ 1.1 of 3.6 TiB free"),
        ("network", "enp1s0f0np0 192.168.100.1/24, 200 Gb/s, MTU 9000, RDMA rocep1s0f0"),
        ("", "enP7s7 10.0.0.11/24, 1 Gb/s"),
        ("", "RDMA not active: rocep1s0f1"),
        ("limits", "memlock unlimited, shm 59.8 GiB, 1024 files"),
        ("clock", "7.2 s behind this machine's"),
    ]


def test_many_gpus_are_told_as_one_kind() -> None:
    lines = [text for _, text in lines_of(MachineFacts(gpus=Gpus(driver="580", gpus=H200)))]
    assert lines[0] == "8 x NVIDIA H200, 133.6 of 140.4 GiB free at least, driver 580"
    assert lines[1].startswith("held by train.py 0 MiB on 0, train.py 1.0 GiB on 1")
    assert lines[1].endswith("and 4 more")
    two = Gpus(gpus=(H200[0], GB10.model_copy(update={"index": 1})))
    assert [text for _, text in lines_of(MachineFacts(gpus=two))][:2] == [
        "NVIDIA H200, 140.4 of 140.4 GiB free",
        "NVIDIA GB10 (sm 12.1), memory unified",
    ]


def test_gpus_without_a_driver() -> None:
    facts = MachineFacts(gpus=Gpus(pci=("0000:01:00.0 none",)))
    assert lines_of(facts)[0] == ("gpu", "1 on the bus, and no driver that works")


def test_nothing_is_known() -> None:
    assert lines_of(MachineFacts()) == [("gpu", "none that is NVIDIA's"), ("docker", "none")]


def test_sizes_and_speeds() -> None:
    assert [size(it) for it in (None, 0, 512, 1024, 122_572, 3_800_000)] == [
        *("?", "0 MiB", "512 MiB", "1.0 GiB", "119.7 GiB", "3.6 TiB")
    ]
    assert [part_of(100, 512), part_of(None, 2048), part_of(1, None)] == [
        *("100 of 512 MiB", "? of 2.0 GiB", "1 MiB of ?")
    ]
    assert [speed(it) for it in (None, 100, 2500, 200_000)] == [
        *("", "100 Mb/s", "2.5 Gb/s", "200 Gb/s")
    ]


def test_few_hosts_are_blocks_and_many_a_table() -> None:
    answers = [Answer(member(f"spark-{number}"), SPARK, took_s=1.24) for number in range(1, 6)]
    few = drawn(Shown(checkup(*answers[:4])))
    assert [line for line in few if line.startswith("spark-")] == [
        f"spark-{number}  h  1.2 s" for number in range(1, 5)
    ]
    many = drawn(Shown(checkup(*answers)))
    cells = ("spark-1", "Ubuntu 24.04.3 aarch64", "20", "91 of 120 GiB", "GB10")
    assert re.split("  +", many[1]) == [*cells, "580.95.05", "28.3.3"]
    for lines in (few, many):
        assert max(map(len, lines)) <= 80


def test_long_cells_give_room_and_lines_fit() -> None:
    long = SPARK.model_copy(update={"gpus": Gpus(driver="580.95.05", gpus=H200)})
    answers = [Answer(member(f"a-very-long-name-of-a-host-{it}"), long) for it in range(5)]
    for width in (80, 100):
        lines = drawn(Shown(checkup(*answers)), width)
        assert max(map(len, lines)) <= width
        assert lines[1].endswith("28.3.3")


def test_a_host_without_facts_says_why_in_its_line() -> None:
    trouble = "cannot connect to 10.0.0.1 port 22: Connection refused"
    answers = [Answer(member(f"n{it}"), SPARK) for it in range(4)]
    lines = drawn(Shown(checkup(*answers, Answer(member("dead"), None, False, trouble))))
    assert f"dead  not reached: {trouble}" in lines


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_text_of_hosts_is_only_text(encoding: str) -> None:
    odd = SPARK.model_copy(
        update={
            "system": System(os=HOSTILE, arch=HOSTILE, kernel=HOSTILE),
            "docker": Docker(server=HOSTILE, services=(Service(name=HOSTILE),)),
            "gpus": Gpus(driver=HOSTILE, gpus=(Gpu(index=0, name=HOSTILE),)),
            "disks": (Disk(mount=HOSTILE, total_mib=1000, free_mib=1),),
        }
    )
    bad = Finding(code="x", level="error", subject=HOSTILE, text=HOSTILE, do=HOSTILE)
    lost = Answer(member("lost"), None, False, HOSTILE)
    few = checkup(Answer(member(), odd), lost, shared=(bad,))
    many = checkup(*(Answer(member(f"n{it}"), odd) for it in range(5)), lost)
    for what in (Shown(few), Shown(many), ShownPair(pair_of(few))):
        lines = drawn(what, encoding=encoding)
        text = "\n".join(lines)
        assert max(map(len, lines)) <= 80
        assert not any(sign in text for sign in ("\x1b", "\x07", "\u202e", "\u200b"))
    assert "[red]x[/red]" in "\n".join(drawn(Shown(few), encoding=encoding))


def test_colours_are_ours_alone() -> None:
    console, written = terminal()
    console.print(Shown(checkup(Answer(member(), SPARK))))
    plain = CONTROLS.sub("", written())
    assert "\x1b" in written()
    assert "\x1b" not in plain
    assert plain.splitlines()[0].rstrip() == "spark-1  h  0.0 s"


def test_what_several_hosts_have_alike_comes_once() -> None:
    full = SPARK.model_copy(update={"disks": (Disk(mount="/", total_mib=900_000, free_mib=10),)})
    seen = checkup(*(Answer(member(f"n{it}"), full) for it in range(1, 4)))
    (row,) = [row for row in seen.findings if "left" in row[1].text or "full" in row[1].text]
    assert row[0] == ("n1", "n2", "n3")
    assert title(*row).startswith("n[1-3]")
    assert seen.exit_code == (1 if any(it.level == "error" for _, it in seen.findings) else 0)


def test_the_last_line_counts() -> None:
    error = Finding(code="x", level="error", text="t")
    note = Finding(code="y", level="note", text="t")
    one = Answer(member("a"), SPARK)
    two = Answer(member("b"), None, False, "gone")
    assert summary(Checkup([one], {"a": []})) == "1 host: nothing found"
    both = Checkup([one, two], {"a": [error, note], "b": [error]})
    assert summary(both) == "2 hosts, 1 not reached: 1 error, 1 note"
    assert [Checkup([one], {"a": [it]}).exit_code for it in (error, note)] == [1, 0]
    assert both.exit_code == 5


def test_a_pair_without_facts_of_both() -> None:
    pair = pair_of(checkup(Answer(member("a"), SPARK), Answer(member("b"), None, True, "no sh")))
    assert (pair.exit_code, pair.whole) == (1, False)
    assert drawn(ShownPair(pair))[-1] == "nothing is compared without the facts of both"


def test_a_pair_that_differs() -> None:
    small = SPARK.model_copy(update={"memory": Memory(total_mib=32_000), "docker": None})
    pair = pair_of(checkup(Answer(member("a"), SPARK), Answer(member("b"), small)))
    lines = drawn(ShownPair(pair))
    assert len(pair.differences) > 1
    assert lines[-1] == f"{len(pair.differences)} differences: what a has, and b has not"
    assert any(line.startswith("  ✗ ") or line.startswith("  ! ") for line in lines)
    assert pair.exit_code == 1


@pytest.mark.parametrize(
    ("more", "codes"),
    [
        ({}, []),
        ({"nic": "enp1s0f0np0"}, []),
        ({"nic": "eth9"}, ["nic_missing"]),
        ({"nic": "down0"}, ["nic_unusable"]),
        ({"nic": "bare0"}, ["nic_unusable"]),
        ({"env": {"NCCL_SOCKET_IFNAME": "enp,enP7"}}, []),
        ({"env": {"NCCL_SOCKET_IFNAME": "^lo,docker"}}, []),
        ({"env": {"NCCL_SOCKET_IFNAME": "=enP7s7"}}, []),
        ({"env": {"NCCL_SOCKET_IFNAME": "ib0"}}, ["variable_names_nothing"]),
        ({"env": {"NCCL_IB_HCA": "=rocep1s0f1:1"}}, []),
        ({"env": {"NCCL_IB_HCA": "mlx5_0,mlx5_1"}}, ["variable_names_nothing"] * 2),
        ({"env": {"OTHER": "ib0"}}, []),
    ],
)
def test_what_the_inventory_says_is_looked_at(more: dict[str, Any], codes: list[str]) -> None:
    network = SPARK.network
    assert network is not None
    odd = (Nic(name="down0", state="down", addresses=("10.9.0.1/24",)), Nic(name="bare0"))
    there = network.model_copy(update={"nics": (*network.nics, *odd)})
    facts = SPARK.model_copy(update={"network": there})
    found = findings_listed(member(**more), facts)
    assert [it.code for it in found] == codes
    assert all(it.level == "warning" and it.do for it in found)
    assert findings_listed(member(**more), MachineFacts()) == []
