"""What a machine is blamed for depends on what it is for and what it has."""

from __future__ import annotations

from typing import Any

import pytest

from agent.doctor.ask import Fleet
from agent.doctor.checkup import Checkup, check_up
from agent.doctor.document import document_of
from agent.doctor.findings import across, compare, findings
from agent.doctor.words import lines_of
from agent.goal_parts import Host
from agent.inventory_parts import Member
from tests.good_machine import DOCKER, GOOD, PORT, rdma, with_part
from tests.machines import Retold, codes
from tools.machine_parts import Disk, Limits

DOWN = PORT.model_copy(update={"state": "DOWN"})


def test_a_small_new_machine_is_not_full() -> None:
    disk = Disk(mount="/", paths=("root", "home", "docker", "models", "tmp"), total_mib=40960)
    fresh = GOOD.model_copy(update={"docker": None, "gpus": None})

    def levels(free_gib: int, **update: Any) -> dict[str, str]:
        disks = (disk.model_copy(update={"free_mib": free_gib * 1024}),)
        facts = fresh.model_copy(update={"disks": disks, **update})
        return {it.code: it.level for it in findings(facts)}

    assert levels(37) == {"models_no_room": "note", "docker_missing": "note"}
    assert levels(7)["disk_full"] == "warning"
    assert levels(9, docker=DOCKER)["models_no_room"] == "note"


def test_docker_wants_no_room_where_there_is_none() -> None:
    disk = Disk(mount="/", paths=("root", "docker"), total_mib=150 * 1024, free_mib=10 * 1024)
    facts = GOOD.model_copy(update={"disks": (disk,)})
    assert "disk_full" in codes(facts)
    assert "disk_full" not in codes(facts.model_copy(update={"docker": None}))


def test_a_cable_is_missed_only_where_it_is_wanted() -> None:
    lone = rdma(DOWN).model_copy(update={"limits": Limits(memlock_kib=8192)})
    (alone,) = findings(lone)
    (missed,) = findings(lone, linked=True)
    assert (alone.code, alone.level) == ("rdma_all_down", "note")
    assert missed == alone.model_copy(update={"level": "warning"})


def test_a_container_at_its_limit_is_told() -> None:
    facts = with_part("memory", limit_mib=8192, limit_used_mib=8000)
    found = {it.code: it.text for it in findings(facts)}
    assert "0.2 GiB of 8.0 GiB" in found["memory_low"]
    assert "192 of 8192 MiB memory free" in facts.headline()
    assert dict(lines_of(facts))["memory"].startswith(
        "0.2 of 8.0 GiB free, limited, the machine has 128.0 GiB"
    )


def test_a_limit_is_less_memory_than_another_has() -> None:
    small = with_part("memory", limit_mib=8192, limit_used_mib=1024)
    full = with_part("memory", limit_mib=130000, limit_used_mib=129000)
    (lack,) = compare(GOOD, small)
    assert (lack.code, lack.a, lack.b) == ("memory", "128.0 GiB", "8.0 GiB")
    (lack,) = compare(GOOD, full)
    assert (lack.code, lack.a, lack.b) == ("memory_free", "117.2 GiB", "1.0 GiB")
    assert [it.code for it in across({"a": GOOD, "b": small})] == ["differ_memory"]


def checkup(names: str = "a", nic: str = "", **changed: str) -> Checkup:
    """Look at recorded machines in whose answers some words are others."""
    members = [Member(name=name, host=Host(address=name), nic=nic) for name in names]
    fleet = Fleet(members, 10.0, connect=lambda host: Retold("gb10", changed))
    return check_up(fleet, port_of=lambda member: 22, ways=False)


@pytest.mark.parametrize(
    ("names", "nic", "level"),
    [("a", "", "note"), ("a", "enp1s0f0np0", "warning"), ("ab", "", "warning")],
)
def test_whether_a_cable_is_wanted(names: str, nic: str, level: str) -> None:
    seen = checkup(names, nic, ACTIVE="DOWN")
    found = {it.code: it.level for it in seen.found["a"]}
    assert found["rdma_all_down"] == level
    assert "memlock_low" not in found


def test_no_secret_of_a_command_is_in_the_document() -> None:
    text = str(document_of(checkup()))
    assert "python3 -m bot …" in text
    assert "hub.example" not in text


def test_one_odd_answer_spoils_no_other() -> None:
    seen = checkup("ab", **{'"SecurityOptions":': '"SecurityOptions":5,"x":'})
    assert [it.facts is not None for it in seen.answers] == [True, True]
