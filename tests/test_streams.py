"""Streams of bytes from programs of this machine."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.lab.need import need
from tools.connectors.local import Local

TRACER = """
import ctypes, sys, time
done = ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None)  # PTRACE_SEIZE
print(done, flush=True)
sys.stdin.read()
"""
"""Holds a process: killed, it cannot be waited for until this one has ended."""


def test_a_program_that_even_a_kill_does_not_end_is_left_behind() -> None:
    stream = Local().open_stream(("sh", "-c", "echo $$; exec sleep 60"))
    pid = (stream.read(10.0) or b"").decode().strip()
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", TRACER, pid], stdin=pipe, stdout=pipe) as tracer:
        assert tracer.stdout is not None
        need(tracer.stdout.readline() == b"0\n", "a process may not be traced here")
        closing = threading.Thread(target=stream.close, daemon=True)
        closing.start()
        closing.join(10)
        hung = closing.is_alive()
    closing.join(10)
    assert not hung
    end = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        stream.end()
