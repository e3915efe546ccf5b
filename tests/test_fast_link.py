"""The fastest private address from one host to another, between real network namespaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.cli import main
from agent.doctor.ask import Fleet
from agent.doctor.fast_link import FastLink, fastest
from agent.goal_parts import Host
from agent.inventory_parts import Member
from tests.lab.netns import Net, net
from tests.lab.sshd import server

TWO = {"a": ["10.77.0.1/24", "10.78.0.1/24"], "b": ["10.77.0.2/24", "10.78.0.2/24"]}
PORT = 2222


def link(made: Net, nic: str = "") -> FastLink:
    members = [Member(name=name, host=Host(name=name, address=name)) for name in made.namespaces]
    members[1] = members[1].model_copy(update={"nic": nic})
    fleet = Fleet(members, 60, connect=lambda host: made.inside(host.name))
    return fastest(fleet, PORT)


@pytest.mark.lab
def test_an_address_that_answers_or_refuses_will_do() -> None:
    with net(TWO) as made:
        assert link(made).address in ("10.77.0.2", "10.78.0.2")
        with made.listening("b", "10.78.0.2", port=PORT):
            assert link(made, "lan1").address == "10.78.0.2"
            assert link(made, "lan0").address == "10.77.0.2"


@pytest.mark.lab
def test_a_link_that_is_down_is_not_taken() -> None:
    with net(TWO) as made:
        made.ip("a", "link", "set", "lan0", "down")
        assert link(made).address == "10.78.0.2"
        made.ip("a", "link", "set", "lan1", "down")
        assert link(made) == FastLink("", "a reaches no private address of b")


@pytest.mark.lab
def test_addresses_of_the_world_are_not_taken() -> None:
    with net({"a": ["8.8.4.1/24"], "b": ["8.8.4.2/24"]}) as made:
        assert link(made) == FastLink("", "b has no private address of its own")


@pytest.mark.lab
def test_a_device_that_is_not_there() -> None:
    with net(TWO) as made:
        assert link(made, "lan7").why == "b has no private address of its own on lan7"


def test_a_copy_that_has_no_link_goes_through_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").write_text("it")
    with server(tmp_path / "sshd") as sshd:
        monkeypatch.setenv("BRINGUP_SSH_CONFIG", str(sshd.config))
        words = [str(tmp_path / "x"), f"spark:{tmp_path}/y", "--direct", "auto"]
        assert main(["copy", *words]) == 0
    said = capsys.readouterr()
    assert "through here: it is no copy from one host to another" in said.err
    assert "relayed" in said.out
    assert (tmp_path / "y").read_text() == "it"
