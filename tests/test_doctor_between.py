"""What hosts reach of each other: real kernels' networks in namespaces, with faults in them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from agent.doctor.ask import Fleet
from agent.doctor.between import doors_of, plan
from agent.doctor.checkup import Checkup, check_up
from agent.doctor.show import network_words
from agent.goal_parts import Host
from agent.inventory_parts import Member
from tests.lab.netns import Net, net
from tools.machine import MachineFacts
from tools.machine_parts import Network, Nic

PORT = 2222
THREE = {
    "a": ["10.77.0.1/24", "10.78.0.1/24"],
    "b": ["10.77.0.2/24", "10.78.0.2/24"],
    "c": ["10.77.0.3/24"],
}


@contextmanager
def hosts(
    addresses: Mapping[str, Sequence[str]] = THREE, silent: Sequence[str] = ()
) -> Iterator[Net]:
    """Hosts that listen at all their addresses, but for the silent ones."""
    with net(addresses) as made, contextlib.ExitStack() as stack:
        for host, its in addresses.items():
            if host not in silent:
                plain = [address.partition("/")[0] for address in its if address]
                stack.enter_context(made.listening(host, *plain, port=PORT))
        yield made


def looked(made: Net, python: str = "python3") -> Checkup:
    members = [
        Member(name=name, host=Host(name=name, address=name, python=python))
        for name in made.namespaces
    ]
    fleet = Fleet(members, 60, connect=lambda host: made.inside(host.name))
    return check_up(fleet, port_of=lambda member: PORT)


def between(checkup: Checkup) -> list[tuple[str, str, str, str]]:
    """The findings about ways between the hosts."""
    codes = ("no_way", "partly_reached")
    found = [it for it in checkup.shared if it.code in codes]
    return [(it.code, it.level, it.subject, it.text) for it in found]


@pytest.mark.lab
def test_all_reach_each_other() -> None:
    with hosts() as made:
        seen = looked(made)
    first, second = sorted(seen.between.networks, key=lambda view: view.network)
    assert (first.network, first.hosts, first.nics) == ("10.77.0.0/24", ("a", "b", "c"), ("lan0",))
    assert (second.network, second.hosts, len(second.links)) == ("10.78.0.0/24", ("a", "b"), 2)
    assert len(first.reached) == len(first.links) == 6
    assert first.speed_mbit == 10_000, "what the kernel says of such devices"
    assert {link.tried.source for link in first.reached if link.source == "a"} == {"10.77.0.1"}
    words = network_words(first)
    assert words.startswith("10.77.0.0/24 (10 Gb/s, lan0): a, b, c: all reach each other, ")
    assert words.endswith(" ms")
    assert between(seen) == []


@pytest.mark.lab
def test_one_network_of_two_is_down() -> None:
    with hosts() as made:
        made.ip("b", "link", "set", "lan1", "down")
        seen = looked(made)
    ((code, level, subject, text),) = between(seen)
    assert (code, level, subject) == ("partly_reached", "warning", "10.78.0.0/24")
    assert text.startswith("By 10.78.0.0/24 (lan1) it does not go from b to a: ")


@pytest.mark.lab
def test_a_host_that_nobody_reaches() -> None:
    with hosts() as made:
        made.ip("c", "addr", "flush", "dev", "lan0")
        made.ip("c", "addr", "add", "10.99.0.1/24", "dev", "lan0")
        seen = looked(made)
    found = between(seen)
    assert {level for _, level, _, _ in found} == {"warning"}
    assert [(code, subject) for code, _, subject, _ in found] == [
        ("no_way", "a, b"),
        ("no_way", "c"),
    ]
    assert found[0][3].startswith("a, b reach no address of c at port 2222: ")
    assert found[1][3].startswith("c reaches no address of a, b at port 2222: ")


@pytest.mark.lab
def test_all_are_apart() -> None:
    with hosts({"a": ["10.77.0.1/24"], "b": ["", "10.78.0.2/24"]}) as made:
        seen = looked(made)
    ((code, level, _, text),) = between(seen)
    assert (code, level) == ("no_way", "warning")
    assert text.startswith("a, b reach no address of each other at port 2222: ")


@pytest.mark.lab
def test_nobody_listens_there() -> None:
    with hosts(silent=["c"]) as made:
        seen = looked(made)
    ((code, level, subject, text),) = between(seen)
    assert (code, level, subject) == ("no_way", "note", "a, b")
    assert text == "a, b reach no address of c at port 2222: Connection refused."


@pytest.mark.lab
def test_a_host_without_python_tries_nothing() -> None:
    with hosts({"a": ["10.77.0.1/24"], "b": ["10.77.0.2/24"]}) as made:
        seen = looked(made, "/nowhere/python3")
    assert [name for name, _ in seen.between.not_tried] == ["a", "b"]
    assert "/nowhere/python3" in seen.between.not_tried[0][1]
    assert seen.between.links == ()


def facts(*nics: Nic) -> MachineFacts:
    return MachineFacts(network=Network(nics=nics))


@pytest.mark.parametrize(
    ("nic", "address"),
    [
        (Nic(name="eth0", addresses=("10.0.0.1/24", "fd00::1/64")), "10.0.0.1"),
        (Nic(name="eth0", addresses=("fd00::1/64", "fe80::1/64")), "fd00::1"),
        (Nic(name="enp1s0f0np0", addresses=("169.254.7.1/16",)), "169.254.7.1"),
        (Nic(name="eth0", state="down", addresses=("10.0.0.1/24",)), None),
        (Nic(name="lo", addresses=("127.0.0.1/8", "::1/128")), None),
        (Nic(name="docker0", addresses=("172.17.0.1/16",)), None),
        (Nic(name="br-12ab34cd56ef", addresses=("172.18.0.1/16",)), None),
        (Nic(name="eth0", addresses=("fe80::1/64",)), None),
        (Nic(name="eth0", addresses=("nonsense", "127.0.0.5/8")), None),
    ],
)
def test_addresses_that_others_can_try(nic: Nic, address: str | None) -> None:
    found = [door.address for door in doors_of("a", facts(nic), 22)]
    assert found == ([] if address is None else [address])


def test_an_address_of_several_hosts_is_not_tried() -> None:
    own = {"a": "10.0.0.1/24", "b": "10.0.0.2/24", "c": "10.0.0.3/24"}
    doors = {
        name: doors_of(name, facts(Nic(name="e", addresses=(it, "192.168.1.1/24"))), 22)
        for name, it in own.items()
    }
    tries = plan(doors, [*doors, "local"])
    assert {name: [door.address for door in its] for name, its in tries.items()} == {
        "a": ["10.0.0.2", "10.0.0.3"],
        "b": ["10.0.0.1", "10.0.0.3"],
        "c": ["10.0.0.1", "10.0.0.2"],
        "local": ["10.0.0.1", "10.0.0.2", "10.0.0.3"],
    }
    assert plan({"a": doors["a"]}, ["a"]) == {}
