"""Reads what a person's ssh configuration says about a host.

OpenSSH's own ``ssh -G HOST`` answers where that program exists, since nobody else reads the files
as it does; ``ssh_config_files`` answers where it does not.
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.command import Command
from tools.connectors import ssh_config_files
from tools.connectors.local import Local
from tools.connectors.ssh_config_files import at_home
from tools.errors import ConnectionFailed

NOT_FOUND = 127
"""Exit code of a program that does not exist."""
DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
"""Identity files where the configuration names none."""

_ADDRESS = re.compile(
    r"""(?:ssh://)?
    (?:(?P<user>[^\s@'"`$\\;&<>|(){}:/-][^\s@'"`$\\;&<>|(){}:/]*)@)?
    (?: \[(?P<ip>[0-9A-Fa-f:.]+(?:%[\w.]+)?)\] | (?P<host>[\w.][\w.-]*) )
    (?::(?P<port>[0-9]{1,5}))?
    /?""",
    re.VERBOSE,
)
_TOKEN = re.compile(r"%(.)|\$\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a person says a host is; what is ``None`` comes from their configuration."""

    host: str
    user: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class SshSettings:
    """What the configuration says about one host."""

    address: str
    """The host as it was asked for; often an alias."""
    host: str
    port: int
    user: str
    identity_files: tuple[str, ...]
    """Paths of private keys, best first; they need not exist."""
    certificate_files: tuple[str, ...]
    """Paths of certificates, beside those that lie next to their keys."""
    agent: str
    """Socket of the agent that is asked; empty: none."""
    identities_only: bool
    """Whether an agent's other keys are left alone."""
    known_hosts: tuple[str, ...]
    """The person's files of host keys; a new key is written to the first one."""
    global_known_hosts: tuple[str, ...]
    host_key_alias: str | None
    hash_known_hosts: bool
    proxy_jump: tuple[str, ...]
    """Addresses of the hosts on the way, the first one first."""
    proxy_command: str | None
    """A line for a shell, with its tokens put in."""
    connect_timeout_s: float | None
    alive_interval_s: float
    """How often the host has to answer; 0 where nothing is said."""
    alive_count: int
    """After how many silent intervals the connection is given up."""

    @property
    def known_as(self) -> str:
        """The name under which files of host keys list the host."""
        if self.host_key_alias:
            return self.host_key_alias
        host = self.host.lower()
        return host if self.port == 22 else f"[{host}]:{self.port}"


def parse_address(text: str) -> Address:
    """Read ``host``, ``user@host``, ``user@host:port`` or ``ssh://user@host:port``.

    IPv6 addresses stand in brackets. Nothing that a program could take for an option, and nothing
    that means something to a shell, is a host or a user.

    Raises:
        ValueError: it is none of these; the message says what is allowed.
    """
    found = _ADDRESS.fullmatch(text)
    port = int(found["port"]) if found and found["port"] else None
    if found is None or (port is not None and not 1 <= port <= 65535):
        raise ValueError(
            f"{text!r} is no address of a host; write host, user@host, user@host:port or "
            "ssh://user@host:port, an IPv6 address in brackets"
        )
    return Address(found["ip"] or found["host"], found["user"], port)


def resolve(address: Address, config_file: str | None = None) -> SshSettings:
    """Ask the configuration about a host.

    Args:
        address: the host; its user and port go before those of the configuration.
        config_file: the only file that is read; ``None`` means the person's and the system's. Where
            ``HOME`` is not the home that the system knows for this user, ``HOME`` decides (OpenSSH
            itself would ignore it), and the system's file is left out.

    Raises:
        ConnectionFailed: the configuration has an error; the message is that of its reader.
    """
    moved = _moved_home()
    if config_file is None and moved:
        own = Path.home() / ".ssh" / "config"
        config_file = str(own) if own.is_file() else "none"
    options = ["-F", config_file] if config_file else []
    options += ["-l", address.user] if address.user else []
    options += ["-p", str(address.port)] if address.port else []
    asked = Local().run(Command.of("ssh", *options, "-G", "--", address.host, timeout_s=15))
    if asked.code == NOT_FOUND:
        return settings_from(ssh_config_files.lookup(address.host, config_file), address)
    if not asked.ok:
        raise ConnectionFailed(address.host, f"`ssh -G` cannot tell ({asked.how}): {asked.tail}")
    found = read_answer(asked.stdout)
    if moved:
        for key in ("userknownhostsfile", "identityfile", "certificatefile", "identityagent"):
            old, new = f"{moved}/.ssh/", f"{Path.home()}/.ssh/"
            found[key] = [value.replace(old, new) for value in found.get(key, [])]
    return settings_from(found, address)


def read_answer(text: str) -> dict[str, list[str]]:
    """Read what ``ssh -G`` prints: a lower-case keyword and its value a line. Pure."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        found.setdefault(key, []).append(value)
    return found


def settings_from(found: Mapping[str, list[str]], address: Address) -> SshSettings:
    """Put together the settings of a host from keywords and their values.

    Args:
        found: values by lower-case keyword, as files of configuration name them.
        address: what was asked for.
    """

    def one(key: str, default: str = "") -> str:
        value = found.get(key, [default])[0]
        return default if value.lower() == "none" else value

    host = one("hostname", address.host).replace("%h", address.host)
    user = address.user or one("user") or pwd.getpwuid(os.getuid()).pw_name
    port = address.port or int(one("port", "22"))
    tokens = {"h": host, "n": address.host, "p": str(port), "r": user, "%": "%"}
    tokens |= {"d": str(Path.home()), "u": pwd.getpwuid(os.getuid()).pw_name}

    def filled(text: str) -> str:
        return _TOKEN.sub(lambda it: _token(it, tokens), text)

    def files(key: str, default: str) -> tuple[str, ...]:
        return tuple(at_home(filled(word)) for word in _words(one(key, default)))

    jump = one("proxyjump")
    command = one("proxycommand")
    timeout = one("connecttimeout")
    keys = [key for key in found.get("identityfile", DEFAULT_KEYS) if key.lower() != "none"]
    certificates = [it for it in found.get("certificatefile", ()) if it.lower() != "none"]
    return SshSettings(
        address=address.host,
        host=host,
        port=port,
        user=user,
        identity_files=tuple(at_home(filled(key)) for key in keys),
        certificate_files=tuple(at_home(filled(it)) for it in certificates),
        agent=at_home(filled(_agent((found.get("identityagent") or ["SSH_AUTH_SOCK"])[0]))),
        identities_only=one("identitiesonly") in ("yes", "true"),
        known_hosts=files("userknownhostsfile", "~/.ssh/known_hosts ~/.ssh/known_hosts2"),
        global_known_hosts=files("globalknownhostsfile", "/etc/ssh/ssh_known_hosts"),
        host_key_alias=one("hostkeyalias").lower() or None,
        hash_known_hosts=one("hashknownhosts") in ("yes", "true"),
        proxy_jump=tuple(filled(jump).split(",")) if jump else (),
        proxy_command=filled(command) if command and not jump else None,
        connect_timeout_s=float(timeout) if timeout else None,
        alive_interval_s=float(one("serveraliveinterval", "0")),
        alive_count=int(one("serveralivecountmax", "3")),
    )


def _agent(said: str) -> str:
    """Return the socket that ``IdentityAgent`` means: a path, a variable's value, or none."""
    if said == "SSH_AUTH_SOCK":
        return os.environ.get(said, "")
    return (
        "" if said.lower() == "none" else os.environ.get(said[1:], "") if said[:1] == "$" else said
    )


def _words(text: str) -> list[str]:
    """Split a list of files; `ssh -G` takes the quotes away, so an apostrophe may be left alone."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _token(found: re.Match[str], tokens: Mapping[str, str]) -> str:
    """Return what a token or a variable stands for; what we do not know stays as it is."""
    if found[2]:
        return os.environ.get(found[2], found[0])
    return tokens.get(found[1], found[0])


def _moved_home() -> str | None:
    """Return the home that the system knows for this user where ``HOME`` is another one."""
    known = pwd.getpwuid(os.getuid()).pw_dir
    return known if Path(known) != Path.home() else None
