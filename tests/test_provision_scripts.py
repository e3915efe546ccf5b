"""What the scripts that make a host ready leave as it was: modes, other files, other limits."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.provision_stubs import NAME, Stubbed

FILE = "etc/docker/daemon.json"
KEPT, WRITTEN = f"{FILE}.before-{NAME}", f"{FILE}.bringup-{NAME}"
THEIRS = '{"log-opts": {"token": "hunter2abc"}}\n'
LIMITS = "etc/security/limits.d/90-bringup.conf"


@pytest.fixture
def host(tmp_path: Path) -> Stubbed:
    return Stubbed.made(tmp_path / "host")


def modes(host: Stubbed) -> set[int]:
    return {(host.at / name).stat().st_mode & 0o777 for name in (FILE, KEPT, WRITTEN)}


def test_who_may_read_daemon_json_stays_so(host: Stubbed) -> None:
    host.write(FILE, THEIRS).chmod(0o600)
    assert f"written=/{WRITTEN}" in host.run("docker_runtime", NAME)
    assert json.loads(host.read(FILE))["runtimes"].keys() == {"nvidia"}
    assert host.read(KEPT) == THEIRS
    assert modes(host) == {0o600}
    names = sorted(path.name for path in (host.at / FILE).parent.iterdir())
    assert names == sorted(Path(name).name for name in (FILE, KEPT, WRITTEN))


def test_a_new_daemon_json_is_for_all_to_read(host: Stubbed) -> None:
    assert "backup" not in host.run("docker_runtime", NAME)
    assert (host.at / FILE).stat().st_mode & 0o777 == 0o644


def test_a_link_stays_a_link(host: Stubbed) -> None:
    real = host.write("etc/site.json", THEIRS)
    (host.at / FILE).symlink_to(real)
    assert "is a link to another file; nothing was changed" in host.run("docker_runtime", NAME)
    assert (host.at / FILE).is_symlink()
    assert real.read_text("utf-8") == THEIRS
    assert host.read("log") == ""


def test_a_file_that_is_no_json_stays(host: Stubbed) -> None:
    host.write(FILE, "{log-opts")
    assert "is not the JSON that Docker reads" in host.run("docker_runtime", NAME)
    assert host.read(FILE) == "{log-opts"


@pytest.mark.parametrize(("program", "times"), [("cp", 1), ("cp", 2), ("mv", 1)])
def test_killed_after_each_step_and_asked_again(host: Stubbed, program: str, times: int) -> None:
    host.write(FILE, THEIRS)
    real = shutil.which(program)
    host.program(
        program,
        f'{real} "$@"; echo >>"$AT/steps"\n'
        f'[ "$(wc -l <"$AT/steps")" -lt {times} ] || kill -9 $PPID',
    )
    assert "end=1" not in host.run("docker_runtime", NAME)
    (host.at / "bin" / program).unlink()
    assert "end=1" in host.run("docker_runtime", NAME)
    assert host.read(KEPT) == THEIRS, "what was there before is still known"
    assert "nvidia" in host.read(FILE)
    assert host.read(FILE) == host.read(WRITTEN)
    assert "end=1" in host.run("docker_runtime", NAME)
    assert host.read(KEPT) == THEIRS


def test_containers_that_came_since_are_named(host: Stubbed) -> None:
    host.write(FILE, THEIRS)
    host.write("running", "keeper\nweb\ndb\n")
    assert "would stop: web db; nothing was changed" in host.run("docker_runtime", NAME, "keeper")
    host.write("docker-is-down", "")
    assert "Docker does not answer" in host.run("docker_runtime", NAME, "keeper")
    assert host.read(FILE) == THEIRS


def test_the_look_does_not_read_daemon_json(host: Stubbed) -> None:
    host.write(FILE, THEIRS)
    said = host.run("provision_look", "~/env")
    assert "end=1" in said
    assert "hunter2abc" not in said


@pytest.mark.parametrize(("uid", "named"), [(0, {"*", "root"}), (1000, {"*"})])
def test_limits_of_root_only_where_root_logs_in(tmp_path: Path, uid: int, named: set[str]) -> None:
    host = Stubbed.made(tmp_path / "host", uid)
    assert "end=1" in host.run("limits_set", NAME, "1", "16")
    lines = host.read(LIMITS).splitlines()
    assert lines[0] == f"# Written by bringup, call {NAME}."
    assert {line.split()[0] for line in lines[1:]} == named
    assert "* hard memlock 1\n* hard nofile 16\n* soft memlock 1" in host.read(LIMITS)


@pytest.mark.skipif(not shutil.which("apt-get"), reason="there is no apt here")
def test_a_plan_starts_none_of_the_hooks_of_the_host(tmp_path: Path) -> None:
    host = Stubbed.made(tmp_path / "host")
    (host.at / "bin/apt-get").unlink()
    (host.at / "bin/dpkg-query").unlink()
    for folder in ("repo", "var/lib/dpkg", "var/cache/apt/archives/partial", "etc/apt"):
        (host.at / folder).mkdir(parents=True, exist_ok=True)
    package = "Package: probe\nVersion: 1\nArchitecture: all\nFilename: ./probe.deb\nSize: 7\n"
    host.write("repo/Packages", package)
    host.write("etc/apt/sources.list", f"deb [trusted=yes] file:{host.at}/repo ./\n")
    host.write("var/lib/dpkg/status", "")
    hook = '{ "echo $0 >>' + str(host.at) + '/hooks"; };\n'
    hooks = ("Update::Pre-Invoke", "Update::Post-Invoke", "Update::Post-Invoke-Success")
    conf = host.write(
        "apt.conf",
        f'Dir "{host.at}";\nDir::Etc::Parts "none";\nDir::Bin::Methods "/usr/lib/apt/methods";\n'
        f'Dir::State::status "{host.at}/var/lib/dpkg/status";\nAPT::Sandbox::User "";\n'
        + "".join(f"APT::{name} {hook}" for name in hooks)
        + "".join(f"DPkg::{name} {hook}" for name in ("Pre-Invoke", "Pre-Install-Pkgs")),
    )
    said = host.run("packages_plan", "probe", APT_CONFIG=str(conf))
    assert "updated=1" in said
    assert "Inst probe" in said
    assert not (host.at / "hooks").exists()
    env = {"PATH": "/usr/bin:/bin:/usr/sbin", "APT_CONFIG": str(conf)}
    subprocess.run(["apt-get", "-q", "update"], env=env, check=True, capture_output=True)
    assert (host.at / "hooks").exists(), "the host's own update starts them"
