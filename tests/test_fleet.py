"""What differs between machines: several that work together, and two for a migration."""

from __future__ import annotations

from typing import Any

import pytest

from agent.doctor.finding import book
from agent.doctor.findings import across, compare
from tests.good_machine import DOCKER, GOOD, GPUS, H200, PORT, rdma, with_part
from tests.machines import recorded
from tools.machine import MachineFacts
from tools.machine_parts import Cache, Clock, Docker, Environment, Gpu, Limits, Nic, Python

NET = Nic(name="a0", state="up", mtu=9000, speed_mbit=200000, addresses=("192.0.2.1/24",))


def system(**update: Any) -> MachineFacts:
    return with_part("system", **{"boot_id": "b", **update})


def engine(**packages: str) -> MachineFacts:
    return with_part("python", environments=(Environment(path="/e", packages=packages),))


def nic(**update: Any) -> MachineFacts:
    return with_part("network", nics=(NET.model_copy(update=update),))


def skewed(skew_s: float) -> MachineFacts:
    return GOOD.model_copy(update={"clock": Clock(skew_s=skew_s, within_s=0.2)})


DIFFER: dict[str, tuple[MachineFacts, MachineFacts, str]] = {
    "same_machine": (system(), system(), "a, b"),
    "differ_arch": (system(), system(boot_id="c", arch="aarch64"), "x86_64 (a); aarch64 (b)"),
    "differ_gpu": (
        GOOD,
        with_part("gpus", gpus=(H200.model_copy(update={"name": "A100"}),)),
        "H200 (a); A100 (b)",
    ),
    "differ_driver": (GOOD, with_part("gpus", driver="575.57"), "575.57 (b)"),
    "differ_cuda": (GOOD, with_part("gpus", cuda="12.9"), "12.9 (b)"),
    "differ_engine": (engine(vllm="0.14.1"), engine(vllm="0.15.0"), "vllm differs: 0.14.1 (a)"),
    "differ_docker": (GOOD, with_part("docker", server="29.0.0"), "29.0.0 (b)"),
    "differ_kernel": (system(kernel="6.8"), system(boot_id="c", kernel="6.17"), "6.17 (b)"),
    "differ_mtu": (nic(), nic(mtu=1500, addresses=("192.0.2.2/24",)), "192.0.2.0/24"),
    "differ_gid": (
        rdma(PORT),
        rdma(PORT.model_copy(update={"roce_v2": (5,)})),
        "3 (a); 5 (b)",
    ),
    "differ_clock": (skewed(-1.5), skewed(1.5), "up to 3.0 s"),
    "differ_memory": (GOOD, with_part("memory", total_mib=65536), "64.0 GiB (b)"),
}


def test_every_difference_of_a_fleet_has_its_machines() -> None:
    assert set(DIFFER) == set(book().fleet)


@pytest.mark.parametrize("code", DIFFER)
def test_a_fleet_that_differs(code: str) -> None:
    a, b, words = DIFFER[code]
    (finding,) = across({"a": a, "b": b})
    assert finding.code == code
    assert words in finding.text
    assert set(finding.hosts) >= ({"a", "b"} if code != "differ_mtu" else {"a a0", "b a0"})
    assert across({"a": a, "b": a.model_copy(update={"system": None})}) == []


def test_one_machine_is_no_fleet() -> None:
    assert across({"a": GOOD}) == []
    assert across({}) == []


def test_clocks_within_what_could_be_measured_do_not_differ() -> None:
    vague = Clock(skew_s=3.0, within_s=2.0)
    assert across({"a": skewed(0.0), "b": GOOD.model_copy(update={"clock": vague})}) == []


