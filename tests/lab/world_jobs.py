"""The jobs of a simulated host: servers that load, answer, or stumble, and what the scripts say."""

from __future__ import annotations

import math
from dataclasses import dataclass

CRASH_AFTER_S = 2.0
STOPPED_CODE = 143
"""Exit code of a process that SIGTERM ended."""


@dataclass
class Job:
    """One server: loading for a while, then healthy, or ended by what it stumbled over."""

    name: str
    argv: tuple[str, ...]
    started_at: float
    load_s: float
    crash: str
    """The last line of its traceback; empty for a server that comes up."""
    silent: bool
    lingers: bool = False
    """Whether a crash leaves its process there, silent and deaf."""
    stopped_at: float = math.inf

    @property
    def pid(self) -> int:
        """Some number that is always the same."""
        return 5000 + len(self.name)

    @property
    def port(self) -> int:
        """The port of its argument vector."""
        if "--port" not in self.argv:
            return 0
        return int(self.argv[self.argv.index("--port") + 1])

    @property
    def _ended_at(self) -> float:
        ends = self.started_at + CRASH_AFTER_S if self.crash and not self.lingers else math.inf
        return min(self.stopped_at, ends)

    def runs(self, now: float) -> bool:
        """Whether its process is there."""
        return now < self._ended_at

    def healthy(self, now: float) -> bool:
        """Whether it answers."""
        return self.runs(now) and not self.crash and now >= self.started_at + self.load_s

    def code(self, now: float) -> str:
        """Its exit code, empty while it runs."""
        if self.runs(now):
            return ""
        return str(1 if self.crash and self.stopped_at > self._ended_at else STOPPED_CODE)

    def ticks(self, now: float) -> int:
        """CPU time so far, in hundredths of a second."""
        if self.silent or self.lingers:
            return 7
        return int((min(now, self._ended_at) - self.started_at) * 100)

    def log(self, now: float) -> str:
        """What it has written."""
        lines = ["server is starting"]
        if not self.silent and not self.crash:
            share = min(1.0, (now - self.started_at) / self.load_s)
            lines.append(f"Loading weights: {share:.0%}")
        if self.crash and now >= self.started_at + CRASH_AFTER_S:
            lines += [
                "Traceback (most recent call last):",
                '  File "serve.py", line 1, in <module>',
            ]
            lines.append(self.crash)
        return "\n".join(lines)


def start_text(marker: str, job: Job, *, already: bool) -> str:
    """Return what the start script says."""
    rows = {"pid": job.pid, "start": f"{job.started_at:.0f}:boot", "already": int(already)}
    return _answers(marker, rows)


def status_text(marker: str, job: Job | None, now: float, *, sample: bool = False) -> str:
    """Return what the status script says, or the one that takes a sample of a server."""
    if job is None:
        return _answers(marker, _no_job() | ({"now": f"{now:.3f}"} if sample else {}))
    log = job.log(now)
    rows: dict[str, object] = {
        "state": "running" if job.runs(now) else "exited",
        "note": "",
        "code": job.code(now),
        "pid": job.pid,
        "processes": int(job.runs(now)),
        "ticks": job.ticks(now),
        "tick_hz": 100,
        "rss_kib": 2048,
        "out_bytes": 0,
        "err_bytes": len(log),
    }
    texts = {"err_tail": log}
    if sample and "Traceback" in log:
        texts["err_error"] = log[log.index("Traceback") :]
    if sample:
        rows |= {
            "http_status": 200 if job.healthy(now) else "",
            "port_owner": "job" if job.healthy(now) else "",
            "now": f"{now:.3f}",
        }
    return _answers(marker, rows, texts)


def logs_text(marker: str, job: Job, now: float, stream: str, offset: str, limit: str) -> str:
    """Return what the script says that reads a piece of a log; all of it is in ``err``."""
    whole = job.log(now) if stream == "err" else ""
    piece = whole[int(offset) :][: int(limit)]
    rows: dict[str, object] = {
        "size": len(whole),
        "next": int(offset) + len(piece),
        "state": "running" if job.runs(now) else "exited",
        "ticks": job.ticks(now) if job.runs(now) else 0,
        "tick_hz": 100,
    }
    return _answers(marker, rows, {"text": piece} if piece else {})


def _no_job() -> dict[str, object]:
    names = ("code", "pid", "rss_kib", "out_bytes", "err_bytes", "processes", "ticks")
    return {
        "state": "unknown",
        "note": "there is no folder",
        "tick_hz": 100,
        **{name: "" if name in ("code", "pid") else 0 for name in names},
    }


def _answers(marker: str, rows: dict[str, object], texts: dict[str, str] | None = None) -> str:
    lines = [f"{marker} {key}={value}" for key, value in rows.items()]
    lines += [f"{marker} {key}=\x02\n{text}\n\x03" for key, text in (texts or {}).items()]
    return "\n".join([*lines, f"{marker} end=1", ""])
