"""Logs in to a host with the person's keys: those of their agent, and their files.

Nothing is asked: a key with a passphrase works through an agent only.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.pkey import UnknownKeyType

from tools.connectors.ssh_config import SshSettings

UNREADABLE = (
    OSError,
    TypeError,
    ValueError,
    paramiko.SSHException,
    UnknownKeyType,
    UnsupportedAlgorithm,
)
"""What paramiko and its backend raise for files that are no key, or one with a passphrase."""


class LoginRefused(Exception):
    """The host takes none of the keys; the message says which were tried, and what to do."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A key that may be tried, or why it cannot be."""

    label: str
    key: paramiko.PKey | None
    trouble: str = ""


def log_in(transport: paramiko.Transport, settings: SshSettings) -> None:
    """Log in.

    Args:
        transport: a connection whose host key was checked.
        settings: the user, and the keys to try.

    Raises:
        LoginRefused: no key is accepted.
        paramiko.SSHException: the host broke off.
        EOFError: likewise.
        OSError: likewise, or the agent broke off.
    """
    try:
        transport.auth_none(settings.user)
    except paramiko.BadAuthenticationType as error:
        if "publickey" not in error.allowed_types:
            raise LoginRefused(
                f"it takes no keys, only {', '.join(error.allowed_types)}; allow public keys there"
            ) from None
    else:
        return
    notes = []
    with closing(paramiko.Agent()) as agent:
        for candidate in candidates(settings, agent):
            if not transport.is_active():
                notes.append("then the host broke off, as hosts do after some tries")
                break
            trouble = candidate.trouble or _try(transport, settings.user, candidate.key)
            if not trouble:
                return
            notes.append(f"{candidate.label}: {trouble}")
    tried = "; ".join(notes) or f"there is no key: {', '.join(settings.identity_files)} are missing"
    raise LoginRefused(
        f"it accepts none of our keys for {settings.user} ({tried}). Check that this works: "
        f"ssh {settings.address} true"
    )


def candidates(settings: SshSettings, agent: paramiko.Agent) -> Iterator[Candidate]:
    """Yield keys in the order in which they are tried.

    First the agent's that belong to identity files, then these files, then the agent's others; so
    a full agent does not use up the tries that a host allows.
    """
    held = {key.asbytes(): key for key in agent.get_keys()}
    public = {path: _public(path) for path in settings.identity_files}
    in_agent = {path: blob for path, blob in public.items() if blob in held}
    for path, blob in in_agent.items():
        yield Candidate(f"{path} (agent)", held[blob])
    for path in settings.identity_files:
        if path not in in_agent and Path(path).is_file():
            yield _from_file(path)
    for blob, key in held.items():
        if not settings.identities_only and blob not in in_agent.values():
            yield Candidate("a key of the agent", key)


def _try(transport: paramiko.Transport, user: str, key: paramiko.PKey | None) -> str:
    """Log in with one key; return why it did not work, or an empty text."""
    if key is None:
        return "not read"
    try:
        more = transport.auth_publickey(user, key)
    except paramiko.AuthenticationException:
        return f"refused ({key.fingerprint})"
    except paramiko.SSHException as error:
        if transport.is_active():
            return str(error)
        return "not tried, the host broke off, as hosts do after some tries"
    return f"accepted, but the host also wants {', '.join(more)}" if more else ""


def _from_file(path: str) -> Candidate:
    try:
        return Candidate(path, paramiko.PKey.from_path(path))
    except UNREADABLE as error:
        if _is_encrypted(path):
            return Candidate(path, None, f"has a passphrase; add it to an agent: ssh-add {path}")
        return Candidate(path, None, f"cannot be read: {error}")


def _is_encrypted(path: str) -> bool:
    """Whether a file is a private key with a passphrase: PEM, or OpenSSH's PROTOCOL.key format."""
    try:
        text = Path(path).read_text(encoding="ascii")
        body = "".join(line for line in text.splitlines() if not line.startswith("-"))
        head = b"" if "ENCRYPTED" in text else base64.b64decode(body)
    except (OSError, ValueError):
        return False
    plain = b"openssh-key-v1\0\0\0\0\x04none"
    return not head or (head.startswith(plain[:15]) and not head.startswith(plain))


def _public(path: str) -> bytes:
    """Return the public key beside a private one, or nothing."""
    try:
        return base64.b64decode(Path(f"{path}.pub").read_text(encoding="utf-8").split()[1])
    except (OSError, ValueError, IndexError):
        return b""
