"""What is taken back is what a call has done, and nothing that is only said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.events import CallEnded, CallQueued, CallStarted, NoteAdded
from agent.gate import judge
from agent.values import CallStatus, Purpose, ToolCall
from tests.provision_stubs import NAME, Stubbed
from tests.test_gate import told
from tools.base import Risk
from tools.host import HOST
from tools.host_changes import TakeBackArgs
from tools.registry import find

INSTALLED = {"new": ["docker.io 20", "runc 1"], "upgraded": ["sudo 2"]}
RUNTIME = {"path": "/etc/a", "written": "/etc/b", "backup": "/etc/c"}
OURS: dict[str, Any] = {"what": "packages", "call": "c1", "names": ["docker.io", "runc"]}
LIMITS = "/etc/security/limits.d/90-bringup.conf"
DAEMON = "/etc/docker/daemon.json"


def goes(
    args: dict[str, Any],
    tool: str = "install_packages",
    seen: dict[str, Any] = INSTALLED,
    *,
    made: dict[str, Any] | None = None,
    status: CallStatus = CallStatus.OK,
    target: str = "local",
    purpose: Purpose | None = None,
) -> tuple[bool, str]:
    call = ToolCall(id="c1", tool=tool, args=made or {}, target="local")
    view = told(
        CallQueued(call=call, risk=Risk.CHANGE, touches=(HOST,)),
        CallStarted(call_id="c1"),
        CallEnded(call_id="c1", tool=tool, status=status, observation=seen),
        NoteAdded(text="take it back"),
    )
    asked = ToolCall(
        id="c9",
        tool="take_back",
        args={"running": [], **args},
        target=target,
        purpose=purpose or Purpose(kind="recover", ref="c1"),
    )
    ruling = judge(view, asked, Risk.CHANGE, (HOST,))
    return ruling.go, ruling.reason


@pytest.mark.parametrize("purpose", [Purpose(kind="requested", ref="e4"), None])
def test_what_the_result_says_goes(purpose: Purpose | None) -> None:
    assert goes(OURS, purpose=purpose) == (True, "")
    names = ["/etc/a", "/etc/b", "/etc/c"]
    args = {"what": "runtime", "call": "c1", "names": names, "running": ["web"]}
    made = {"running": ["web"]}
    assert goes(args, "configure_docker_runtime", RUNTIME, made=made, purpose=purpose)[0]
    more = {**args, "running": ["web", "other"]}
    assert not goes(more, "configure_docker_runtime", RUNTIME, made=made, purpose=purpose)[0]


@pytest.mark.parametrize("purpose", [Purpose(kind="requested", ref="e4"), None])
@pytest.mark.parametrize(
    "other",
    [
        {"names": ["docker.io"]},
        {"names": ["docker.io", "runc", "sudo"]},
        {"what": "limits", "names": ["/new/path", "/any/payload"]},
        {"call": "c77"},
    ],
)
def test_what_a_brain_makes_up_does_not(other: dict[str, Any], purpose: Purpose | None) -> None:
    went, reason = goes({**OURS, **other}, purpose=purpose)
    assert not went
    assert "take" in reason


def test_who_is_asked_reads_what_stops() -> None:
    args = {"what": "runtime", "call": "c1", "names": ["/etc/a"], "running": ["web", "db"]}
    assert (
        find("take_back")
        .title(TakeBackArgs.model_validate(args))
        .endswith("c1: /etc/a; these stop: web, db.")
    )


def test_neither_does_what_is_not_known_or_was_elsewhere_or_changed_nothing() -> None:
    assert not goes(OURS, status=CallStatus.UNKNOWN)[0]
    assert not goes(OURS, target="another")[0]
    was = {"user": "me", "group": "docker", "was_member": True}
    args = {"what": "group", "call": "c1", "names": ["docker", "me"]}
    assert not goes(args, "add_to_group", was)[0]
    assert goes(args, "add_to_group", {**was, "was_member": False})[0]


@pytest.fixture
def host(tmp_path: Path) -> Stubbed:
    return Stubbed.made(tmp_path / "host")


@pytest.mark.parametrize(
    ("what", "names", "says"),
    [
        ("packages", ("docker.io",), "there is no record of what was there before"),
        ("group", ("docker", "me"), "there is no record that this call put me into docker"),
        ("limits", ("/etc/new", "/etc/payload"), "/etc/new is no file of this change"),
        ("limits", (LIMITS, "/etc/payload"), "/etc/payload is no file of this change"),
        ("runtime", ("/etc/payload", "/etc/payload"), "/etc/payload is no file of this change"),
        ("runtime", (DAEMON, f"{DAEMON}.bringup-{NAME}", "/etc/payload"), "is no file of this"),
    ],
)
def test_the_script_believes_no_names(
    host: Stubbed, what: str, names: tuple[str, ...], says: str
) -> None:
    host.write("etc/payload", "theirs\n")
    host.write(DAEMON[1:], "{}\n")
    host.write(f"{DAEMON[1:]}.bringup-{NAME}", "{}\n")
    assert says in host.run("take_back", what, NAME, *names)
    assert host.read("log") == ""
    assert host.read("etc/payload") == "theirs\n"
    assert host.read(DAEMON[1:]) == "{}\n"
    assert not (host.at / "etc/new").exists()


def test_limits_go_or_are_as_they_were(host: Stubbed) -> None:
    kept = f"/etc/security/.bringup-{NAME}.conf"
    host.write(LIMITS[1:], f"# Written by bringup, call {NAME}.\n")
    host.write(kept[1:], "theirs\n")
    assert "error" not in host.run("take_back", "limits", NAME, LIMITS, kept)
    assert host.read(LIMITS[1:]) == "theirs\n"
    assert "has been changed since" in host.run("take_back", "limits", NAME, LIMITS)
    host.write(LIMITS[1:], f"# Written by bringup, call {NAME}.\n")
    assert "error" not in host.run("take_back", "limits", NAME, LIMITS)
    assert not (host.at / LIMITS[1:]).exists()


def runtime(host: Stubbed, *running: str) -> str:
    written, kept = f"{DAEMON}.bringup-{NAME}", f"{DAEMON}.before-{NAME}"
    for name, text in {DAEMON: "new\n", written: "new\n", kept: "old\n"}.items():
        host.write(name[1:], text)
    return host.run("take_back", "runtime", NAME, DAEMON, written, kept, "--", *running)


def test_docker_is_not_started_anew_under_containers_that_came_since(host: Stubbed) -> None:
    host.write("running", "keeper\nweb\n")
    assert "containers run by now that would stop: web; nothing" in runtime(host, "keeper")
    assert host.read(DAEMON[1:]) == "new\n"
    assert host.read("log") == ""
    host.write("live", "true\n")
    assert "error" not in runtime(host, "keeper"), "they go on running"
    assert host.read(DAEMON[1:]) == "old\n"
    host.write("live", "false\n")
    assert "error" not in runtime(host, "keeper", "web")
    assert host.read("log").count("restart") == 2


def test_nor_is_it_removed_under_any(host: Stubbed) -> None:
    host.write(f"hosts/packages/{NAME}.before", "bash:amd64 5\n")
    host.write("live", "true\n")
    host.write("running", "web\n")
    words = ("take_back", "packages", NAME, "docker.io")
    assert "would stop: web; nothing was changed" in host.run(*words)
    host.write("docker-is-down", "")
    host.write("proc/7/comm", "containerd-shim\n")
    assert "Docker does not answer, and containers run" in host.run(*words)
    assert host.read("log") == ""
    host.write("proc/7/comm", "sleep\n")
    assert "error" not in host.run(*words)
    assert "remove -- docker.io" in host.read("log")
    assert "bash was there before" in host.run("take_back", "packages", NAME, "bash")
