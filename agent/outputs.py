"""Keeps the whole of outputs that are too long for the transcript, redacted, by their hash.

Text is redacted as it comes, in windows. A window is cut only where redaction of both parts is that
of the whole, so nothing that stands across a cut gets through; where there is no such place, the
rest is not kept. Whatever goes wrong here is said in the result, and never ends a command.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agent.redact import Redactor
from tools.command import Kept

WINDOW = 1024 * 1024
"""So many characters are looked at together."""
HOLD = 32 * 1024
"""So many of them, at the end, are looked at again with what follows; no secret is longer."""
LONG_HINT = "PRIVATE KEY-----"
"""Begins what may be longer, where its end is missing."""
CUTS = 16
"""Places that are tried for a cut, each further from the end of a window."""
MIB = 2**20


class Outputs:
    """The folder of one run's long outputs; connectors in several threads may write at once."""

    def __init__(self, folder: Path, redactor: Callable[[], Redactor], most_bytes: int) -> None:
        """Take the folder, which is made when it is first needed.

        Args:
            folder: ``outputs`` in the run's folder.
            redactor: makes one that knows the run's secrets and paths, for each output its own: the
                same output then has the same text and the same hash.
            most_bytes: what a run may keep in all.
        """
        self.folder, self.redactor, self.most_bytes = folder, redactor, most_bytes
        self._lock = threading.Lock()
        self._used: int | None = None
        self._number = 0

    def open(self) -> Sheet:
        """Begin with an output."""
        with self._lock:
            self._number += 1
            return Sheet(self, self.folder / f".{os.getpid()}-{self._number}.part")

    def take(self, wanted: int) -> int:
        """Take so many bytes of what is left, or fewer, and return how many."""
        with self._lock:
            if self._used is None:
                self._used = _size(self.folder)
            taken = max(0, min(wanted, self.most_bytes - self._used))
            self._used += taken
            return taken

    def give_back(self, count: int) -> None:
        """Give back bytes that were taken and are not kept."""
        with self._lock:
            self._used = max(0, (self._used or 0) - count)


class Sheet:
    """One output on its way to the disk; see ``tools.connectors.base.Sheet``."""

    def __init__(self, outputs: Outputs, path: Path) -> None:
        self._outputs, self._path = outputs, path
        self._redactor = outputs.redactor()
        self._text: list[str] = []
        self._length = 0
        self._hash = hashlib.sha256()
        self._written = 0
        self._file: int | None = None
        self._note = ""
        """Why no more is written."""

    def write(self, text: str) -> None:
        """Take a piece of it."""
        if self._note:
            return
        self._text.append(text)
        self._length += len(text)
        while self._length >= WINDOW and not self._note:
            joined = "".join(self._text)
            done = self._part(joined[:WINDOW])
            self._text = [joined[done:]]
            self._length = len(joined) - done

    def close(self) -> Kept:
        """Write what is left, give the file its name, and tell it."""
        if not self._note:
            self._put(self._redact("".join(self._text)))
        self._text = []
        if self._file is None or not self._written:
            self.drop()
            return Kept("", note=self._note or "it was not kept")
        name = self._hash.hexdigest()
        try:
            os.close(self._file)
            self._file = None
            if (self._outputs.folder / name).exists():
                self.drop()
            else:
                self._path.rename(self._outputs.folder / name)
        except OSError as error:
            self._fail(error)
            return Kept("", note=self._note)
        return Kept(name, self._written, self._note)

    def drop(self) -> None:
        """Leave nothing of it on the disk."""
        self._text = []
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)
            self._file = None
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        self._outputs.give_back(self._written)

    def _part(self, text: str) -> int:
        """Write the first part of a window and return its length."""
        step = (len(text) // 2) // CUTS
        for cut in range(len(text) - HOLD, len(text) // 2, -step):
            end = text.rfind("\n", cut - step, cut) + 1 or cut
            if self._may_cut(text, end):
                self._put(self._redact(text[:end]))
                return end
        self._note = f"only its first {self._written} bytes: the rest cannot be checked for secrets"
        return len(text)

    def _may_cut(self, text: str, at: int) -> bool:
        """Whether nothing that is hidden stands across a place, as far as a secret is long."""
        near = text if LONG_HINT in text else text[at - HOLD : at + HOLD]
        middle = at if near is text else HOLD
        whole = self._redact(near)
        if whole == near:
            return True
        return self._redact(near[:middle]) + self._redact(near[middle:]) == whole

    def _redact(self, text: str) -> str:
        """Redact a text that may begin anywhere: what stood before it is taken for a line break."""
        return self._redactor.redact(f"\n{text}").removeprefix("\n")

    def _put(self, text: str) -> None:
        data = text.encode()
        room = self._outputs.take(len(data))
        if room < len(data):
            self._outputs.give_back(room)
            data = data[:room].decode(errors="ignore").encode()
            self._outputs.take(len(data))
        try:
            if self._file is None:
                self._outputs.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                self._file = os.open(self._path, flags, 0o600)
            self._written += len(data)
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as error:
            self._fail(error)
            return
        self._hash.update(data)
        if room < len(text.encode()):
            most = self._outputs.most_bytes // MIB
            self._note = (
                f"only its first {self._written} bytes: this run keeps {most} MiB of long outputs, "
                "which is the setting kept_output_mib"
            )

    def _fail(self, error: OSError) -> None:
        self.drop()
        self._written = 0
        self._note = f"the whole was not kept: {error.strerror}"


def _size(folder: Path) -> int:
    """Return what is there already; what a run that was killed left half-written is removed."""
    size = 0
    try:
        for path in folder.iterdir():
            if path.suffix == ".part":
                path.unlink()
            else:
                size += path.stat().st_size
    except OSError:
        return size
    return size
