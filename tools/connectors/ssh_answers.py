"""What an ssh connector says about its own connection: ``connect`` and ``trust-host-key``."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable

from tools.command import Command, Ending, Result
from tools.connectors import host_keys
from tools.connectors.ssh_config import SshSettings
from tools.connectors.ssh_connection import check, presented, shut
from tools.connectors.ssh_link import Link
from tools.errors import ConnectionFailed

HOME = Command.of("sh", "-c", 'printf %s "$HOME"', timeout_s=20)


def answer(link: Link, run: Callable[[Command], Result], command: Command) -> Result:
    """Answer a command about the connection.

    Args:
        link: the connection.
        run: runs a command on the host.
        command: ``connect``, or ``trust-host-key FINGERPRINT``.

    Raises:
        ConnectionFailed: the host cannot be reached, has another key than it had, or does not let
            us in.
    """
    if command.argv == ("connect",):
        return _connect(link, run)
    if len(command.argv) == 2 and command.argv[0] == "trust-host-key":
        return _trust(link, command.argv[1])
    reason = f"{link.name}: a connection does not know `{command.text}`\n"
    return Result(Ending.EXITED, code=2, stderr=reason)


def _connect(link: Link, run: Callable[[Command], Result]) -> Result:
    settings, key, known = link.look()
    home, shell_ok = "", False
    if known:
        try:
            said = run(HOME)
            home, shell_ok = said.stdout, said.ok
        except ConnectionFailed:
            link.connection()  # still there? Then it is only the login shell
    facts = {
        "kind": "ssh",
        "address": settings.address,
        "host": settings.host,
        "port": settings.port,
        "user": settings.user,
        "key_type": key.kind,
        "fingerprint": key.fingerprint,
        "host_key": "known" if known else "unknown",
        "known_hosts": settings.known_hosts[0] if settings.known_hosts else "",
        "home": home,
        "shell_ok": shell_ok,
    }
    return Result(Ending.EXITED, code=0, stdout=json.dumps(facts) + "\n")


def _trust(link: Link, fingerprint: str) -> Result:
    settings, transport = link.greet()
    try:
        key = presented(transport)
        known = check(link.name, settings, key)
    finally:
        shut(transport)
    trouble = ""
    if not hmac.compare_digest(key.fingerprint, fingerprint):
        trouble = f"{settings.host} presents {key.kind} {key.fingerprint} now, not {fingerprint}"
    elif not known:
        trouble = _remember(settings, key)
        link.trusted()
    if trouble:
        return Result(Ending.EXITED, code=1, stderr=trouble + "\n")
    return Result(Ending.EXITED, code=0, stdout=f"{settings.known_as} {key.fingerprint}\n")


def _remember(settings: SshSettings, key: host_keys.HostKey) -> str:
    """Add a host's key to the person's file; return why that did not work, or an empty text."""
    if not settings.known_hosts:
        return "the ssh configuration names no UserKnownHostsFile to write the key to"
    path = settings.known_hosts[0]
    try:
        host_keys.remember(path, settings.known_as, key, hashed=settings.hash_known_hosts)
    except OSError as error:
        return f"{path} cannot be written: {error.strerror}"
    return ""
