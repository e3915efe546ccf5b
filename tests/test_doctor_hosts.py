"""`bringup doctor` as a person runs it: many real ssh servers, some of them dead, silent or odd."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doctor_desk import NAMES, closed_port, doctor_desk
from tests.lab.command import Desk, Done
from tests.lab.fleet import Fleet, fleet
from tests.lab.wire import wire
from tests.ssh_host import ME

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet(tmp_path_factory.mktemp("fleet"), NAMES) as made:
        yield made


@pytest.fixture
def here(tmp_path: Path, hosts: Fleet) -> Desk:
    return doctor_desk(tmp_path, hosts)


def asked(here: Desk, *words: str, **env: str) -> tuple[Done, dict[str, Any]]:
    """Ask for JSON; hosts by name."""
    done = here.bringup("doctor", *words, "--json", **env)
    return done, {host["name"]: host for host in done.data["hosts"]}


def codes(host: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in host["findings"]}


def test_sixteen_hosts_are_asked_by_one_connection_each(here: Desk, hosts: Fleet) -> None:
    before = {name: sshd.logins() for name, sshd in hosts.servers.items()}
    done, found = asked(here, "@worker")
    assert [*found] == NAMES
    assert all(host["reached"] for host in found.values())
    (kernel,) = {host["facts"]["system"]["kernel"] for host in found.values()}
    assert kernel == Path("/proc/sys/kernel/osrelease").read_text().strip()
    assert {name: sshd.logins() - before[name] for name, sshd in hosts.servers.items()} == (
        dict.fromkeys(NAMES, 1)
    )
    assert [row["code"] for row in done.data["findings"]].count("same_machine") == 1
    assert done.code == done.data["exit_code"] in (0, 1)


def test_many_hosts_are_a_line_each(here: Desk) -> None:
    done = here.bringup("doctor", "@worker")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[:17]] == ["host", *NAMES]
    assert "\x1b" not in done.out
    assert lines[-1].startswith("16 hosts: ")


def test_few_hosts_are_some_lines_each(here: Desk) -> None:
    done = here.bringup("doctor", "@two")
    assert max(map(len, done.out.splitlines())) <= 80
    assert re.findall(r"(?m)^(gpu\d\d)  \[worker\]  [\d.]+ s$", done.out) == ["gpu01", "gpu02"]
    assert re.search(r"(?m)^  memory  [\d.]+ of [\d.]+ GiB free", done.out)
    assert done.out.splitlines()[-1].startswith("2 hosts: ")


def test_a_dead_host_and_a_silent_one_hold_up_nobody(here: Desk, hosts: Fleet) -> None:
    with wire(hosts.servers["gpu02"].port) as silent:
        hosts.configure({"dead": closed_port(), "silent": silent.port})
        silent.freeze()
        begun = time.monotonic()
        done, found = asked(here, "silent", "dead", "gpu[01-03]", "--timeout", "12")
        took_s = time.monotonic() - begun
    assert [name for name, host in found.items() if not host["reached"]] == ["silent", "dead"]
    assert found["silent"]["trouble"] == "no answer within 12 s"
    assert "Connection refused" in found["dead"]["trouble"]
    assert max(found[name]["seconds"] for name in NAMES[:3]) < 12
    assert took_s < 12 + 6
    assert (done.code, codes(found["dead"])) == (5, {"unreachable"})
    assert re.search(r"asking: 4 of 5, \d+ s; out: silent", done.err)


def test_a_host_that_falls_silent_after_the_login(here: Desk, hosts: Fleet) -> None:
    """It is slow to answer, then frozen: what is there is known, and the end comes in time."""
    slow = hosts.folder / "slow.sh"
    slow.write_text("sleep 30\n")
    with fleet(hosts.folder / "slow", ["slow"], SetEnv=f"SHLVL=2 BASH_ENV={slow}") as other:
        here.env["BRINGUP_SSH_CONFIG"] = str(other.config)
        begun = time.monotonic()
        done, found = asked(here, "slow", "--timeout", "3")
    assert (done.code, found["slow"]["trouble"]) == (5, "no answer within 3 s")
    assert time.monotonic() - begun < 3 + 6


def test_an_unknown_host_key_is_not_accepted(here: Desk, hosts: Fleet) -> None:
    hosts.known_hosts.write_text("")
    done = here.bringup("doctor", "gpu01")
    (fingerprint,) = re.findall(r"SHA256:[A-Za-z0-9+/]{43}", done.out.replace("\n    ", ""))
    assert fingerprint == hosts.servers["gpu01"].fingerprint()
    assert "then `ssh gpu01 true` once, and say yes" in done.out.replace("\n      ", " ")
    assert (done.code, hosts.known_hosts.read_text()) == (5, "")


def test_a_changed_host_key_is_refused(here: Desk, hosts: Fleet) -> None:
    text = hosts.known_hosts.read_text()
    other = "AAAAC3NzaC1lZDI1NTE5AAAAI" + "A" * 43
    hosts.known_hosts.write_text(re.sub(r"AAAA\S+", other, text))
    done, found = asked(here, "gpu01")
    assert "THE HOST KEY HAS CHANGED" in found["gpu01"]["trouble"].upper()
    assert done.code == 5


def test_what_a_shell_prints_is_no_fact(here: Desk, hosts: Fleet) -> None:
    loud = hosts.folder / "loud.sh"
    loud.write_text("echo '[red]*** welcome ***'; printf '\\033[2Jhi'; echo oops >&2\n")
    banner = hosts.folder / "banner"
    banner.write_text("AUTHORIZED USERS ONLY\n")
    options = {"SetEnv": f"SHLVL=2 BASH_ENV={loud}", "Banner": str(banner)}
    with fleet(hosts.folder / "loud", ["loud"], **options) as other:
        here.env["BRINGUP_SSH_CONFIG"] = str(other.config)
        done, found = asked(here, "loud")
        shown = here.bringup("doctor", "loud")
    assert found["loud"]["facts"]["system"]["system"] == "Linux"
    assert not re.search(r"welcome|AUTHORIZED|oops|\x1b", done.out + done.err + shown.out)


def test_a_host_that_starts_nothing(here: Desk, hosts: Fleet) -> None:
    with fleet(hosts.folder / "shut", ["shut"], ForceCommand="echo closed; exit 0") as other:
        here.env["BRINGUP_SSH_CONFIG"] = str(other.config)
        done, found = asked(here, "shut")
    assert (done.code, found["shut"]["facts"]) == (5, None)
    assert "closed" in found["shut"]["trouble"]


def test_plain_addresses_need_no_inventory(here: Desk, hosts: Fleet) -> None:
    (here.folder / "hosts.yaml").unlink()
    word = f"{ME}@127.0.0.1:{hosts.servers['gpu01'].port}"
    lines = hosts.config.read_text().replace("Host gpu01", "Host gpu01 127.0.0.1")
    hosts.config.write_text(lines)
    done, found = asked(here, word, "local")
    assert [*found] == [word, "local"]
    assert all(host["reached"] for host in found.values())
    assert done.code in (0, 1)


def test_without_a_word_it_is_this_machine_or_the_inventory(here: Desk) -> None:
    (here.folder / "hosts.yaml").write_text("hosts: {gpu01: , gpu02: }")
    assert [*asked(here)[1]] == ["gpu01", "gpu02"]
    (here.folder / "hosts.yaml").write_text("hosts:")
    assert [*asked(here)[1]] == ["local"]
    (here.folder / "hosts.yaml").rename(here.folder / "mine.yaml")
    assert [*asked(here)[1]] == ["local"]
    (here.folder / "mine.yaml").write_text("hosts: {gpu03: }")
    assert [*asked(here, "--inventory", "mine.yaml")[1]] == ["gpu03"]
    assert [*asked(here, BRINGUP_INVENTORY="mine.yaml")[1]] == ["gpu03"]


def test_two_hosts_compared(here: Desk) -> None:
    done = here.bringup("doctor", "--compare", "gpu01", "gpu02", "--json")
    assert (done.code, done.data["differences"]) == (0, [])
    assert (done.data["a"]["name"], done.data["b"]["name"]) == ("gpu01", "gpu02")
    shown = here.bringup("doctor", "--compare", "gpu01", "gpu02")
    assert (shown.code, shown.out) == (0, "gpu02 lacks nothing that gpu01 has\n")
    lost = here.bringup("doctor", "--compare", "gpu01", "dead")
    assert lost.code == 5
    assert "Connection refused\nnothing is compared without the facts of both\n" in lost.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["@workers"], "unknown group `workers`; did you mean `worker`?"),
        (["gpu[01-17]"], "gpu[01-17]: there is no gpu17"),
        (["--compare", "gpu01", "gpu01"], "two different hosts are needed, and no others"),
        (["--compare", "gpu01", "gpu02", "gpu03"], "two different hosts are needed"),
        (["--inventory", "none.yaml"], "none.yaml: no such inventory"),
        (["--timeout", "0"], "doctor: invalid value for '--timeout'"),
        (["-x"], "doctor: no such option: -x"),
    ],
)
def test_wrong_words(here: Desk, words: list[str], says: str) -> None:
    done = here.bringup("doctor", *words)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert done.err.count("\n") == 1


def test_a_mistyped_name_is_named(here: Desk) -> None:
    done = here.bringup("doctor", "dea")
    assert done.code == 5
    assert "Did you mean `dead`, which is in the inventory?" in done.out


def test_ascii_is_enough(here: Desk) -> None:
    plain = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = here.bringup("doctor", "gpu01", "dead", **plain)
    assert done.out.isascii()
    assert "\\x" not in done.out
    assert "-> See what `ssh dead true` says." in done.out


def test_the_document_is_json_whatever_happens(here: Desk) -> None:
    done = here.bringup("doctor", "dead", "--json")
    assert json.loads(done.out) == done.data
    assert done.out.count("\n") == 1
    wrong = here.bringup("doctor", "@no", "--json")
    assert (wrong.code, wrong.data["exit_code"]) == (2, 2)
