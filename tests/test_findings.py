"""What is found wrong with one machine: every rule, its words, and what no rule should say."""

from __future__ import annotations

import re

import pytest

from agent.doctor.finding import LEVELS, book
from agent.doctor.findings import findings
from tests.good_machine import (
    DISK,
    GOOD,
    GPUS,
    H200,
    OTHER,
    PAIR,
    PORT,
    env,
    rdma,
    with_gpu,
    with_part,
    with_problem,
)
from tests.machines import codes, recorded
from tools.machine import MachineFacts
from tools.machine_parts import Disk, Docker, Holder, Limits, MigSlice, Nic, System

BIG = (Holder(pid=7, user="eve", command="python x", mib=90000, container="old"),)
NO_REPORT = GPUS.model_copy(update={"gpus": (), "driver": "", "cuda": ""})
ABSENT = NO_REPORT.model_copy(update={"kernel_driver": "", "library": "", "devices": ()})
LXC = System(name="a", arch="x86_64", inside="lxc", user="root")
DOWN = PORT.model_copy(update={"state": "DOWN"})
BARE = PORT.model_copy(update={"roce_v2": ()})

FOUND: dict[str, tuple[MachineFacts, str]] = {
    "gpu_no_driver": (
        with_problem("gpus", "missing", "no nvidia-smi", gpus=ABSENT),
        "no nvidia-smi",
    ),
    "gpu_nouveau": (with_part("gpus", pci=("0000:01:00.0 nouveau",)), "0000:01:00.0"),
    "gpu_program_missing": (with_problem("gpus", "missing", gpus=NO_REPORT), "580.159.04"),
    "gpu_driver_mismatch": (
        with_problem("gpus", "failed", "Driver/library version mismatch", gpus=NO_REPORT),
        "580.159.04",
    ),
    "gpu_guest_mismatch": (
        GOOD.model_copy(
            update={"system": LXC, "gpus": NO_REPORT.model_copy(update={"library": "575.57"})}
        ),
        "575.57",
    ),
    "gpu_driver_hangs": (with_problem("gpus", "timed out", gpus=NO_REPORT), "no answer"),
    "gpu_driver_fails": (
        with_problem("gpus", "failed", "Unknown Error", gpus=NO_REPORT),
        "Unknown",
    ),
    "gpu_not_passed": (
        GOOD.model_copy(
            update={"system": LXC, "gpus": NO_REPORT.model_copy(update={"devices": ("nvidia0",)})}
        ),
        "nvidiactl, nvidia-uvm",
    ),
    "gpu_device_denied": (with_part("gpus", denied_devices=("nvidia0",)), "nvidia0"),
    "gpu_driver_old": (
        with_part("gpus", driver="550.54.15", cuda="12.4").model_copy(
            update={"python": env("13.0").python}
        ),
        "550.54.15",
    ),
    "gpu_torch_cpu": (env("cpu"), "/e"),
    "gpu_needs_reset": (with_gpu(needs_reset="Reset"), "Reset"),
    "gpu_memory_errors": (with_gpu(ecc_uncorrected=2), "2 memory"),
    "gpu_memory_held": (
        with_gpu(holders=BIG, used_mib=90010),
        "pid 7 of eve in container old `python x` (90000 MiB)",
    ),
    "gpu_memory_hidden": (with_gpu(used_mib=5000), "4.9 GiB of 140.4 GiB"),
    "gpu_mig_empty": (with_gpu(mig="on"), "no instances"),
    "gpu_mig": (
        with_gpu(mig="on", mig_slices=(MigSlice(index=0, instance="1/0", total_mib=71424),)),
        "69.8 GiB",
    ),
    "gpu_ecc_mixed": (
        with_part(
            "gpus",
            gpus=tuple(
                H200.model_copy(update={"index": n, "ecc": word})
                for n, word in enumerate(("on", "off"))
            ),
        ),
        "GPU 0",
    ),
    "gpu_mixed": (
        with_part("gpus", gpus=(H200, H200.model_copy(update={"name": "A100"}))),
        "A100, H200",
    ),
    "gpu_persistence": (with_gpu(persistence=False), "persistence"),
    "memory_swap_unified": (with_part("memory", unified=True, swap_used_mib=4096), "4.0 GiB"),
    "memory_low": (with_part("memory", available_mib=9000), "8.8 GiB of 128.0 GiB"),
    "memory_hugepages": (with_part("memory", hugepages_mib=65536), "64.0 GiB"),
    "memory_limit": (with_part("memory", limit_mib=8192), "8.0 GiB"),
    "cpu_limit": (with_part("cpu", limit=2.5), "2.5 of 16"),
    "docker_missing": (GOOD.model_copy(update={"docker": None}), "no docker"),
    "docker_denied": (
        with_problem(
            "docker", "denied", "permission denied", docker=Docker(socket="root:docker 660")
        ),
        "ada",
    ),
    "docker_down": (
        with_problem("docker", "failed", "Cannot connect to the Docker daemon", docker=Docker()),
        "Cannot connect",
    ),
    "docker_hangs": (with_problem("docker", "timed out", docker=Docker()), "no answer"),
    "docker_fails": (with_problem("docker", "failed", "boom", docker=Docker()), "boom"),
    "docker_without_gpu": (with_part("docker", runtimes=("runc",)), "CDI"),
    "docker_old": (with_part("docker", server="18.09.1"), "18.09.1"),
    "disk_full": (
        GOOD.model_copy(update={"disks": (DISK.model_copy(update={"free_mib": 9000}),)}),
        "8.8 GiB of 2048.0 GiB",
    ),
    "disk_silent": (with_problem("disk", "timed out", "df /nas gives no answer"), "/nas"),
    "disk_read_only": (
        GOOD.model_copy(update={"disks": (DISK.model_copy(update={"writable": False}),)}),
        "home",
    ),
    "models_small_disk": (
        GOOD.model_copy(
            update={
                "disks": (
                    DISK.model_copy(update={"total_mib": 102400, "free_mib": 61440}),
                    Disk(mount="/data", paths=("/data",), free_mib=2**21, writable=True),
                )
            }
        ),
        "/data has 2048.0 GiB",
    ),
    "models_no_room": (
        GOOD.model_copy(
            update={"disks": (DISK.model_copy(update={"total_mib": 61440, "free_mib": 40960}),)}
        ),
        "40.0 GiB of 60.0 GiB",
    ),
    "memlock_low": (
        rdma(PORT).model_copy(update={"limits": Limits(memlock_kib=8192)}),
        "8192 KiB",
    ),
    "shm_tiny": (with_part("limits", shm_mib=64), "64 MiB"),
    "shm_small": (
        with_part("limits", shm_mib=512).model_copy(
            update={"gpus": GPUS.model_copy(update={"gpus": (H200, H200)})}
        ),
        "512 MiB",
    ),
    "nofile_low": (with_part("limits", nofile=1024, nofile_hard=-1), "up to unlimited"),
    "clock_wrong": (with_part("clock", skew_s=-900.0), "-900.0 s"),
    "clock_skew": (with_part("clock", skew_s=3.0), "+3.0 s"),
    "clock_unsynchronized": (with_part("clock", synchronized=False), "clock"),
    "python_missing": (with_problem("python", "missing", python=None), "no python3"),
    "python_broken": (with_problem("python", "failed", "exit 1"), "exit 1"),
    "python_old": (with_part("python", version="3.8.10"), "3.8.10"),
    "python_no_venv": (with_part("python", venv=False), "ensurepip"),
    "rdma_all_down": (rdma(DOWN), "rocep1s0f0"),
    "rdma_pair_half": (
        rdma(PORT, OTHER.model_copy(update={"state": "DOWN"}), pairs=PAIR),
        "roceP2p1s0f0 (b0) has none",
    ),
    "rdma_pair_one_address": (
        rdma(PORT, OTHER.model_copy(update={"roce_v2": ()}), pairs=PAIR),
        "roceP2p1s0f0 (b0) has a link and no IPv4",
    ),
    "rdma_no_gid": (rdma(BARE), "rocep1s0f0"),
    "rdma_no_nodes": (rdma(PORT, rdma_nodes=("rdma_cm",)), "/dev/infiniband"),
    "mtu_small": (
        with_part("network", nics=(Nic(name="a0", state="up", mtu=1500, speed_mbit=200000),)),
        "200 Gbit/s",
    ),
    "facts_hidden": (with_problem("processes", "denied", "hidepid"), "hidden"),
    "facts_missing": (with_problem("memory", "missing", "no /proc"), "no /proc"),
}
"""One machine for each finding, and words that its text must have."""


