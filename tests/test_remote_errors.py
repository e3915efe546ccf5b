"""What is wrong with a host, its Docker, an image or a model, as whoever types `deploy` meets it.

Each ends in time with the agreed exit code, one cause that names what and where, and what to do;
people and --json are told the same, and nothing is left behind.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine_socket import engine_like, reply
from tests.lab.command import Desk
from tests.lab.engine import engine
from tests.lab.hub import hub
from tests.lab.image_registry import image_registry
from tests.lab.spark import spark
from tests.lab.sshd import Sshd, new_key, server
from tests.remote_desk import docker_desk, ends, look_only, of_image, own, told
from tests.test_docker_pull import publish

pytestmark = pytest.mark.lab


@pytest.fixture
def here(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with docker_desk(tmp_path, tmp_path_factory.getbasetemp() / "kept-desk") as made:
        yield made


@pytest.fixture
def sshd(here: Desk, tmp_path: Path) -> Iterator[Sshd]:
    with server(tmp_path / "sshd") as made:
        here.env["BRINGUP_SSH_CONFIG"] = str(made.config)
        yield made


@pytest.mark.parametrize(
    ("address", "cause"),
    [
        ("root@127.0.0.1:1", "cannot connect to 127.0.0.1 port 1: Connection refused"),
        ("sparkk.invalid", "cannot connect to sparkk.invalid port 22: Name or service not known"),
    ],
)
def test_a_host_that_is_not_reached(here: Desk, address: str, cause: str) -> None:
    report = ends(here, 5, "deploy", look_only(here, {"address": address}), title="UNREACHABLE")
    assert report["cause"].endswith(cause)
    assert report["cause"].count(cause) == 1


@pytest.mark.parametrize("as_json", [False, True])
def test_an_address_that_is_an_option(here: Desk, as_json: bool) -> None:
    goal = look_only(here, {"name": "x", "address": "-oProxyCommand=touch pwned"})
    done = here.bringup("deploy", goal, *(["--json"] if as_json else []))
    said = done.data["error"] if as_json else done.err
    assert (done.code, said.strip().count("\n")) == (2, 0)
    assert "goal.yaml: hosts:" in said
    assert "-oProxyCommand" in said
    assert not here.runs.exists()


def test_a_key_that_the_host_does_not_take(here: Desk, sshd: Sshd) -> None:
    (sshd.folder / "authorized_keys").write_text("")
    report = ends(here, 5, "deploy", look_only(here, "spark"), title="UNREACHABLE")
    assert f"{sshd.key}: refused" in report["cause"]
    assert "ssh spark true" in report["cause"]


def test_a_host_key_that_has_changed(here: Desk, sshd: Sshd) -> None:
    new_key(sshd.folder / "other")
    other = " ".join((sshd.folder / "other.pub").read_text().split()[:2])
    before = f"# kept\n[127.0.0.1]:{sshd.port} {other}\n"
    sshd.known_hosts.write_text(before)
    goal = look_only(here, "spark")
    report = ends(here, 5, "deploy", goal, "--yes", title="UNREACHABLE")
    assert f"{sshd.known_hosts} line 2" in report["cause"]
    assert "someone else answers in its place" in report["cause"]
    remedy = f"ssh-keygen -f {sshd.known_hosts} -R '[127.0.0.1]:{sshd.port}'"
    assert remedy in report["cause"]
    end = here.bringup("deploy", goal).err.partition("\nUNREACHABLE\n")[2]
    assert remedy in end, "people are told the remedy whole"
    assert sshd.known_hosts.read_text() == before
    cleaned = here.bringup("clean", "spark")
    assert (cleaned.code, remedy in cleaned.err) == (5, True)


def test_a_host_key_that_is_not_known(here: Desk, sshd: Sshd) -> None:
    sshd.known_hosts.write_text("")
    goal = look_only(here, "spark")
    parked = here.bringup("deploy", goal, "--yes")
    assert parked.code == 3, "--yes does not answer for a person who compares fingerprints"
    assert f"PARKED\n{'It waits for an answer; nothing is lost.'}" in parked.err
    assert sshd.fingerprint() in parked.err.partition("\nPARKED\n")[2]
    assert here.bringup("approve", "last", "--answer", "no").code == 1
    assert sshd.known_hosts.read_text() == ""
    parked = here.bringup("deploy", goal, "--json", "--yes")
    asked = parked.events[-1]
    assert (parked.code, asked["type"]) == (3, "approval_asked")
    assert sshd.fingerprint() in asked["command"]
    assert here.bringup("approve", "last", DOCKER_HOST="unix:///nowhere").code == 1
    assert sshd.host_key() in sshd.known_hosts.read_text()


def test_a_person_who_may_not_use_docker(here: Desk, tmp_path: Path) -> None:
    with spark(tmp_path / "spark") as host:
        here.env["BRINGUP_SSH_CONFIG"] = str(host.config)
        goal = look_only(here, "spark-1-nodocker", model=str(host.models))
        report = ends(here, 1, "deploy", goal)
        assert "may not use the Docker socket" in report["cause"]
        assert "group docker" in report["advice"]
        cleaned = here.bringup("clean", "spark-1-nodocker")
    assert (cleaned.code, "may not use the Docker socket" in cleaned.err) == (5, True)


def test_a_host_without_docker(here: Desk, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name, program in (("python3", sys.executable), ("sh", "/bin/sh")):
        (tmp_path / "bin" / name).symlink_to(program)
    report = ends(here, 1, "deploy", look_only(here), PATH=str(tmp_path / "bin"))
    assert report["cause"] == "there is no docker program on the host"
    assert "Install Docker" in report["advice"]


def test_an_engine_that_is_down_or_broken(
    here: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = ends(here, 1, "deploy", look_only(here), DOCKER_HOST="unix:///nowhere.sock")
    assert "does not run, or cannot be reached" in report["cause"]

    def broken(connection: Any, first: str) -> None:
        if first.startswith("HEAD"):
            connection.sendall(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
        else:
            reply(connection, "500 Internal Server Error", {"message": "database is locked"})

    with engine_like(tmp_path, monkeypatch, broken):
        here.env["DOCKER_HOST"] = f"unix://{tmp_path}/docker.sock"
        report = ends_elsewhere(here, 1)
    assert report["cause"].endswith("an error of its own: database is locked")
    assert "journalctl -u docker" in report["advice"]


def test_an_engine_that_hangs(here: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    begun = time.monotonic()

    def silent(connection: Any, first: str) -> None:
        over.wait(60)

    with engine_like(tmp_path, monkeypatch, silent):
        here.env["DOCKER_HOST"] = f"unix://{tmp_path}/docker.sock"
        report = ends_elsewhere(here, 1)
        over.set()
    assert time.monotonic() - begun < 45
    assert "has not answered within 20 s" in report["cause"]


def ends_elsewhere(here: Desk, code: int) -> dict[str, Any]:
    """Run once against an engine that a test plays, which is not asked for containers then."""
    done = here.bringup("deploy", look_only(here), "--json")
    here.env["DOCKER_HOST"] = engine()
    assert (done.code, done.err) == (code, "")
    looks = [row["call"]["tool"] for row in done.events if row["type"] == "call_queued"]
    assert looks.count("docker_info") == 1, "it is asked once"
    return told(done)


def test_images_that_cannot_be_had(here: Desk, tmp_path: Path) -> None:
    def cause(ref: str) -> str:
        return str(
            ends(here, 1, "deploy", look_only(here, candidates=[of_image(ref, "x")]))["cause"]
        )

    begun = time.monotonic()
    assert cause("127.0.0.1:1/no/such:1") == (
        "the host cannot reach the registry of 127.0.0.1:1/no/such:1"
    )
    with image_registry(tmp_path) as registry:
        ref = f"{registry.address}/no/such:1"
        assert cause(ref) == f"no registry that the host can ask has {ref}"
        foreign = publish(registry.address, "riscv64")
        assert f"{foreign} is for linux/riscv64, and the host's engine is" in cause(foreign)
    assert time.monotonic() - begun < 30


def test_models_that_cannot_be_had(here: Desk, tmp_path: Path) -> None:
    def report(url: str, models: str = str(tmp_path / "models")) -> dict[str, Any]:
        host = {"address": "local", "models": models}
        goal = look_only(here, host, model="some/model", hub=url)
        done = here.bringup("deploy", goal, "--yes", "--json")
        assert (done.code, done.err, own(here)) == (1, "", [])
        return told(done)

    with hub({"some/model": here.folder / "model"}, gated={"some/model"}) as site:
        assert "without a token" in report(site.url)["cause"]
        guarded = report(site.url, models="/proc/models")
        assert "models folder on the host cannot be written" in guarded["cause"]
    with hub({}) as site:
        assert report(site.url)["cause"].startswith("the hub has no model some/model")
    assert "cannot reach the hub that has some/model" in report("http://127.0.0.1:1")["cause"]
