"""What a person's ssh configuration says, with OpenSSH's program and without it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.lab.need import need
from tools.connectors import ssh_config, ssh_config_files
from tools.connectors.ssh_config import Address, SshSettings, parse_address
from tools.errors import ConnectionFailed


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("spark", Address("spark")),
        ("spark-1.lan", Address("spark-1.lan")),
        ("me@spark", Address("spark", "me")),
        ("me.you-2@spark:2222", Address("spark", "me.you-2", 2222)),
        ("ssh://me@spark:2222", Address("spark", "me", 2222)),
        ("ssh://spark/", Address("spark")),
        ("10.0.0.1:22", Address("10.0.0.1", None, 22)),
        ("me@[fe80::1%eth0]:22", Address("fe80::1%eth0", "me", 22)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-oProxyCommand=touch x",
        "me@-oProxyCommand=x",
        "-l@spark",
        "ssh://-oProxyCommand=x",
        "spark\n",
        "spark\x00",
        "sp ark",
        "spark;id",
        "$(id)@spark",
        "`id`@spark",
        "a'b@spark",
        "me@spark:0",
        "me@spark:65536",
        "me@spark:ssh",
        "spark:22:22",
        "http://spark",
        "ssh://spark/folder",
        "me@",
        "@spark",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is no address of a host; write host"):
        parse_address(text)


CONFIG = """
Include conf.d/*.conf
Host spark-?
    HostName %h.example.org
    User trainer
    Port 2200
    IdentityFile "~/.ssh/%r key"
    IdentityFile %d/keys/%h
    IdentityAgent ~/.ssh/%r.agent
    CertificateFile ~/.ssh/%n-cert.pub
    IdentitiesOnly yes
    UserKnownHostsFile ~/.ssh/known_a /etc/known_b
    HostKeyAlias Sparks
    ProxyJump jump@gate:2222,inner
    ConnectTimeout 7
    ServerAliveInterval 5
    ServerAliveCountMax 2
    HashKnownHosts yes
Host behind
    ProxyCommand nc -X connect %h %p # %r
Host *
    User everybody
"""


def home(text: str, **more: str) -> Path:
    folder = Path.home() / ".ssh"
    (folder / "conf.d").mkdir(parents=True)
    (folder / "config").write_text(text)
    for name, content in more.items():
        (folder / "conf.d" / f"{name}.conf").write_text(content)
    return folder


@pytest.fixture(params=["with ssh", "without ssh"])
def resolve_with(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "with ssh":
        need(shutil.which("ssh") is not None, "ssh is missing (apt-get install openssh-client)")
    else:
        monkeypatch.setenv("PATH", "/nonexistent")


def resolve(text: str, config_file: str | None = None) -> SshSettings:
    return ssh_config.resolve(parse_address(text), config_file)


@pytest.mark.usefixtures("resolve_with")
def test_everything_that_a_configuration_says() -> None:
    folder = home(CONFIG)
    found = resolve("spark-1")
    assert found == SshSettings(
        address="spark-1",
        host="spark-1.example.org",
        port=2200,
        user="trainer",
        identity_files=(f"{folder}/trainer key", f"{Path.home()}/keys/spark-1.example.org"),
        certificate_files=(f"{folder}/spark-1-cert.pub",),
        agent=f"{folder}/trainer.agent",
        identities_only=True,
        known_hosts=(f"{folder}/known_a", "/etc/known_b"),
        global_known_hosts=found.global_known_hosts,
        host_key_alias="sparks",
        hash_known_hosts=True,
        proxy_jump=("jump@gate:2222", "inner"),
        proxy_command=None,
        connect_timeout_s=7.0,
        alive_interval_s=5.0,
        alive_count=2,
    )
    assert "/etc/ssh/ssh_known_hosts" in found.global_known_hosts
    assert found.known_as == "sparks"


@pytest.mark.usefixtures("resolve_with")
def test_the_address_goes_before_the_configuration() -> None:
    home(CONFIG)
    found = resolve("ssh://me@spark-1:2222")
    assert (found.user, found.port, found.host) == ("me", 2222, "spark-1.example.org")
    found = resolve("behind")
    assert (found.user, found.port, found.known_as) == ("everybody", 22, "behind")
    assert found.proxy_command == "nc -X connect behind 22 # everybody"
    assert resolve("behind:2222").known_as == "[behind]:2222"


@pytest.mark.usefixtures("resolve_with")
@pytest.mark.parametrize(
    ("line", "socket"),
    [
        ("", "/one"),
        ("IdentityAgent SSH_AUTH_SOCK", "/one"),
        ("IdentityAgent none", ""),
        ("IdentityAgent $OTHER_AGENT", "/two"),
        ("IdentityAgent /three", "/three"),
    ],
)
def test_the_agent(line: str, socket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/one")
    monkeypatch.setenv("OTHER_AGENT", "/two")
    home(line)
    assert resolve("plain").agent == socket


@pytest.mark.usefixtures("resolve_with")
def test_where_nothing_is_said() -> None:
    found = resolve("plain")
    folder = Path.home() / ".ssh"
    assert (found.host, found.port, found.proxy_jump) == ("plain", 22, ())
    assert found.known_hosts == (f"{folder}/known_hosts", f"{folder}/known_hosts2")
    assert f"{folder}/id_ed25519" in found.identity_files
    assert (found.connect_timeout_s, found.proxy_command) == (None, None)


@pytest.mark.usefixtures("resolve_with")
def test_included_files() -> None:
    folder = home(
        "Include conf.d/one.conf conf.d/t*.conf\nPort 1111\n"
        "Host spark\n  Include conf.d/inner.conf\n  User outer\nHost other\n  User other\n",
        one="Host one\n  Port 2222\nInclude ~/.ssh/conf.d/deep.conf\n",
        two="Host spark\n  HostName two.example.org\n",
        deep="Host one\n  User deep\n",
        inner="Host *\n  IdentityFile ~/inner\n",
    )
    (folder / "conf.d" / ".hidden.conf").write_text("Port 3333\n")
    one = resolve("one")
    assert (one.port, one.user) == (2222, "deep")
    spark = resolve("spark")
    assert (spark.host, spark.port, spark.user) == ("two.example.org", 1111, "outer")
    assert spark.identity_files == (f"{Path.home()}/inner",)
    other = resolve("other")
    assert (other.port, other.user) == (1111, "other")
    assert f"{Path.home()}/inner" not in other.identity_files


@pytest.mark.usefixtures("resolve_with")
def test_files_that_include_themselves() -> None:
    home("Include conf.d/*.conf\n", loop="Include conf.d/loop.conf\n")
    with pytest.raises(ConnectionFailed, match=r"deep|Too many recursive"):
        resolve("spark")


@pytest.mark.usefixtures("resolve_with")
def test_a_configuration_with_an_error() -> None:
    home("Host spark\n  Port\n")
    with pytest.raises(ConnectionFailed, match=r"spark: .*(config|Unparsable)"):
        resolve("spark")


@pytest.mark.usefixtures("resolve_with")
def test_another_file(tmp_path: Path) -> None:
    home(CONFIG)
    file = tmp_path / "config"
    file.write_text("Host spark-1\n  Port 2201\n")
    found = resolve("spark-1", str(file))
    assert (found.port, found.host) == (2201, "spark-1")


def test_what_cannot_be_read_without_openssh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    folder = home("Match exec true\n  Port 1\n")
    with pytest.raises(ConnectionFailed, match="needs OpenSSH's program"):
        resolve("spark")
    (folder / "config").write_text("Match host spark\n  Include conf.d/*\n")
    with pytest.raises(ConnectionFailed, match="Include inside of `Match host spark`"):
        resolve("spark")


def test_a_file_is_read_for_one_host_only(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.write_text("Host *\n  Port 1\n")
    outer = tmp_path / "outer"
    outer.write_text(f"Host a* !ab\n  Include {inner}\n")
    assert "  Port 1" in list(ssh_config_files.flattened(outer, "ac"))
    assert "  Port 1" not in list(ssh_config_files.flattened(outer, "ab"))
    assert "  Port 1" not in list(ssh_config_files.flattened(outer, "b"))
