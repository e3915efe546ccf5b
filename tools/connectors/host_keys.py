"""Files of known host keys: is this the host that it was the last time?

The format is that of sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT": hashed names, ``[host]:port``,
patterns and ``@revoked`` lines. Lines of certificate authorities are not used.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import hmac
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HASHED = "|1|"
"""How a hashed name begins; ``|1|SALT|HMAC-SHA1``."""
RSA_FORMS = ("rsa-sha2-512", "rsa-sha2-256")
"""Signature algorithms under which an ``ssh-rsa`` key is offered."""


@dataclass(frozen=True, slots=True)
class HostKey:
    """A public key that a host presents."""

    kind: str
    """Such as ``ssh-ed25519``."""
    blob: bytes
    """The key as it is sent."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint as ``ssh-keygen -l`` shows it."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode()
        return f"SHA256:{digest.rstrip('=')}"


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A line of a file of known hosts."""

    path: str
    line: int
    marker: str
    """``@revoked``, ``@cert-authority``, or empty."""
    names: str
    kind: str
    blob: bytes

    @property
    def place(self) -> str:
        """The file and the line, for people."""
        return f"{self.path} line {self.line}"


class HostKeyRefused(Exception):
    """The host presents a key that must not be accepted; the message says why and where."""


def read_known(paths: Iterable[str]) -> list[KnownKey]:
    """Read files of known hosts; missing files and lines that make no sense are left out."""
    return [key for path in paths for key in _read(path)]


def about(host: str, known: Sequence[KnownKey]) -> list[KnownKey]:
    """Return the lines about a host.

    Args:
        host: its name in lower case, as ``[host]:port`` for other ports than 22.
        known: all lines.
    """
    return [key for key in known if names_host(key.names, host)]


def names_host(names: str, host: str) -> bool:
    """Whether the first field of a line is about a host."""
    if names.startswith(HASHED):
        return _is_hash_of(names, host)
    found = False
    for pattern in names.lower().split(","):
        plain = pattern.removeprefix("!").replace("[", "[[]")
        if fnmatch.fnmatchcase(host, plain):
            if pattern.startswith("!"):
                return False
            found = True
    return found


def is_known(host: str, key: HostKey, known: Sequence[KnownKey]) -> bool:
    """Whether this key is the host's; ``False`` where nothing is known of the host.

    Raises:
        HostKeyRefused: the key was revoked, or the host has other keys than this one.
    """
    lines = about(host, known)
    same = [line for line in lines if line.blob == key.blob]
    revoked = [line for line in same if line.marker == "@revoked"]
    if revoked:
        raise HostKeyRefused(
            f"its key {key.fingerprint} is marked as revoked in {revoked[0].place}; "
            "whoever runs the host has to give it another one"
        )
    if any(not line.marker for line in same):
        return True
    others = [line for line in lines if not line.marker]
    if not others:
        return False
    other = next((line for line in others if line.kind == key.kind), others[0])
    raise HostKeyRefused(
        f"THE HOST KEY HAS CHANGED: it presents {key.kind} {key.fingerprint}, and {other.place} "
        f"has {other.kind} {HostKey(other.kind, other.blob).fingerprint}. Either the host was "
        "set up anew, or someone else answers in its place. Ask whoever runs it; if the new key "
        f"is right, remove the old one: ssh-keygen -f {other.path} -R '{host}'"
    )


def preferred(
    algorithms: Sequence[str], host: str, known: Sequence[KnownKey], kind: str = ""
) -> list[str]:
    """Put first the signature algorithms of keys that are known of a host, as OpenSSH does.

    A host has keys of several kinds; so it shows the one that can be compared: of this kind, if one
    is named.
    """
    kinds = {kind} if kind else {line.kind for line in about(host, known) if not line.marker}
    wanted = {it for kind in kinds for it in (RSA_FORMS if kind == "ssh-rsa" else (kind,))}
    return sorted(algorithms, key=lambda algorithm: algorithm not in wanted)


def remember(path: str, host: str, key: HostKey, *, hashed: bool) -> None:
    """Append a host's key to a file, which only its owner may read.

    Raises:
        OSError: the file cannot be written.
    """
    file = Path(path)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = _hash(host, os.urandom(hashlib.sha1(usedforsecurity=False).digest_size))
    line = f"{name if hashed else host} {key.kind} {base64.b64encode(key.blob).decode()}\n"
    descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+b") as stream:
        if size := stream.seek(0, os.SEEK_END):
            stream.seek(size - 1)
            line = line if stream.read(1) == b"\n" else "\n" + line
        stream.write(line.encode())


def _read(path: str) -> Iterator[KnownKey]:
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
        if len(fields) < 3 or fields[0].startswith("#"):
            continue
        try:
            blob = base64.b64decode(fields[2], validate=True)
        except binascii.Error:
            continue
        yield KnownKey(path, number, marker, fields[0], fields[1], blob)


def _is_hash_of(names: str, host: str) -> bool:
    try:
        salt = base64.b64decode(names.split("|")[2])
    except (binascii.Error, IndexError):
        return False
    return hmac.compare_digest(names, _hash(host, salt))


def _hash(host: str, salt: bytes) -> str:
    digest = hmac.new(salt, host.encode(), hashlib.sha1).digest()
    return f"{HASHED}{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
