"""Files of keys and certificates, and passphrases: asked for once, kept in memory, never stored."""

from __future__ import annotations

import base64
import copy
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.pkey import PublicBlob, UnknownKeyType

UNREADABLE = (
    OSError,
    TypeError,
    ValueError,
    IndexError,
    paramiko.SSHException,
    UnknownKeyType,
    UnsupportedAlgorithm,
)
"""What paramiko and its backend raise for files that are no key, or one with a passphrase."""
TRIES = 3
"""How often a passphrase is asked for."""
KINDS = (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey)
CERTIFICATE = "-cert-v01@openssh.com"
"""How the kind of a certificate ends."""
FOREVER = 2**64 - 1

Ask = Callable[[str, bool], str | None]
"""Asks a person for the passphrase of a file, and whether it is asked again because the last one
was wrong; ``None`` where nobody answers."""


class Locked(Exception):
    """A key that cannot be used; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """An OpenSSH certificate of a user: an authority's signature below a public key."""

    path: str
    blob: PublicBlob
    """As it is sent to the host."""
    key: bytes
    """The public key that it is about, as it is sent where there is no certificate."""
    about: str
    """For whom and until when, for people."""


class Keyring:
    """Private keys that were read, for as long as this process lives."""

    def __init__(self, ask: Ask | None = None) -> None:
        """Take who is asked for passphrases; ``None``: nobody."""
        self._ask = ask
        self._lock = threading.Lock()
        self._keys: dict[str, paramiko.PKey] = {}
        self._given_up: dict[str, str] = {}

    def key(self, path: str) -> paramiko.PKey:
        """Return a file's private key, without a certificate; a passphrase is asked for once.

        Hosts that are connected to at once wait for one answer.

        Raises:
            Locked: nobody gives its passphrase.
            OSError: it cannot be read.
            ValueError: it is no key; further errors of ``UNREADABLE`` likewise.
        """
        if not is_encrypted(path):
            return read_key(path)
        with self._lock:
            if path in self._given_up:
                raise Locked(self._given_up[path])
            if path not in self._keys:
                self._keys[path] = self._unlock(path)
            return copy.copy(self._keys[path])

    def _unlock(self, path: str) -> paramiko.PKey:
        for number in range(TRIES):
            said = self._ask(path, number > 0) if self._ask else None
            if not said:
                reason = f"has a passphrase; add it to an agent: ssh-add {path}"
                break
            try:
                return read_key(path, said)
            except UNREADABLE:
                reason = f"has a passphrase, and what was typed {TRIES} times is none of it"
        self._given_up[path] = reason
        raise Locked(reason)


def read_key(path: str, passphrase: str | None = None) -> paramiko.PKey:
    """Read a private key; a certificate beside it is left alone.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no key; further errors of ``UNREADABLE`` likewise.
    """
    try:
        key = paramiko.PKey.from_path(path, passphrase)
    except UNREADABLE:
        for kind in KINDS:  # it may be the certificate that cannot be read
            try:
                return kind.from_private_key_file(path, passphrase)
            except UNREADABLE:
                continue
        raise
    key.public_blob = None
    return key


def is_encrypted(path: str) -> bool:
    """Whether a file is a private key with a passphrase: PEM, or OpenSSH's PROTOCOL.key format."""
    try:
        text = Path(path).read_text(encoding="ascii")
        body = "".join(line for line in text.splitlines() if not line.startswith("-"))
        head = b"" if "ENCRYPTED" in text else base64.b64decode(body)
    except (OSError, ValueError):
        return False
    plain = b"openssh-key-v1\0\0\0\0\x04none"
    return not head or (head.startswith(plain[:15]) and not head.startswith(plain))


def public_part(path: str) -> bytes:
    """Return the public key beside a private one, or nothing."""
    try:
        return base64.b64decode(Path(f"{path}.pub").read_text(encoding="utf-8").split()[1])
    except (OSError, ValueError, IndexError):
        return b""


def certificate(path: str) -> Certificate | None:
    """Read a certificate; ``None`` for a file that is missing or is none.

    The fields are those of OpenSSH's PROTOCOL.certkeys.
    """
    try:
        blob = PublicBlob.from_file(path)
        if not blob.key_type.endswith(CERTIFICATE):
            return None
        return Certificate(path, blob, *_read_certificate(blob))
    except UNREADABLE:
        return None


def _read_certificate(blob: PublicBlob) -> tuple[bytes, str]:
    """Return the public key in a certificate, and what it is about."""
    message, key = paramiko.Message(blob.key_blob), paramiko.Message()
    for _ in ("kind", "nonce"):
        message.get_binary()
    key.add_string(blob.key_type.removesuffix(CERTIFICATE))
    for _ in range(1 if "ed25519" in blob.key_type else 2):
        key.add_string(message.get_binary())
    return key.asbytes(), _about(message)


def _about(message: paramiko.Message) -> str:
    message.get_int64()
    message.get_int()
    message.get_binary()
    names, users = paramiko.Message(message.get_binary()), []
    while names.get_remainder():
        users.append(names.get_text())
    begins, ends = message.get_int64(), message.get_int64()
    whom = f"certificate for {', '.join(users) or 'any user'}"
    if time.time() < begins:
        return f"{whom}, not valid before {_day(begins)}"
    if ends == FOREVER:
        return whom
    return f"{whom}, {'EXPIRED' if ends <= time.time() else 'valid until'} {_day(ends)}"


def _day(seconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(min(seconds, 2**40)))
