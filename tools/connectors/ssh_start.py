"""How a command on an ssh host is begun: the line that starts it there.

The host's login shell, whatever it is, starts ``sh``, which runs our line: words, variables and
folder, quoted for ``sh``. It then becomes the command: its process id is the command's, and of the
group that sshd made for it. The line gets there in one of two ways.

A bare command's line is a word of what the login shell is asked to run, written so that every shell
reads it alike. It takes one round trip: sshd lets nothing be sent to a program before it has
started it. The line of a command with variables or standard input is the first line of ``sh``'s
standard input instead: values of variables are then in no process's argument list, and a line that
a broken connection cuts short is not run.
"""

from __future__ import annotations

import re
import secrets
import shlex
import string
from collections.abc import Callable
from dataclasses import dataclass

from tools.command import Command
from tools.connectors.local import COLOURED, PLAIN

START = "exec sh -c 'read -r bringup_line && eval \"$bringup_line\"'"
"""What the login shell is asked to do; POSIX shells, fish and csh read it alike."""
PLAIN_WHOLE = "exec sh -c '{}'"
"""The same with the line in it, where all characters mean the same between all shells' quotes."""
WHOLE = "exec sh -c 'eval \"$(printf %b \"$1\")\"' sh '{}'"
"""The same for any line."""
MOST_WHOLE = 30_000
"""Longest request with the line in it: every ssh server takes a packet of 32,768 bytes."""

_LINE_BREAK = "bringup_n=$(printf '\\nx'); bringup_n=${bringup_n%x}"
_AWKWARD = re.compile(r"['\\!]|[^ -~]")
"""What may mean something between the single quotes of some shell."""
_SPECIAL = re.compile(r"[^\w@%+=:,./-]|^$", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


_PLAINLY = {
    code: chr(code)
    if chr(code) in f"{string.ascii_letters}{string.digits} _./=,:+@-"
    else rf"\0{code:03o}"
    for code in range(256)
}
"""How ``printf %b`` is told a byte, in characters that mean the same between all shells' quotes."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a command is begun."""

    request: str
    """What the login shell is asked to run."""
    line: bytes
    """What that reads first from its standard input; empty where it is in the request."""


def new_marker() -> str:
    """Return the word after which output is the command's own."""
    return f"bringup-{secrets.token_hex(8)}"


def start(command: Command, marker: str, *, on_stderr: bool = True) -> Start:
    """Return how to begin a command; it prints marker and process id before anything else.

    Raises:
        ValueError: a word or a variable cannot be passed on.
    """
    line = start_line(command, marker, on_stderr=on_stderr)
    if command.env or command.stdin is not None:
        return Start(START, line)
    if _AWKWARD.search("".join((*command.argv, command.cwd or ""))):
        request = WHOLE.format("".join(_PLAINLY[byte] for byte in line.rstrip(b"\n")))
    else:
        plain = _joined(_parts(command, marker, on_stderr, _doubly_quoted))
        request = PLAIN_WHOLE.format(plain.decode())
    return Start(request, b"") if len(request) <= MOST_WHOLE else Start(START, line)


def start_line(command: Command, marker: str, *, on_stderr: bool = True) -> bytes:
    """Return the line that ``START`` reads: it prints marker and process id, then is the command.

    Raises:
        ValueError: a word or a variable cannot be passed on.
    """
    return _joined(_parts(command, marker, on_stderr, _quoted)) + b"\n"


def _joined(parts: list[str]) -> bytes:
    return "; ".join(parts).encode("utf-8", "surrogateescape")


def _parts(
    command: Command, marker: str, on_stderr: bool, quoted: Callable[[str], str]
) -> list[str]:
    """Return the line in its parts; ``quoted`` quotes a word for ``sh``."""
    if command.argv[0].startswith("-"):
        raise ValueError("a program's name may not begin with a dash")
    parts = [f"echo {marker} $$"] + ([f"echo {marker} $$ >&2"] if on_stderr else [])
    if any("\n" in word for word in (*command.argv, *command.env.values(), command.cwd or "")):
        parts.append(_LINE_BREAK)
    parts.append(f"unset {' '.join(COLOURED)}")
    for name, value in {**PLAIN, **command.env}.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a variable")
        parts.append(f"export {name}={quoted(value)}")
    if command.cwd is not None:
        folder = command.cwd if command.cwd.startswith("/") else f"./{command.cwd}"
        trouble = quoted(f"{command.cwd}: cannot be used as working folder")
        parts.append(
            f'CDPATH= cd {quoted(folder)} || {{ printf "%s\\n" {trouble} >&2; exit 126; }}'
        )
    parts.append("exec " + " ".join(quoted(word) for word in command.argv))
    return parts


def _quoted(word: str) -> str:
    """Quote a word for ``sh`` without a line break in it."""
    if "\0" in word:
        raise ValueError("a null byte cannot be passed to a program")
    return '"$bringup_n"'.join(shlex.quote(part) for part in word.split("\n"))


def _doubly_quoted(word: str) -> str:
    """Quote a word for ``sh`` without single quotes."""
    return '"' + re.sub(r'(["$`])', r"\\\1", word) + '"' if _SPECIAL.search(word) else word
