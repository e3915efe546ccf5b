"""Prints what 2 GB of output cost, as JSON: ``python -m tests.bench.long_output``."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from agent.outputs import MIB, Outputs
from agent.redact import Redactor
from tools.command import Command, Result
from tools.connectors.local import Local

BYTES = 2_000_000_000
LINE = "INFO 2026-11-30 12:00:00 [worker 3] step 1200 loss 1.234 at /home/somebody/train"


def main() -> None:
    """Run a short output, then a long one, then the same with nothing kept."""
    with tempfile.TemporaryDirectory(prefix="bringup-bench-") as folder:
        paths = {"home": "/home/somebody"}
        known = {"HF_TOKEN": "a-secret-that-is-looked-for"}
        aside = Outputs(Path(folder), lambda: Redactor(known, paths), 4096 * MIB)
        _printed(Local(aside), 3_000_000)
        before = _peak_kib()
        begin = time.perf_counter()
        kept = _printed(Local(aside), BYTES).stdout_kept
        kept_s = time.perf_counter() - begin
        grown = _peak_kib() - before
        if kept is None or kept.note:
            raise RuntimeError(f"it was not kept whole: {kept}")
    begin = time.perf_counter()
    _printed(Local(), BYTES)
    plain_s = time.perf_counter() - begin
    found = {"grown_mib": grown / 1024, "kept_s": kept_s, "plain_s": plain_s}
    sys.stdout.write(json.dumps(found) + "\n")


def _printed(host: Local, count: int) -> Result:
    words = ("sh", "-c", f"yes '{LINE}' | head -c {count}")
    result = host.run(Command(words, timeout_s=280))
    if not result.ok:
        raise RuntimeError(result.how)
    return result


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