SPARE = GOOD.model_copy(
    update={"caches": (Cache(name="models", path="/m", mib=2**21),), "docker": DOCKER}
)
IMAGES = with_part("docker", images_mib=2**21)
GB10 = Gpu(index=0, name="GB10", unified=True, compute_capability="12.1")
SEEN = H200.model_copy(update={"compute_capability": "9.0"})
TWO = GPUS.model_copy(update={"gpus": (H200, H200), "links": ("GPU0-GPU1 NV18",)})
LACKS: dict[str, tuple[MachineFacts, MachineFacts, str]] = {
    "arch": (GOOD, system(arch="aarch64"), "aarch64, not x86_64"),
    "gpu_none": (GOOD, GOOD.model_copy(update={"gpus": None}), "1 x H200"),
    "gpu_count": (GOOD.model_copy(update={"gpus": TWO}), GOOD, "1 GPUs instead of 2"),
    "gpu_memory": (
        GOOD,
        with_part("gpus", gpus=(H200.model_copy(update={"total_mib": 81559}),)),
        "79.6 GiB",
    ),
    "gpu_capability": (with_part("gpus", gpus=(SEEN,)), with_part("gpus", gpus=(GB10,)), "12.1"),
    "gpu_unified": (GOOD, with_part("gpus", gpus=(GB10,)), "shared with the machine"),
    "cuda": (GOOD, with_part("gpus", cuda="12.9"), "CUDA 12.9, there 13.0"),
    "driver": (GOOD, with_part("gpus", driver="575.57"), "575.57"),
    "gpu_links": (
        GOOD.model_copy(update={"gpus": TWO}),
        GOOD.model_copy(update={"gpus": TWO.model_copy(update={"links": ("GPU0-GPU1 PHB",)})}),
        "PHB, there by NV18",
    ),
    "memory": (GOOD, with_part("memory", total_mib=65536), "64.0 GiB instead of 128.0 GiB"),
    "memory_free": (GOOD, with_part("memory", available_mib=1024), "1.0 GiB"),
    "docker": (GOOD, GOOD.model_copy(update={"docker": Docker(client="28")}), "28.2.2"),
    "docker_gpus": (GOOD, with_part("docker", runtimes=("runc",)), "the runtime nvidia"),
    "docker_version": (GOOD, with_part("docker", server="24.0.7"), "24.0.7"),
    "models": (SPARE, GOOD, "there they take 2048.0 GiB"),
    "disk_root": (IMAGES, GOOD, "there they take 2048.0 GiB"),
    "engine": (engine(vllm="0.15.0"), engine(vllm="0.14.1"), "vllm 0.14.1 instead of vllm 0.15.0"),
    "python": (GOOD, GOOD.model_copy(update={"python": Python(version="3.10.1")}), "3.10.1"),
    "rdma": (rdma(PORT), GOOD, "0 instead of 1"),
    "speed": (nic(), nic(speed_mbit=10000), "10 Gbit/s (a0), there at 200 Gbit/s (a0)"),
    "mtu": (nic(), nic(mtu=1500), "1500"),
    "memlock": (GOOD, with_part("limits", memlock_kib=8192), "8192 KiB of memory, there any"),
    "shm": (GOOD, with_part("limits", shm_mib=64), "0.1 GiB"),
    "nofile": (GOOD, with_part("limits", nofile=1024), "1024 files, there 65536"),
    "rights": (system(groups=("docker", "ada")), system(groups=("eve",)), "not in docker"),
    "systemd": (system(systemd=True), system(init="sh"), "systemd"),
    "cores": (GOOD, with_part("cpu", cores=8), "8 processors instead of 16"),
    "os": (system(os="Ubuntu 24.04"), system(os="Debian 12"), "Debian 12, there Ubuntu 24.04"),
}


def test_every_lack_has_its_machines() -> None:
    assert set(LACKS) == set(book().differences)


@pytest.mark.parametrize("code", LACKS)
def test_what_a_migration_would_miss(code: str) -> None:
    a, b, words = LACKS[code]
    found = {difference.code: difference for difference in compare(a, b)}
    assert code in found
    assert words in found[code].text
    assert "None" not in found[code].text
    assert len(found) <= 2
    assert compare(a, a) == []


@pytest.mark.parametrize(
    "code", sorted(set(LACKS) - {"arch", "os", "gpu_capability", "gpu_unified"})
)
def test_what_the_other_has_more_is_no_lack(code: str) -> None:
    a, b, _ = LACKS[code]
    assert code not in {difference.code for difference in compare(b, a)}


def test_what_weighs_most_comes_first() -> None:
    found = compare(recorded("gb10"), recorded("container"))
    assert [it.weight for it in found] == sorted((it.weight for it in found), reverse=True)
    assert [it.code for it in found][:2] == ["arch", "gpu_none"]
    assert {"docker", "memory", "rdma", "disk_root"} <= {it.code for it in found}


def test_what_is_not_known_is_not_compared() -> None:
    assert compare(MachineFacts(), GOOD) == []
    cut = recorded("cut_off")
    whole = recorded("h200_busy")
    assert compare(whole, cut) == []
    served = whole.model_copy(update={"docker": DOCKER, "limits": Limits(shm_mib=2**20)})
    assert compare(served, cut) == []
