"""The installed command, used as on a terminal: what is typed, what comes back, how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import yaml

from agent.demo.checkpoint import write_checkpoint
from tests.lab.need import need
from tests.lab.runs import free_port

BRINGUP = Path(sysconfig.get_path("scripts")) / "bringup"
SERVER = Path(__file__).parent / "tiny_server.py"
RUN = re.compile(r"\b2\d{7}-\d{6}-[0-9a-f]{4,}\b")
PATTERNS = {
    r"\d{4}-\d\d-\d\dT[\d:+]+": "[TIME]",
    r"(?m)^\d\d:\d\d(?= )": "[TIME]",
    r"\b\d+(\.\d+)? (s|min)\b": "[TIME]",
    r"@[0-9a-f]{16}\b": "[MARKER]",
    r"pid[ =]\d+": "pid [PID]",
    r"start_time=\S+": "start_time=[START]",
    r"\d[\d.]* tokens/s": "[RATE] tokens/s",
}


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output as the one JSON document that it is."""
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        """Standard output as JSON Lines."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Desk:
    """A person's place: a home, a folder with a goal, and the command."""

    folder: Path
    port: int = field(default_factory=free_port)
    env: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """Where settings and runs are."""
        return self.folder / "home"

    @property
    def runs(self) -> Path:
        """The folder of all runs."""
        return self.home / ".local" / "state" / "bringup" / "runs"

    def environment(self, more: Mapping[str, str | None]) -> dict[str, str]:
        """Return the variables of a command; ``None`` takes one away."""
        names = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
        both: dict[str, str | None] = {**names, "HOME": str(self.home), **self.env, **more}
        return {name: value for name, value in both.items() if value is not None}

    def goal(self, name: str = "goal.yaml", *, load_s: float = 0, **more: Any) -> str:
        """Write a goal that a small server of the standard library reaches; return its name."""
        serve = ["{python}", str(SERVER), "{port}", str(load_s)]
        data: dict[str, Any] = {
            "model": "model",
            "hosts": [{"name": "local", "address": "local", "python": sys.executable}],
            "candidates": [{"venv": "env", "engine": "custom", "serve": serve}],
            "port": self.port,
            "allow": {"paths": ["env"]},
            "checks": ["process_up", "health", "chat"],
            "limits": {"steps": 20, "minutes": 2},
            "on_interrupt": "stop",
        }
        (self.folder / name).write_text(yaml.safe_dump(data | more), encoding="utf-8")
        return name

    def bringup(self, *words: str, stdin: str = "", **env: str | None) -> Done:
        """Run the command to its end, without a terminal."""
        ran = subprocess.run(
            [BRINGUP, *words],
            cwd=self.folder,
            env=self.environment(env),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Done(ran.returncode, ran.stdout, ran.stderr)

    def shell(self, line: str, **env: str | None) -> Done:
        """Run a line of bash in which ``bringup`` is the command."""
        path = f"{BRINGUP.parent}:{os.environ['PATH']}"
        ran = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.environment({"PATH": path, **env}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Done(ran.returncode, ran.stdout, ran.stderr)

    @contextlib.contextmanager
    def running(self, *words: str, until: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
        """Start the command, hand it over once it has said ``until``, and see that it ends."""
        with subprocess.Popen(
            [BRINGUP, *words],
            cwd=self.folder,
            env=self.environment({}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        ) as process:
            try:
                assert process.stderr is not None
                wait_for(process.stderr, until)
                yield process
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.communicate(timeout=20)
                    process.kill()

    def text(self, text: str) -> str:
        """Return what was printed with all that differs from run to run replaced."""
        for path, name in ((self.home, "[HOME]"), (self.folder, "[HERE]"), (SERVER, "[SERVER]")):
            text = text.replace(str(path), name)
        text = RUN.sub("[RUN]", text).replace(str(self.port), "[PORT]")
        for pattern, name in PATTERNS.items():
            text = re.sub(pattern, name, text)
        return text


@contextlib.contextmanager
def desk(folder: Path, kept: Path) -> Iterator[Desk]:
    """Return a place with a model and an environment, and end what a test leaves running there.

    Args:
        folder: the place.
        kept: holds the model and the environment of all places.
    """
    need(BRINGUP.exists(), f"{BRINGUP} is missing (make dev)")
    if not kept.exists():
        write_checkpoint(kept / "model")
        venv.create(kept / "env", symlinks=True, with_pip=False)
        (packages,) = (kept / "env").glob("lib/python3*/site-packages")
        (packages / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    made = Desk(folder)
    made.home.mkdir(parents=True)
    for name in ("model", "env"):
        (folder / name).symlink_to(kept / name)
    try:
        yield made
    finally:
        for pid in processes_of(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def wait_for(stream: IO[str], sign: str) -> str:
    """Read lines until one has the sign, and return all of them."""
    lines: list[str] = []
    for line in stream:
        lines.append(line)
        if sign in line:
            return "".join(lines)
    raise AssertionError(f"{sign!r} was not said: {''.join(lines)}")


def processes_of(folder: Path) -> dict[int, str]:
    """Return the processes that have a folder in their command line: id and command line."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").replace("\0", " ")
            if str(folder) in words:
                found[int(path.parent.name)] = words
    return found


def gone(folder: Path, within_s: float = 5.0) -> bool:
    """Tell whether no process of a folder is left, at once or in a moment."""
    end = time.monotonic() + within_s
    while processes_of(folder):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
