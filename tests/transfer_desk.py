"""What the tests of transfers share: places with few programs, trees of odd names, and copies."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab.need import need
from tools.connectors.base import Connector
from tools.connectors.local import Local
from tools.connectors.streams import Pipes
from tools.transfer_session import Copy, copy
from tools.transfer_side import Place
from tools.transfer_ways import Copied

COREUTILS = (
    *("sh", "dd", "sha256sum", "od", "stat", "sed", "head", "find", "readlink", "tr", "touch"),
    *("chmod", "mkdir", "ln", "mv", "rm", "df", "sleep", "cat"),
)
ODD_NAMES = (
    *(b"-rf", b"a b", b"new\nline", b"end\n", "ünï".encode(), b"\xff\xfe", b"q'uo\"te", b"*"),
    *(
        b"$(touch owned)",
        b"`touch owned`",
        b"back\\slash",
        b"\\0141",
        b"tab\t",
        b"%s",
        b"..x",
        b"~",
    ),
)


class Few(Local):
    """This machine, with the programs of one folder alone: no Python."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs

    def open_stream(self, argv: tuple[str, ...]) -> Pipes:
        shell = str(self._programs / argv[0])
        return super().open_stream(("/usr/bin/env", f"PATH={self._programs}", shell, *argv[1:]))


def coreutils(folder: Path) -> Few:
    """A machine with a shell and coreutils."""
    folder.mkdir()
    for name in COREUTILS:
        (folder / name).symlink_to(str(shutil.which(name)))
    return Few(folder)


def busybox(folder: Path) -> Few:
    """A machine with busybox."""
    found = shutil.which("busybox")
    need(found is not None, "busybox is missing (apt-get install busybox-static)")
    folder.mkdir()
    for name in (*COREUTILS, "printf"):
        (folder / name).symlink_to(str(found))
    return Few(folder)


def here(path: Path | str) -> Place:
    return Place(Local(), str(path), sys.executable)


def at(connector: Connector, path: Path | str) -> Place:
    return Place(connector, str(path))


def copied(
    source: Place, to: Place, tell: Callable[[str], None] = lambda text: None, **more: Any
) -> Copied:
    return copy(Copy(source, to, **{"quiet_s": 10.0, **more}), tell)


def big_file(path: Path, mib: int) -> Path:
    """A file whose every part is another one."""
    with path.open("wb") as file:
        for _ in range(mib):
            file.write(os.urandom(1 << 20))
    return path


def odd_tree(folder: Path) -> Path:
    """A folder with odd names, modes, times and links."""
    (folder / "in/deep").mkdir(parents=True)
    for number, name in enumerate(ODD_NAMES):
        path = Path(os.fsdecode(os.fsencode(folder / "in") + b"/" + name))
        path.write_bytes(name * number)
        path.chmod(0o640 + number % 8)
        os.utime(path, ns=(number * 10**9, 1_700_000_000_000_000_000 + number * 1_000_001))
    (folder / "in/deep/link").symlink_to("../a b")
    (folder / "in/link to folder").symlink_to("deep")
    (folder / "empty").mkdir()
    return folder


def seen(folder: Path, whole_seconds: bool = False) -> dict[str, object]:
    """All that a copy has to keep of a folder."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name, status = str(path.relative_to(folder)), path.lstat()
        if path.is_symlink():
            found[name] = path.readlink()
        elif path.is_dir():
            found[name] = oct(status.st_mode)
        else:
            time = status.st_mtime_ns // 10**9 if whole_seconds else status.st_mtime_ns
            found[name] = (path.read_bytes(), oct(status.st_mode), time)
    return found


def parts(folder: Path) -> list[Path]:
    """What an earlier try has left."""
    return sorted(folder.rglob("*.part-????????????"))


def interrupt_at(folder: Path) -> Callable[[str], None]:
    """Ctrl-C, as soon as something of a file is in the folder."""

    def tell(text: str) -> None:
        wait_for(lambda: bool(parts(folder)))
        signal.raise_signal(signal.SIGINT)

    return tell


def wait_for(holds: Callable[[], bool], limit_s: float = 10.0) -> None:
    end = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)
