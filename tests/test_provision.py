"""What is done about a bare host, judged from what was seen of real ones; GPUs are imitated."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import provisioning
from agent.checks import CHECKS
from agent.goal import GoalError, parse_goal, recorded_goal
from agent.host_checks import HOST_CHECKS
from agent.kinds.by_hand import commands_for
from agent.provision_goal import PARTS, ProvisionGoal
from agent.site import Site, engine_of
from tests.provision_desk import provision, recorded
from tools.base import CallContext
from tools.host_readiness import Readiness
from tools.registry import find

GPU = {"gpus": "GPU 0: NVIDIA GB10 (UUID: GPU-0)", "gpu_pci": True}
"""As `nvidia-smi -L` says it; no test has such a GPU."""


def site(*parts: str, **more: str) -> Site:
    goal = provision("worker", *(parts or PARTS), **more)
    candidate = goal.candidates[0]
    return Site(goal, candidate, engine_of(candidate), goal.hosts[0], goal.port)


def verdict(check: str, seen: Readiness, **more: str) -> tuple[bool | None, str]:
    found = HOST_CHECKS[check].judge(seen, site(**more))
    return found.passed, found.failure


def test_a_goal_without_a_model() -> None:
    goal = provision("me@spark-1:2222", "limits", "python", environment="/srv/env")
    assert goal.all_checks == ("python_ready", "limits_raised"), "in our order, each once"
    assert goal.candidates[0].venv == "/srv/env"
    again = recorded_goal(goal.model_dump(mode="json"), "1")
    assert (type(again), again) == (ProvisionGoal, goal)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"provide": ["gpu"]}, "provide"),
        ({"provide": []}, "provide"),
        ({"environment": "env"}, "environment: needs an absolute path on the host"),
        ({"environment": "/srv/a\nb"}, "environment"),
        ({"memlock": "lots"}, "memlock: needs a number"),
        ({"hosts": ["-oProxyCommand=x"]}, "hosts"),
    ],
)
def test_what_a_goal_may_not_say(more: dict[str, object], says: str) -> None:
    with pytest.raises(GoalError, match=says):
        parse_goal({"kind": "provision", **more}, base=Path("/"), where="test")


def test_a_model_is_still_needed_by_the_others() -> None:
    with pytest.raises(GoalError, match="model"):
        parse_goal({"kind": "serve", "candidates": [{"venv": "e"}]}, base=Path("/"), where="test")


def test_a_bare_host_wants_steps_of_ours() -> None:
    bare = recorded("bare")
    for check in ("python_installed", "python_ready", "docker_installed", "docker_allowed"):
        assert verdict(check, bare) == (False, ""), "nothing has failed: it is just not there yet"
    ready = recorded("ready")
    assert verdict("python_installed", ready) == (True, "")
    assert verdict("python_ready", ready) == (True, "")


@pytest.mark.parametrize("sudo", ["absent", "sudo: a password is required"])
def test_without_root_it_is_for_a_person(sudo: str) -> None:
    seen = recorded("bare", sudo=sudo)
    for check in ("python_installed", "docker_installed", "docker_allowed", "limits_raised"):
        passed, failure = verdict(check, seen)
        assert (passed, failure.startswith("needs operator: ")) == (False, True)
        assert all(
            line.startswith(("sudo ", "printf ")) for line in commands_for(check, site(), seen)
        )
        assert commands_for(check, site(), seen), check


def test_the_commands_name_who_and_what() -> None:
    seen = recorded("sudo_wants_a_password")
    assert commands_for("docker_allowed", site(), seen) == ("sudo usermod -aG docker typist",)
    install = "sudo apt-get update && sudo apt-get install --no-install-recommends "
    assert commands_for("docker_installed", site(), seen) == (f"{install}docker.io",)
    limits = commands_for("limits_raised", site(memlock="64"), seen)
    assert "'* hard memlock 64'" in limits[0]


def test_what_a_host_calls_itself_is_no_command() -> None:
    seen = recorded("bare", os_name="Evil OS `reboot`; rm -rf /$(id) (1.0)" * 9, user="a;b")
    (driver,) = commands_for("driver_works", site(), seen)
    assert driver.startswith("install the NVIDIA driver of Evil OS reboot rm -rf (id) (1.0)Evil")
    assert len(driver) < 120
    assert not set("`;$/") & set(driver)
    seen = recorded("sudo_wants_a_password", user="a b; reboot")
    assert commands_for("docker_allowed", site(), seen) == ("sudo usermod -aG docker 'a b reboot'",)


def test_many_containers_are_counted() -> None:
    names = tuple(f"container-with-a-long-name-{number}" for number in range(20))
    seen = recorded("docker_and_imitated_gpu", docker_running=names, docker_runtimes=("runc",))
    commands = commands_for("gpu_in_containers", site(), seen)
    assert commands[-1].endswith(f"{names[4]}, and 15 more")
    assert find("operator_step").args_type.model_validate({"commands": commands})
    seen = seen.model_copy(update={"docker_running": names[:5]})
    assert commands_for("gpu_in_containers", site(), seen)[-1].endswith(names[4])


def test_the_key_is_compared_where_only_its_user_writes() -> None:
    seen = recorded("docker_and_imitated_gpu", toolkit="")
    commands = commands_for("toolkit_installed", site(), seen)
    keys = [line for line in commands if "nvidia.asc" in line]
    assert keys
    assert all("~/nvidia.asc" in line for line in keys)


def test_a_new_login_is_waited_for_where_ours_cannot_be_opened_anew() -> None:
    seen = recorded("bare", docker="Docker 20", dockerd=True, groups_next=("worker", "docker"))
    assert "this login does not have the group docker" in verdict("docker_allowed", seen)[1]
    assert commands_for("docker_allowed", site(), seen) == (
        "log out there and in again, as worker",
    )


def test_a_daemon_that_does_not_answer_is_named() -> None:
    down = recorded("bare", docker="Docker 20", docker_error="x\nCannot connect to the daemon")
    passed, failure = verdict("docker_usable", down)
    assert (passed, failure.endswith("does not answer: Cannot connect to the daemon")) == (
        False,
        True,
    )
    assert commands_for("docker_usable", site(), down) == ("sudo service docker start",)
    with_systemd = down.model_copy(update={"systemd": True})
    assert commands_for("docker_usable", site(), with_systemd) == (
        "sudo systemctl enable --now docker",
    )


def test_docker_ce_only_where_its_repository_is_configured() -> None:
    family = provisioning.load().family(recorded("bare"))
    assert family is not None
    assert family.choice("docker", ()) == ("docker.io",)
    assert family.choice("docker", ("docker-ce",))[0] == "docker-ce"
    assert family.choice("nvidia", ()) == (), "NVIDIA's repository is not added by us"


@pytest.mark.parametrize(
    ("os", "like", "manager", "found"),
    [
        ("ubuntu", ("debian",), "apt-get", "debian"),  # DGX OS too
        ("linuxmint", ("ubuntu", "debian"), "apt-get", "debian"),
        ("rocky", ("rhel", "centos", "fedora"), "dnf", "fedora"),
        ("arch", (), "", None),
        ("debian", (), "", None),
    ],
)
def test_families(os: str, like: tuple[str, ...], manager: str, found: str | None) -> None:
    book = provisioning.load()
    family = book.family(Readiness(os_id=os, os_like=like, manager=manager))
    assert family is (book.families[found] if found else None)


def test_a_system_of_another_kind_is_said_to_be_unknown_or_left_to_a_person() -> None:
    arch = Readiness(os_id="arch", os_name="Arch Linux", sudo="yes")
    assert "nothing is known of packages on Arch Linux" in verdict("docker_installed", arch)[1]
    rocky = Readiness(os_id="rocky", os_like=("rhel",), manager="dnf", sudo="yes")
    assert "installs with apt only, and this has dnf" in verdict("python_installed", rocky)[1]
    assert commands_for("python_installed", site(), rocky) == (
        "sudo dnf install python3 python3-pip",
    )


def test_the_toolkit_of_a_repository_that_nobody_has_added() -> None:
    seen = recorded("docker_and_imitated_gpu", toolkit="")
    assert "no configured repository has it" in verdict("toolkit_installed", seen)[1]
    commands = commands_for("toolkit_installed", site(), seen)
    assert any("--with-fingerprint" in line for line in commands), "the key is to be compared"
    assert commands[-1].endswith("nvidia-container-toolkit")
    known = seen.model_copy(update={"known": ("nvidia-container-toolkit",)})
    assert verdict("toolkit_installed", known) == (False, ""), "ours to install"


def test_a_driver_is_never_ours() -> None:
    none = recorded("bare")
    assert verdict("driver_works", none) == (False, "no NVIDIA GPU is seen on worker")
    assert commands_for("driver_works", site(), none)[0].endswith("and reboot")
    card = recorded("bare", gpu_pci=True)
    assert verdict("driver_works", card)[1].endswith("does not work: nvidia-smi is missing")
    broken = recorded("bare", gpus="Failed to initialize NVML: Driver/library version mismatch")
    assert "version mismatch" in verdict("driver_works", broken)[1]
    assert commands_for("driver_works", site(), broken) == ("sudo reboot",)
    assert verdict("driver_works", recorded("bare", **GPU)) == (True, "")


def test_docker_knows_the_runtime() -> None:
    seen = recorded("docker_and_imitated_gpu")
    assert verdict("gpu_in_containers", seen) == (True, "")
    without = seen.model_copy(update={"docker_runtimes": ("runc",)})
    assert verdict("gpu_in_containers", without) == (False, "")


def test_limits_that_a_login_does_not_get() -> None:
    low = recorded("bare", memlock="64", nofile="1024")
    assert verdict("limits_raised", low) == (False, "")
    assert verdict("limits_raised", low, memlock="64", nofile="1000") == (True, "")
    written = low.model_copy(update={"limits": "# Written by bringup, call x.\n"})
    assert "UsePAM" in verdict("limits_raised", written)[1]


TITLES = {
    "install_packages": ({"packages": ["docker.io"]}, "Install docker.io as root"),
    "make_environment": ({"environment": "/srv/env"}, "in /srv/env"),
    "add_to_group": ({"group": "docker"}, "can become root"),
    "set_limits": ({}, "lock unlimited KiB"),
    "configure_docker_runtime": ({"running": ["vllm", "web"]}, "these stop: vllm, web"),
    "operator_step": ({"commands": ["sudo reboot"]}, "sudo reboot"),
    "take_back": ({"what": "group", "call": "t1.1", "names": ["docker", "me"]}, "docker, me"),
}


@pytest.mark.parametrize("name", TITLES)
def test_each_change_says_what_it_does_and_how_it_is_undone(name: str) -> None:
    data, says = TITLES[name]
    tool = find(name)
    args = tool.args_type.model_validate(data)
    assert says in tool.title(args)
    assert tool.undo_text(args) or name == "take_back"
    words = tool.command(args, CallContext("run-1", "t1.1", "m", "d")).argv
    assert all(isinstance(word, str) for word in words)


BAD = [
    ("install_packages", {"packages": ["--force-yes"]}),
    ("install_packages", {"packages": ["a b"]}),
    ("install_packages", {"packages": []}),
    ("add_to_group", {"group": "$(id)"}),
    ("make_environment", {"environment": "../x"}),
    ("set_limits", {"memlock": "1; reboot"}),
    ("take_back", {"what": "group", "call": "x", "names": ["-d"]}),
    ("take_back", {"what": "packages", "call": "../x", "names": ["a"]}),
]


@pytest.mark.parametrize(("name", "data"), BAD)
def test_no_word_becomes_an_option_or_a_command(name: str, data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"String should match|at least 1 item"):
        find(name).args_type.model_validate(data)


def test_every_check_says_what_it_says() -> None:
    assert set(HOST_CHECKS) <= set(CHECKS)
