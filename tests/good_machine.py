"""A machine without fault, and ways to give it one."""

from __future__ import annotations

from typing import Any

from tools.machine import MachineFacts
from tools.machine_parts import (
    Clock,
    Cpu,
    Disk,
    Docker,
    Environment,
    Gpu,
    Gpus,
    Limits,
    Memory,
    Network,
    Nic,
    Problem,
    Python,
    RdmaPort,
    System,
)

H200 = Gpu(index=0, name="H200", total_mib=143771, used_mib=0, mig="off", persistence=True)
GPUS = Gpus(
    driver="580.159.04",
    cuda="13.0",
    kernel_driver="580.159.04",
    library="580.159.04",
    gpus=(H200,),
    pci=("0000:01:00.0 nvidia",),
    devices=("nvidia0", "nvidiactl", "nvidia-uvm"),
)
DOCKER = Docker(
    client="28.2.2", server="28.2.2", runtimes=("nvidia", "runc"), socket="root:docker 660"
)
DISK = Disk(mount="/", paths=("root", "home", "docker", "models"), total_mib=2**21, free_mib=2**20)
PORT = RdmaPort(device="rocep1s0f0", state="ACTIVE", link="Ethernet", netdev="a0", roce_v2=(3,))
OTHER = PORT.model_copy(update={"device": "roceP2p1s0f0", "netdev": "b0"})
PAIR = (("rocep1s0f0", "roceP2p1s0f0"),)
GOOD = MachineFacts(
    system=System(name="a", arch="x86_64", user="ada", uid=1000),
    cpu=Cpu(cores=16),
    memory=Memory(total_mib=131072, available_mib=120000, swap_used_mib=0),
    gpus=GPUS,
    docker=DOCKER,
    python=Python(path="/usr/bin/python3", version="3.12.3", venv=True),
    disks=(DISK,),
    network=Network(nics=(Nic(name="a0", state="up", mtu=9000, speed_mbit=200000),)),
    limits=Limits(memlock_kib=-1, nofile=65536, nofile_hard=65536, shm_mib=65536),
    clock=Clock(epoch_s=1.0, skew_s=0.1, within_s=0.1, synchronized=True),
)


def with_part(part: str, **update: Any) -> MachineFacts:
    """The good machine with some values of a part changed."""
    return GOOD.model_copy(update={part: getattr(GOOD, part).model_copy(update=update)})


def with_gpu(**update: Any) -> MachineFacts:
    return with_part("gpus", gpus=(H200.model_copy(update=update),))


def with_problem(part: str, kind: str, note: str = "", **update: Any) -> MachineFacts:
    problem = Problem.model_validate({"part": part, "kind": kind, "note": note})
    return GOOD.model_copy(update={"problems": (problem,), **update})


def rdma(*ports: RdmaPort, **more: Any) -> MachineFacts:
    return with_part("network", rdma=ports, **{"rdma_nodes": ("uverbs0",), **more})


def env(cuda: str) -> MachineFacts:
    one = Environment(path="/e", packages={"torch": "2"}, torch_cuda=cuda)
    return with_part("python", environments=(one,))
