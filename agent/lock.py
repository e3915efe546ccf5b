"""One writer a run: a lock that ends with its owner, however the owner ends."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

_READ_AT_MOST = 4096


class LockHeld(Exception):
    """Another process holds the lock; ``pid`` is its number, or 0 where it is unknown."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        super().__init__(f"held by process {pid}")


class Lock:
    """Holds ``path`` until it is released or the process dies.

    The kernel keeps the lock (``flock``), so a dead owner's needs no cleaning up; the file's text,
    process id and start time, tells others who holds it.
    """

    def __init__(self, path: Path) -> None:
        """Take the lock, at once or not at all.

        Raises:
            LockHeld: a live process has it.
            OSError: the file cannot be made, or its file system has no locks.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            pid = os.getpid()
            text = json.dumps({"pid": pid, "start": start_of(pid)})
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, text.encode(), 0)
        except BlockingIOError as error:
            os.close(self._file)
            raise LockHeld(owner(path) or 0) from error
        except OSError:
            os.close(self._file)
            raise

    def release(self) -> None:
        """Let go of the lock; the file stays, empty."""
        os.ftruncate(self._file, 0)
        os.close(self._file)


def owner(path: Path) -> int | None:
    """Return the id of the live process that holds the lock, or ``None``."""
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(_READ_AT_MOST) or b"{}")
        pid, start = int(data["pid"]), str(data["start"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if pid > 0 and _lives(pid) and start_of(pid) == start else None


def start_of(pid: int) -> str:
    """Return when a process was started, in the kernel's ticks, or nothing where that is unknown.

    Together with the process id it names a process for good; an id alone is used again.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
