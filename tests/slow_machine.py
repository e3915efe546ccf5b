"""Machines whose Python runs our programs on slow, poor or odd ground: real ones, started alike."""

from __future__ import annotations

import sys
from pathlib import Path

_START = """#!{python} -IS
import sys
{ground}
words, sys.argv = sys.argv, ["-c", *sys.argv[5:]]
exec(compile(words[4], "start", "exec"), {{"__name__": "__main__"}})
"""
SLOW_SUMS = """
import hashlib, hmac, time
fast, new = hashlib.sha256, hmac.new
class Slow:
    def __init__(self, data=b""):
        self.found = fast(data)
        self.hexdigest = self.found.hexdigest
    def update(self, data):
        time.sleep(0.3 * (len(data) == 1 << 20))
        self.found.update(data)
hashlib.sha256 = Slow
hmac.new = lambda key, text, kind: new(key, text, fast)
"""
"""A MiB takes a third of a second."""
SLOW_DISK = """
import os, time
os.fsync = lambda fd: time.sleep(3.0)
"""
_FILTER = """
import ctypes, errno, struct
nrs = {calls}
steps = [(0x20, 0, 0, 0)]
steps += [(0x15, len(nrs) - at, 0, nr) for at, nr in enumerate(nrs)]
steps += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050000 | errno.EPERM)]
text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
program = Program(len(steps), ctypes.addressof(text))
prctl = ctypes.CDLL(None).prctl
if prctl(38, 1, 0, 0, 0) or prctl(22, 2, ctypes.byref(program), 0, 0):
    sys.exit("no filter")
"""
"""Has the kernel refuse calls with EPERM: PR_SET_NO_NEW_PRIVS, and PR_SET_SECCOMP with a filter."""
CALLS: dict[str, dict[str, tuple[int, ...]]] = {
    "x86_64": {"link": (86, 265), "renameat2": (316,)},
    "aarch64": {"link": (37,), "renameat2": (276,)},
}


def python_on(folder: Path, ground: str) -> str:
    """Return a Python that first runs a text, and then what it is given as a host's Python is."""
    path = folder / "python on odd ground"
    path.write_text(_START.format(python=sys.executable, ground=ground))
    path.chmod(0o755)
    return str(path)


def without(machine: str, *names: str) -> str:
    """Return the text by which the kernel knows some calls no more."""
    return _FILTER.format(calls=[nr for name in names for nr in CALLS[machine][name]])
