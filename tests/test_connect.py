"""From a goal's host to what reaches it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from agent.connect import connector_to
from agent.goal_parts import Host
from tools.connectors.docker import Docker
from tools.connectors.local import Local
from tools.connectors.lxc import Lxc
from tools.connectors.ssh import Ssh
from tools.connectors.venv import Venv


@pytest.mark.parametrize(
    ("container", "kind", "name"),
    [
        ("", Local, "local"),
        ("engine", Docker, "local/engine"),
        ("docker:engine", Docker, "local/engine"),
        ("lxc:101", Lxc, "local/101"),
        ("pct:101", Lxc, "local/101"),
    ],
)
def test_a_container_of_this_machine(container: str, kind: type, name: str) -> None:
    made = connector_to(Host(container=container))
    assert (type(made), made.name) == (kind, name)


def test_a_container_of_another_machine() -> None:
    host = Host.model_validate({"address": "root@pve:2222", "container": "pct:101"})
    made = connector_to(host)
    assert (type(made), made.name) == (Lxc, "pve/101")
    assert isinstance(connector_to(Host.model_validate("pve")), Ssh)


@pytest.mark.parametrize(
    "text", ["lxc:", "podman:x", "pct:web", "lxc:-x", "a b", "lxc:a/b", "pct:1\n", "lxc:a;b"]
)
def test_what_is_no_container(text: str) -> None:
    with pytest.raises(ValidationError):
        Host(container=text)


class Counted(Local):
    """This machine, and how often the way to it was closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_closing_a_place_inside_closes_the_way_to_it() -> None:
    via = Counted()
    for place in (Docker("a", via), Lxc("a", via), Venv("/a", via)):
        place.close()
    assert via.closed == 3
