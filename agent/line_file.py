"""An append-only file with one writer, whose lines are on the disk when ``append`` returns."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Self

from agent.lock import Lock, LockHeld
from agent.transcript_reader import TranscriptError

_FLAGS = os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


class LineFile:
    """The open file, with the lock that makes this process its one writer."""

    def __init__(self, path: Path, lock: Lock, file: int) -> None:
        self.path = path
        self._lock = lock
        self._file = file
        self._size = os.fstat(file).st_size
        self._closed = ""

    @classmethod
    def create(cls, path: Path) -> Self:
        """Make the file (mode 0600), and its folder (mode 0700) where that is missing.

        Raises:
            TranscriptError: it exists already, is being written, or cannot be made.
        """
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot("create", path, error) from error
        return cls._open("create", path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)

    @classmethod
    def reopen(cls, path: Path) -> Self:
        """Open a file that exists.

        Raises:
            TranscriptError: it is missing, is being written, or cannot be written.
        """
        if not path.is_file():
            raise TranscriptError(f"{path}: there is no transcript here to go on with")
        return cls._open("resume", path, os.O_RDWR)

    @classmethod
    def _open(cls, act: str, path: Path, flags: int) -> Self:
        try:
            lock = Lock(path.with_name("lock"))
        except LockHeld as error:
            who = f"process {error.pid}" if error.pid else "another process"
            raise TranscriptError(
                f"{path.parent}: {who} is writing this run; wait for its end, or end it first"
            ) from error
        except OSError as error:
            raise _cannot(act, path, error) from error
        try:
            file = os.open(path, flags | _FLAGS, 0o600)
            _sync_folder(path.parent)
        except OSError as error:
            lock.release()
            raise _cannot(act, path, error) from error
        return cls(path, lock, file)

    def cut(self, end: int) -> None:
        """Drop what follows ``end`` bytes, and end the last line where its line break is missing.

        Raises:
            TranscriptError: the file cannot be written.
        """
        try:
            os.ftruncate(self._file, end)
            if end and os.pread(self._file, 1, end - 1) != b"\n":
                os.write(self._file, b"\n")
            os.fsync(self._file)
        except OSError as error:
            raise _cannot("resume", self.path, error) from error
        self._size = os.fstat(self._file).st_size

    def append(self, data: bytes, *, lasting: bool = True) -> None:
        """Write whole lines with one sync; where that fails, none of them stays.

        Args:
            data: the lines.
            lasting: whether they are synced now, and not only with the lines that follow.

        Raises:
            TranscriptError: the disk is full, or the file cannot be written.
        """
        if self._closed:
            raise TranscriptError(f"{self.path}: cannot write the transcript: {self._closed}")
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            if lasting:
                _sync(self._file)
        except OSError as error:
            self._take_back()
            raise _cannot("write", self.path, error) from error
        self._size += len(data)

    def _take_back(self) -> None:
        try:
            os.ftruncate(self._file, self._size)
        except OSError as error:
            self._closed = f"a torn line could not be removed ({error.strerror})"

    def close(self) -> None:
        """End writing and let go of the lock; closing twice does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._lock.release()
        self._file = -1
        self._closed = self._closed or "it is closed"


def _cannot(act: str, path: Path, error: OSError) -> TranscriptError:
    if error.errno in _FULL:
        advice = "make room there"
        if act != "create":
            advice += ", then go on with `bringup resume`"
    elif isinstance(error, FileExistsError) and act == "create":
        advice = "a run is never written over; choose another name"
    else:
        advice = "make that folder writable, or set BRINGUP_RUNS_DIR to one that is"
    reason = error.strerror or str(error)
    return TranscriptError(f"{path}: cannot {act} the transcript: {reason}; {advice}")


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
