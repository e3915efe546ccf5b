"""A goal that names hosts of the inventory: what they are is in the goal from then on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent.goal import Goal, GoalError, load_goal
from agent.goal_parts import Host
from agent.inventory import Inventory, InventoryError, load
from tests.lab.checkout import ROOT

HOSTS = """\
hosts:
  spark-1: {address: "me@10.0.0.11:2222", models: /srv/models, python: /opt/python3}
  gpu[1-2]: lab@{name}.lan
groups: {head: spark-1, both: "gpu[1-2]"}
"""


def goal(folder: Path, hosts: str, inventory: str | None = HOSTS) -> Goal:
    (folder / "goal.yaml").write_text(
        f"model: /m\nhosts: {hosts}\ncandidates: [{{image: lab/engine}}]\n"
    )

    def known() -> Inventory | None:
        if inventory is None:
            return None
        (folder / "hosts.yaml").write_text(inventory)
        return load(folder / "hosts.yaml")

    return load_goal(folder / "goal.yaml", known)


SPARK = Host(
    name="spark-1", address="me@10.0.0.11:2222", models="/srv/models", python="/opt/python3"
)


@pytest.mark.parametrize("hosts", ["[spark-1]", "['@head']", "[{address: spark-1}]"])
def test_a_name_becomes_what_it_stands_for(tmp_path: Path, hosts: str) -> None:
    assert goal(tmp_path, hosts).hosts == (SPARK,)


def test_what_the_goal_says_itself_holds(tmp_path: Path) -> None:
    (host,) = goal(tmp_path, "[{address: spark-1, models: /data, name: head}]").hosts
    assert host == SPARK.model_copy(update={"models": "/data", "name": "head"})


@pytest.mark.parametrize("hosts", ["[local]", "[me@spark-1]", "['spark-1:22']", "[elsewhere]"])
def test_other_hosts_are_as_they_were(tmp_path: Path, hosts: str) -> None:
    assert goal(tmp_path, hosts) == goal(tmp_path, hosts, None)


@pytest.mark.parametrize("hosts", ["[local]", "[me@spark-1]", "[{name: spark-1}]"])
def test_no_inventory_is_read_where_none_is_needed(tmp_path: Path, hosts: str) -> None:
    assert goal(tmp_path, hosts, "broken: [").hosts


def test_the_goal_as_recorded_needs_no_inventory(tmp_path: Path) -> None:
    made = goal(tmp_path, "[spark-1]")
    assert Goal.model_validate(made.model_dump(mode="json")) == made


@pytest.mark.parametrize(
    ("hosts", "says"),
    [
        ("['@haed']", "unknown group `haed`; did you mean `head`?"),
        ("['gpu[1-3]']", "gpu[1-3]: there is no gpu3"),
        ("['gpu[']", "gpu[: a bracket is missing"),
    ],
)
def test_what_is_not_there(tmp_path: Path, hosts: str, says: str) -> None:
    with pytest.raises(InventoryError) as caught:
        goal(tmp_path, hosts)
    assert says in str(caught.value)


def test_several_hosts_are_not_built_yet(tmp_path: Path) -> None:
    with pytest.raises(GoalError, match="one host a goal for now"):
        goal(tmp_path, "['@both']")


def test_a_group_without_an_inventory(tmp_path: Path) -> None:
    with pytest.raises(InventoryError, match="a group needs an inventory"):
        goal(tmp_path, "['@both']", None)


def test_the_examples_of_the_docs_can_be_used(tmp_path: Path) -> None:
    page = (ROOT / "docs/hosts.md").read_text(encoding="utf-8")
    inventory, wanted = re.findall(r"```yaml\n(.*?)```", page, re.S)
    (tmp_path / "hosts.yaml").write_text(inventory)
    (tmp_path / "goal.yaml").write_text(wanted)
    known = load(tmp_path / "hosts.yaml")
    assert len(known.members) == 20
    (host,) = load_goal(tmp_path / "goal.yaml", lambda: known).hosts
    assert (host.name, host.address, host.models) == ("spark-1", "me@10.0.0.11", "/srv/models")
