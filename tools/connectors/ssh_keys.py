"""Logs in to a host with the person's keys: those of their agent, their files, and certificates."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import paramiko
from paramiko.agent import AgentKey, AgentSSH

from tools.connectors.ssh_config import SshSettings
from tools.connectors.ssh_key_files import (
    CERTIFICATE,
    UNREADABLE,
    Certificate,
    Keyring,
    Locked,
    certificate,
    is_encrypted,
    public_part,
)

TYPED_S = 1.0
"""A key that took longer to come was waited for: a person has typed."""
ALONE = Keyring()
"""Asks nobody: a key with a passphrase works through an agent only."""


class LoginRefused(Exception):
    """The host takes none of the keys; the message says which were tried, and what to do."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A key that may be tried, or why it cannot be."""

    label: str
    key: paramiko.PKey | None
    trouble: str = ""


class _Agent(AgentSSH):
    """The agent behind a socket; one that is not there has no keys."""

    def __init__(self, path: str) -> None:
        super().__init__()
        stream = socket.socket(socket.AF_UNIX)
        try:
            stream.connect(path)
        except OSError:
            stream.close()
        else:
            vars(AgentSSH)["_connect"](self, stream)

    def close(self) -> None:
        """Let go of it."""
        vars(AgentSSH)["_close"](self)


def log_in(transport: paramiko.Transport, settings: SshSettings, keyring: Keyring = ALONE) -> None:
    """Log in.

    Args:
        transport: a connection whose host key was checked.
        settings: the user, and the keys to try.
        keyring: reads files of keys, and asks for their passphrases.

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
    with closing(_Agent(settings.agent)) as agent:
        asked = time.monotonic()
        for candidate in candidates(settings, agent, keyring):
            if not transport.is_active() and time.monotonic() - asked > TYPED_S:
                raise EOFError("it hung up while a passphrase was typed")
            if not transport.is_active():
                notes.append("then the host broke off, as hosts do after some tries")
                break
            trouble = candidate.trouble or _try(transport, settings.user, candidate.key)
            if not trouble:
                return
            notes.append(f"{candidate.label}: {trouble}")
            asked = time.monotonic()
    tried = "; ".join(notes) or f"there is no key: {', '.join(settings.identity_files)} are missing"
    raise LoginRefused(
        f"it accepts none of our keys for {settings.user} ({tried}). Check that this works: "
        f"ssh {settings.address} true"
    )


def candidates(
    settings: SshSettings, agent: AgentSSH, keyring: Keyring = ALONE
) -> Iterator[Candidate]:
    """Yield keys in the order in which they are tried; each certificate goes before its key.

    First the agent's that belong to identity files, then these files, then the agent's others; so
    a full agent does not use up the tries that a host allows. Files with a passphrase come last,
    since a person is asked for it.
    """
    held = {key.blob: key for key in agent.get_keys()}
    beside = [f"{path}-cert.pub" for path in settings.identity_files]
    found = [certificate(path) for path in (*beside, *settings.certificate_files)]
    certificates = [it for it in found if it is not None]
    public = {path: public_part(path) for path in settings.identity_files}
    in_agent = {path: blob for path, blob in public.items() if blob in held}
    for path, blob in in_agent.items():
        yield from _of_agent(f"{path} (agent)", held[blob], certificates)
    files = [path for path in settings.identity_files if path not in in_agent]
    files = [path for path in files if Path(path).is_file()]
    for path in files:
        if not is_encrypted(path):
            yield from _of_file(path, keyring, certificates)
    for blob, key in held.items():
        if not settings.identities_only and blob not in in_agent.values():
            yield from _of_agent("a key of the agent", key, certificates)
    for path in files:
        if is_encrypted(path):
            yield from _of_file(path, keyring, certificates)


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


def _of_file(
    path: str, keyring: Keyring, certificates: Iterable[Certificate]
) -> Iterator[Candidate]:
    try:
        key = keyring.key(path)
    except Locked as locked:
        yield Candidate(path, None, str(locked))
        return
    except UNREADABLE as error:
        yield Candidate(path, None, f"cannot be read: {error}")
        return
    yield from _with_certificates(path, key, key.asbytes(), certificates)


def _of_agent(
    label: str, key: AgentKey, certificates: Iterable[Certificate]
) -> Iterator[Candidate]:
    if key.name.endswith(CERTIFICATE):
        vars(key)["inner_key"] = None  # else paramiko would send the key for the certificate
        yield Candidate("a certificate of the agent", key)
    else:
        yield from _with_certificates(label, key, key.blob, certificates)


def _with_certificates(
    label: str, key: paramiko.PKey, blob: bytes, certificates: Iterable[Certificate]
) -> Iterator[Candidate]:
    """Yield a key with each certificate that it has, and then as it is."""
    for it in certificates:
        if it.key == blob:
            key.public_blob = it.blob
            yield Candidate(f"{it.path} ({it.about})", key)
    key.public_blob = None
    yield Candidate(label, key)
