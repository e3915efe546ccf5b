"""What the two sides of a transfer say, read: names, entries, and what stands where; pure.

The lines are those of ``tools/probes/transfer_lines.py``. They come from hosts: a path that would
lead out of the folder is refused here, and by the side that writes once more.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from tools.errors import ToolFailed

MOST_ENTRIES = 500_000
"""A folder of more entries is refused."""
NAMED = 5
"""So many names are told where there are many."""
_NUMBERS = {
    "file": re.compile(r"[0-9]{1,19} -?[0-9]{1,20} [0-7]{1,4}"),
    "dir": re.compile(r"-?[0-9]{1,20} [0-7]{1,4}"),
}
"""A file's size, mtime and mode; a shell at the other side would run what is no number."""


def word(name: bytes) -> str:
    r"""Return a name as one word of a line; all but plain characters are ``\0ooo``."""
    return re.sub(rb"[^A-Za-z0-9._/+=@,:-]", lambda found: b"\\0%03o" % found[0][0], name).decode(
        "ascii"
    )


def name_of(text: str) -> bytes:
    """Return the name that a word stands for."""
    return re.sub(rb"\\0([0-7]{3})", lambda found: bytes([int(found[1], 8)]), text.encode())


def shown(text: str) -> str:
    """Return a word's name for people."""
    return name_of(text).decode("utf-8", "replace")


def some(words: Iterable[str]) -> str:
    """Name the first few of many."""
    names = [shown(it) for it in words]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


@dataclass
class Manifest:
    """What the source has: entries by their words."""

    is_folder: bool = False
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Size in bytes, mtime in nanoseconds, permission bits in octal."""
    dirs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    links: dict[str, tuple[str, ...]] = field(default_factory=dict)
    bad: dict[str, str] = field(default_factory=dict)
    """What cannot be copied, and why."""
    seen: int = 0

    def take(self, row: list[str]) -> bool:
        """Take one line; ``False`` when it was the last.

        Raises:
            ToolFailed: it is none, or names what lies elsewhere.
        """
        kind = row[0]
        if kind == "listed":
            if self.seen != int(row[1]):
                raise ToolFailed("the source's list of its files came with gaps; try again")
            return False
        self.seen += kind in ("file", "dir", "link", "bad", "part")
        if kind == "root":
            self.is_folder = row[1] == "dir"
        elif (kind, len(row)) in (("file", 5), ("dir", 4), ("link", 3)):
            self._entry(kind, row[1], tuple(row[2:]))
        elif kind == "bad" and len(row) == 3:
            self.bad[row[1]] = shown(row[2])
        elif kind not in ("idle", "part"):
            raise ToolFailed(f"the source says what is not known here: {' '.join(row)[:100]}")
        return True

    def checked(self) -> Manifest:
        """Return it, if all of it can be copied.

        Raises:
            ToolFailed: some of it cannot; the message names it.
        """
        if self.bad:
            rows = [f"{shown(path)} ({why})" for path, why in list(self.bad.items())[:NAMED]]
            more = f" and {len(self.bad) - NAMED} more" if len(self.bad) > NAMED else ""
            raise ToolFailed(f"cannot be copied: {', '.join(rows)}{more}; nothing was copied")
        return self

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(int(row[0]) for row in self.files.values())

    def plan(self) -> list[str]:
        """Return the lines by which the sink learns what is to come."""
        lines = [
            f"{kind} {path} {' '.join(row)}" for kind, rows in self._kinds() for path, row in rows
        ]
        return [*lines, "plan"]

    def _kinds(self) -> Iterable[tuple[str, Iterable[tuple[str, tuple[str, ...]]]]]:
        return (
            ("dir", self.dirs.items()),
            ("file", self.files.items()),
            ("link", self.links.items()),
        )

    def _entry(self, kind: str, path: str, row: tuple[str, ...]) -> None:
        parts = set(name_of(path).split(b"/"))
        odd = parts & {b"", b".", b".."} and not (path == "." and not self.is_folder)
        if odd or b"\0" in name_of(path):
            raise ToolFailed(f"the source names what lies elsewhere: {shown(path)[:100]}")
        if kind in _NUMBERS and not _NUMBERS[kind].fullmatch(" ".join(row)):
            raise ToolFailed(f"the source says what is no number: {' '.join(row)[:100]}")
        if kind == "link" and _leaves(name_of(path), name_of(row[0])):
            raise ToolFailed(f"the source names a link that leads elsewhere: {shown(path)[:100]}")
        rows = {"file": self.files, "dir": self.dirs, "link": self.links}[kind]
        rows[path] = row
        if len(rows) > MOST_ENTRIES:
            raise ToolFailed(f"more than {MOST_ENTRIES} entries: copy its folders one by one")


def _leaves(path: bytes, target: bytes) -> bool:
    """Whether a link leads out of the folder, by its words."""
    aim = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return aim.startswith((b"/", b"../")) or aim == b".."


@dataclass
class Standing:
    """How the files stand at the sink."""

    need: list[str] = field(default_factory=list)
    parts: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Bytes that are there of an earlier try, and their sum."""
    same: list[str] = field(default_factory=list)
    other: dict[str, str] = field(default_factory=dict)
    """Files of another content or time; with their sum where the size is the same."""
    busy: list[str] = field(default_factory=list)
    clash: dict[str, str] = field(default_factory=dict)
    free: int = 0
    """Bytes of room."""
    is_new: bool = True
    """Whether nothing was there by the name that the copy gets."""

    def take(self, row: list[str]) -> bool:
        """Take one line; ``False`` when it was the last."""
        kind = row[0]
        if kind == "planned":
            self.is_new = row[1] == "new"
            return False
        if kind in ("need", "same", "busy"):
            {"need": self.need, "same": self.same, "busy": self.busy}[kind].append(row[1])
        elif kind == "part":
            self.parts[row[1]] = (int(row[2]), row[3])
        elif kind in ("other", "clash"):
            {"other": self.other, "clash": self.clash}[kind][row[1]] = row[2]
        elif kind == "free":
            self.free = int(row[1])
        return True

    def wanted(self, manifest: Manifest) -> int:
        """Bytes that are still to come."""
        paths = (*self.need, *self.parts, *self.other)
        there = sum(at for at, _ in self.parts.values())
        return sum(int(manifest.files[path][0]) for path in paths) - there
