"""How the raw texts of a machine are read: pure, from pieces that real programs print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.brains.render import observation
from tests.machines import recorded
from tools.command import Ending, Result
from tools.gpus import gpus_of
from tools.machine import MachineFacts, machine_command, read_machine
from tools.machine_disks import disks_of
from tools.machine_docker import docker_of
from tools.machine_host import clock_of, cpu_of, inside_of, memory_of
from tools.machine_network import network_of
from tools.machine_processes import processes_of
from tools.machine_software import python_of
from tools.machine_text import Part, parts_of
from tools.machine_tool import brief

NONE = Part()
DOCKER = Path(__file__).parent / "parsers" / "docker_info"


def part(text: str, code: int | None = 0) -> Part:
    return Part(text, code)


@pytest.mark.parametrize("name", ["h200_busy", "gb10", "mig", "container", "busybox"])
def test_a_model_can_read_a_machine_in_3_kb(name: str) -> None:
    whole = recorded(name)
    shown = observation(brief(whole).model_dump(mode="json"), 12_000)
    assert len(shown) <= 3_000
    assert brief(whole).headline() == whole.headline()


def test_the_newest_look_is_like_the_last_where_nothing_happened() -> None:
    facts = recorded("gb10")
    later = facts.model_copy(update={"took_s": 9.0, "clock": None})
    assert later.unmoved(facts)
    assert not recorded("h200_busy").unmoved(facts)


def test_the_marker_is_a_word_of_its_own() -> None:
    command = machine_command("m-1", limit_s=5)
    assert command.argv[:4] == ("sh", "-s", "--", "m-1")
    assert command.timeout_s == 5
    assert "m-1" not in (command.stdin or "")


def test_a_text_cannot_forge_a_part() -> None:
    stdout = "m-1 system=\x02\nuname_n a\nm-1 end=1\n\nended 0\n\x03\nm-2 end=1\n"
    parts = parts_of("m-1", Result(Ending.EXITED, code=0, stdout=stdout))
    assert parts == {"system": Part("uname_n a\nm-1 end=1\n", 0)}


CLOCKS = {
    "exact": ("1000.0", "1000.5", 1000.0, 1000.5, 0.0, 0.0),
    "ahead": ("1005.1", "1005.6", 1000.0, 1000.7, 5.0, 0.1),
    "behind, on a slow way": ("995.4", "995.9", 1000.0, 1001.3, -5.0, 0.4),
    "whole seconds": ("1000", "1000", 1000.0, 1000.5, 0.25, 0.75),
    "a format that is not known": ("1000.%N", "1000.%N", 1000.0, 1000.5, 0.25, 0.75),
}


@pytest.mark.parametrize("name", CLOCKS)
def test_the_skew_and_how_true_it_is(name: str) -> None:
    began, ended, sent, received, skew, within = CLOCKS[name]
    clock = clock_of(part(began), part(ended), NONE, sent, received)
    assert clock is not None
    assert clock.skew_s == pytest.approx(skew)
    assert clock.within_s == pytest.approx(within)


def test_a_clock_that_nobody_timed() -> None:
    clock = clock_of(part("1000.0"), part("1000.1"), part("NTPSynchronized=yes"), None, None)
    assert clock is not None
    assert (clock.skew_s, clock.synchronized) == (None, True)
    assert clock_of(part(""), part(""), NONE, 1.0, 2.0) is None


def test_who_a_process_is() -> None:
    group = f"0::/system.slice/docker-{'ab' * 32}.scope"
    rows = (
        f"7\t0\troot\t2048\t{group}\tserve\nbroken\n9\t1000\tada\t4096\t0::/lxc/ct1/x\tpython a\tb"
    )
    first, second = processes_of(part(rows))
    assert (first.pid, first.mib, first.container, first.command) == (9, 4, "ct1", "python a …")
    assert (second.pid, second.user, second.container) == (7, "root", "ab" * 32)


def test_what_this_is_the_inside_of() -> None:
    assert inside_of(part("detected lxc-libvirt")) == "lxc"
    assert inside_of(part("detected none\nvirt docker")) == ""
    assert inside_of(part("detected \nvirt docker")) == "docker"
    assert inside_of(part("cgroup 0::/lxc.payload.101/init.scope")) == "lxc"
    assert inside_of(part("cgroup 5:cpu:/docker/abc")) == "docker"
    assert inside_of(part("cgroup 0::/kubepods/pod1")) == "kubernetes"
    assert inside_of(part("cgroup 0::/user.slice")) == ""


def test_limits_of_control_groups() -> None:
    cpu = cpu_of(part("nproc 16\nquota 400000 100000\ncount 16"))
    assert (cpu.cores, cpu.limit) == (16, 4.0)
    assert cpu_of(part("nproc 16\nquota max 100000")).limit is None
    lines = "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\ncgroup_max 268435456\n"
    memory = memory_of(part(f"{lines}cgroup_current 209715200\ncgroup_inactive_file 104857600"))
    assert memory is not None
    assert (memory.limit_mib, memory.limit_used_mib) == (256, 100)
    none = memory_of(part("MemTotal: 1048576 kB\ncgroup_max max"))
    assert none is not None
    assert none.limit_mib is None


def test_disks_in_either_form_of_df() -> None:
    head = "1024-blocks Used Available Use% Mounted on"
    typed = f"Filesystem Type {head} nas:/m nfs4 900 1 800 1% /mnt/a b "
    plain = f"Filesystem {head} overlay 1024000 1 512000 50% / "
    text = f"disk\troot\t/\t0\twritable\t{plain}\ndisk\tother\t/mnt/a b\t0\tread-only\t{typed}"
    text += "\ndisk\tdocker\t/var/lib/docker\t0\tread-only\t" + plain
    text += "\ndisk\tmodels\t/nfs\t137\tread-only\tKilled"
    (root, other), problems = disks_of(part(text), NONE)
    assert (root.mount, root.paths, root.type, root.free_mib) == ("/", ("root", "docker"), "", 500)
    assert (other.mount, other.type, other.paths) == ("/mnt/a b", "nfs4", ("/mnt/a b",))
    assert [(it.part, it.kind) for it in problems] == [("disk", "timed out")]


def test_environments_by_their_metadata() -> None:
    site = "/opt/my env/lib/python3.12/site-packages"
    rows = [
        f"package\t{site}\tvllm\t0.14.1+cu130.dist-info",
        f"package\t{site}\ttorch\t2.9.1.dist-info",
        f"torch\t{site}\tcuda = None",
        "package\t/usr/lib/python3/dist-packages\tsglang\t0.0.0-py3.11.egg-info",
        "package\t/x/lib/python3.9/site-packages\ttriton\t3.0.dist-info",
    ]
    python, problems = python_of(part("\n".join(["path /usr/bin/python3", "broken 137", *rows])))
    assert python is not None
    first, second = python.environments
    assert (first.path, first.python, first.torch_cuda) == ("/opt/my env", "3.12", "cpu")
    assert first.packages == {"vllm": "0.14.1+cu130", "torch": "2.9.1"}
    assert (second.path, second.packages) == ("/usr", {"sglang": "0.0.0"})
    assert [(it.part, it.kind) for it in problems] == [("python", "failed")]


@pytest.mark.parametrize(
    ("case", "kind"), [("socket_of_another_user", "denied"), ("no_daemon", "failed")]
)
def test_why_docker_cannot_be_used(case: str, kind: str) -> None:
    result = json.loads((DOCKER / f"{case}.json").read_text("utf-8"))["result"]
    docker, (problem,) = docker_of(part("version " + result["stdout"] + result["stderr"], 1), NONE)
    assert docker is not None
    assert docker.server == ""
    assert (problem.part, problem.kind) == ("docker", kind)


def test_no_gpu_is_no_problem() -> None:
    assert gpus_of(NONE, NONE, NONE, part(""), [], {}) == (None, None)
    bare, problem = gpus_of(NONE, NONE, NONE, part("pci 0000:01:00.0 "), [], {})
    assert bare is not None
    assert bare.pci == ("0000:01:00.0",)
    assert problem is not None
    assert problem.kind == "missing"


def test_addresses_without_a_program_for_them() -> None:
    rows = ["nic\teth0\tup\t1500\t-1\tvirtio_net\tvirtio2", "nic\tveth1\tup\t1500\t\t\t"]
    network = network_of(part("\n".join([*rows, "addresses 192.0.2.7 "])), part(""))
    assert [(nic.name, nic.speed_mbit) for nic in network.nics] == [("eth0", None)]
    assert network.unplaced == ("192.0.2.7",)


def test_infiniband_is_no_roce_pair() -> None:
    rows = [f"port\tmlx5_{n}\t1\t4: ACTIVE\tInfiniBand\t400\t000{n}:01:00.0" for n in (0, 1)]
    network = network_of(NONE, part("\n".join(rows)))
    assert (len(network.rdma), network.pairs) == (2, ())


def test_an_answer_cut_anywhere_is_read() -> None:
    path = Path(__file__).parent / "parsers" / "machine_facts" / "gb10.json"
    case = json.loads(path.read_text("utf-8"))
    stdout, marker = case["result"]["stdout"], case["marker"]
    for end in range(stdout.index("\x03") + 1, len(stdout), 97):
        result = Result(Ending.TIMED_OUT, stdout=stdout[:end], duration_s=1.0)
        facts = read_machine(result, marker)
        assert isinstance(facts, MachineFacts)
        assert facts.system is not None
        assert {problem.kind for problem in facts.problems} >= {"cut off"}
