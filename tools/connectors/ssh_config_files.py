"""Reads files of ssh configuration where OpenSSH is not installed; paramiko does not know Include.

Known differences to OpenSSH: ``Match exec`` and an ``Include`` inside of ``Match`` are refused.
"""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import paramiko

from tools.errors import ConnectionFailed

MAX_DEPTH = 16
"""How deep files may include each other, as in OpenSSH."""
SYSTEM_FILE = "/etc/ssh/ssh_config"

_LINE = re.compile(r"(\w+)(?:\s*=\s*|\s+)(.+)")


def lookup(host: str, config_file: str | None = None) -> dict[str, list[str]]:
    """Return the values that the configuration has for a host, by lower-case keyword.

    Args:
        host: as it was asked for.
        config_file: the only file that is read; ``none`` means no file at all, ``None`` the
            person's and the system's.

    Raises:
        ConnectionFailed: a file cannot be understood.
    """
    own = str(Path.home() / ".ssh" / "config")
    names = [own, SYSTEM_FILE] if config_file is None else [config_file]
    try:
        # A file that does not begin with Host is not part of what the file before it ended with.
        text = "\nHost *\n".join("\n".join(flattened(Path(name), host)) for name in names)
        found = paramiko.SSHConfig.from_text(text).lookup(host)
    except (paramiko.ConfigParseError, paramiko.CouldNotCanonicalize, ValueError) as error:
        raise ConnectionFailed(host, f"the ssh configuration cannot be read: {error}") from error
    values = {key: _list(value) for key, value in found.items() if key != "include"}
    return {key: value for key, value in values.items() if value}


def at_home(path: str) -> str:
    """Return a path with a leading ``~/`` resolved."""
    return str(Path.home()) + path[1:] if path.startswith("~/") else path


def flattened(path: Path, host: str, depth: int = 0) -> Iterator[str]:
    """Yield the lines of a file with its included files in their places.

    Raises:
        ValueError: files include each other too deep, or in a way that is not supported.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"{path}: files include each other more than {MAX_DEPTH} deep")
    if not path.is_file():
        return
    block = "Host *"
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        found = _LINE.fullmatch(line.strip())
        key = found[1].lower() if found else ""
        if found is None or key not in ("host", "match", "include"):
            yield line
        elif key != "include":
            block = line.strip()
            _refuse_exec(path, block)
            yield line
        elif _applies(path, block, host):
            for name in _included(path, found[2]):
                yield from flattened(Path(name), host, depth + 1)
            yield block


def _refuse_exec(path: Path, block: str) -> None:
    if re.match(r"match\b.*\bexec\b", block, re.IGNORECASE):
        raise ValueError(f"{path}: `{block}` needs OpenSSH's program `ssh`, which is not here")


def _applies(path: Path, block: str, host: str) -> bool:
    """Whether the block in which an ``Include`` stands is about the host."""
    words = shlex.split(block.replace("=", " ", 1))
    if words[0].lower() == "match" and words[1:] != ["all"]:
        raise ValueError(f"{path}: Include inside of `{block}` needs OpenSSH's program `ssh`")
    patterns = words[1:] if words[0].lower() == "host" else ["*"]
    refused = any(it[0] == "!" and fnmatch.fnmatchcase(host, it[1:]) for it in patterns)
    return not refused and any(fnmatch.fnmatchcase(host, it) for it in patterns)


def _included(path: Path, patterns: str) -> Iterator[str]:
    """Yield the files that an ``Include`` names; relative ones are in the folder of the kind."""
    folder = Path("/etc/ssh") if str(path).startswith("/etc/ssh/") else Path.home() / ".ssh"
    for pattern in shlex.split(patterns):
        full = folder / at_home(pattern)
        found = Path(full.anchor).glob(str(full.relative_to(full.anchor)))
        yield from sorted(str(file) for file in found if not file.name.startswith("."))


def _list(value: str | list[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)