def test_a_good_machine_has_none() -> None:
    assert findings(GOOD) == []


def test_every_finding_has_its_machine() -> None:
    assert set(FOUND) == set(book().findings)


@pytest.mark.parametrize("code", FOUND)
def test_it_is_found_and_said(code: str) -> None:
    facts, words = FOUND[code]
    found = {finding.code: finding for finding in findings(facts)}
    assert code in found
    assert words in found[code].text
    assert not re.search(r"[{}]|None", found[code].text + found[code].do)
    assert len(found) <= 2, "one fault is told once"


@pytest.mark.parametrize("code", book().findings)
def test_what_is_wrong_comes_with_what_to_do(code: str) -> None:
    words = book().findings[code]
    assert words.do or words.level == "note"


def test_the_worst_comes_first() -> None:
    facts = with_part("gpus", gpus=(H200.model_copy(update={"needs_reset": "Reset"}),))
    facts = facts.model_copy(update={"docker": None, "limits": Limits(shm_mib=64)})
    levels = [LEVELS.index(finding.level) for finding in findings(facts)]
    assert levels == sorted(levels)
    assert len(levels) == 3


RECORDED = {
    "h200_busy": {"gpu_memory_held", "docker_missing"},
    "h200_without_smi": {"gpu_program_missing", "python_missing", "docker_missing"},
    "h200_denied": {"gpu_device_denied", "docker_missing"},
    "lxc_mismatch": {"gpu_guest_mismatch", "gpu_not_passed", "docker_missing"},
    "gb10": {
        "gpu_memory_held",
        "memory_swap_unified",
        "disk_full",
        "memlock_low",
        "rdma_pair_one_address",
        "nofile_low",
        "clock_unsynchronized",
    },
    "mig": {
        "gpu_needs_reset",
        "gpu_memory_errors",
        "gpu_mig",
        "gpu_memory_held",
        "gpu_memory_hidden",
        "gpu_ecc_mixed",
        "docker_missing",
    },
    "cut_off": {"facts_missing"},
}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_machines(name: str) -> None:
    assert codes(recorded(name)) == RECORDED[name]


def test_unified_memory_is_neither_zero_nor_a_lack() -> None:
    facts = recorded("gb10")
    assert facts.gpus is not None
    assert facts.memory is not None
    (gpu,) = facts.gpus.gpus
    assert (gpu.unified, gpu.total_mib, gpu.free_mib, gpu.used_mib) == (True, None, None, 86016)
    assert (facts.memory.unified, facts.memory.total_mib) == (True, 124610)
    held = next(it for it in findings(facts) if it.code == "gpu_memory_held")
    assert "84.0 GiB of 121.7 GiB are held by pid 41877 of root in container glm-flash" in held.text


def test_what_one_machine_says_is_no_format() -> None:
    named = Holder(pid=1, user="{x}", command="{0.__class__} [red]", mib=9000)
    (finding,) = [it for it in findings(with_gpu(holders=(named,), used_mib=9000))]
    assert "{0.__class__} [red]" in finding.text
