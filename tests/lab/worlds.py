"""A simulated host: answers the tools' commands from a state that they change, in its own time.

It is a connector like any other. Probes and scripts are recognised by their text, programs by their
argument vector, and each answers in the form of the real one, so the real parsers read it. A run
from survey to end takes milliseconds here, and what it did to the host is counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from tests.lab.world_jobs import Job, logs_text, start_text, status_text
from tests.lab.world_packages import Answer, Need, Packages, exited, first_missing, old_transformers
from tools.command import Command, Ending, OnOutput, Result
from tools.script import script_text

MODEL = "/srv/model"
ADDRESS_IN_USE = "OSError: [Errno 98] error while attempting to bind: address already in use"
HELP = """\
 Usage: transformers serve [OPTIONS] [FORCE_MODEL]

 Options:
  --device TEXT   Device for inference.
  --host TEXT     Interface that the server listens on.
  --port INTEGER  Port that the server listens on.
  --help          Show this message and exit.
"""


@dataclass
class World(Packages):
    """The host: change a field and it is another host."""

    name: str = "local"
    model: str = MODEL
    config: dict[str, Any] | str = field(
        default_factory=lambda: {
            "model_type": "qwen3_5_text",
            "architectures": ["Qwen3_5ForCausalLM"],
            "transformers_version": "5.2.0",
        }
    )
    """config.json; a text is what is wrong with the file."""
    config_needs: tuple[Need, ...] = field(default_factory=lambda: (old_transformers(),))
    server_needs: tuple[Need, ...] = ()
    """What the server stumbles over when it is started."""
    load_s: float = 6.0
    """Seconds that a server loads, ``inf`` for one that never answers."""
    silent: bool = False
    """Whether a loading server neither writes nor computes."""
    lingers: bool = False
    """Whether a server that stumbles leaves its process there."""
    held: dict[int, str] = field(default_factory=dict)
    """Ports that others hold, with the command of their owner."""
    jobs: dict[str, Job] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """The name of each command, in order."""
    trap: Callable[[str, str], Result | None] | None = None
    """Called with the name of a command, and ``before`` or ``after``; it may raise, or answer."""

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        """Do what the command would do here, and answer as it would."""
        name, answer = self._recognise(command)
        self.asked.append(name)
        began = self.now
        self.now += 0.1
        trapped = self.trap(name, "before") if self.trap else None
        result = trapped or answer(command)
        trapped = self.trap(name, "after") if self.trap else None
        result = trapped or result
        if on_output is not None and result.stdout:
            on_output("stdout", result.stdout)
        return Result(
            result.ending,
            result.code,
            stdout=result.stdout,
            stderr=result.stderr,
            duration_s=round(self.now - began, 3),
        )

    def close(self) -> None:
        """Nothing is held."""

    def sleep(self, seconds: float) -> None:
        """Let time pass here and nowhere else."""
        self.now += seconds

    def stopwatch(self) -> Callable[[], float]:
        """Return a clock that starts now and shows this world's time."""
        start = self.now
        return lambda: self.now - start

    def count(self, what: str) -> int:
        """Count the changes that begin so."""
        return sum(item.startswith(what) for item in self.done)

    def _recognise(self, command: Command) -> tuple[str, Callable[[Command], Result]]:
        words = command.argv
        if words[1:2] == ("-",):
            name = _probe_name(command.stdin or "")
            return name, lambda sent: self._probe(name, sent)
        if words[:3] == ("sh", "-s", "--"):
            name = _script_name(command.stdin or "")
            return name, lambda sent: self._script(name, sent)
        if "pip" in words and "install" in words:
            return "pip install", self._install
        if "ensurepip" in words:
            return "ensurepip", self._ensurepip
        if words[-1] == "--help":
            return "help", lambda sent: exited(HELP)
        return words[0], lambda sent: Result(Ending.EXITED, 127, stderr=f"{words[0]}: not found\n")

    def _probe(self, name: str, command: Command) -> Result:
        python, _, marker, text = command.argv
        if python.startswith(self.venv) and not self.python:
            return Result(Ending.EXITED, 127, stderr=f"{python}: not found\n")
        ask = getattr(self, f"_{name}", None)
        if ask is None:
            return Result(Ending.EXITED, 1, stderr=f"{name} has no answer here\n")
        answer, stderr = ask(json.loads(text))
        banner = "a banner of some module\n"
        code = 0 if answer.get("ok", True) else 1
        return Result(
            Ending.EXITED, code, stdout=f"{banner}\n{marker} {json.dumps(answer)}\n", stderr=stderr
        )

    def _host(self, asked: dict[str, Any]) -> Answer:
        disks = [
            {
                "path": path,
                "exists": True,
                "free_mib": 50_000,
                "total_mib": 100_000,
                "filesystem": "ext4",
                "read_only": False,
            }
            for path in asked["paths"]
        ]
        facts = {
            "system": "Linux",
            "machine": "x86_64",
            "os_release": "Debian GNU/Linux 12",
            "kernel": "6.1.0",
            "cpu_count": 8,
            "memory_mib": 32_000,
            "memory_available_mib": 30_000,
            "in_container": False,
            "user": "alice",
            "disks": disks,
        }
        return facts, ""

    def _port(self, asked: dict[str, Any]) -> Answer:
        owner = self._holder(asked["port"])
        ours = [job.pid for job in self.jobs.values() if job.name == owner]
        pid = ours[0] if ours else 4242
        spare = [port for port in asked["spare"] if self._holder(port) is None]
        facts = {
            "free": owner is None,
            "bind_error": None if owner is None else "EADDRINUSE: Address already in use",
            "owner_pid": None if owner is None else pid,
            "owner_command": owner,
            "owner_user": None if owner is None else "bob",
            "owner_start": None if owner is None else "77",
            "answers_http": owner is not None,
            "next_free": spare[0] if spare else None,
        }
        return facts, ""

    def _holder(self, port: int) -> str | None:
        ours = [job.name for job in self.jobs.values() if job.port == port and job.runs(self.now)]
        return self.held.get(port) or (ours[0] if ours else None)

    def _config(self, asked: dict[str, Any]) -> Answer:
        answer: dict[str, Any] = {"transformers": self.versions.get("transformers")}
        if asked["model"] != self.model:
            return answer | {"config_found": False}, ""
        if isinstance(self.config, str):
            return answer | {"config_found": True, "json_error": self.config}, ""
        answer |= {
            "config_found": True,
            "model_type": self.config.get("model_type", ""),
            "architectures": self.config.get("architectures", []),
            "written_by": self.config.get("transformers_version", ""),
        }
        wrong = first_missing(self.config_needs, self.versions)
        if wrong:
            error_type, _, error = wrong.partition(": ")
            return answer | {"parses": False, "error_type": error_type, "error": error}, ""
        return answer | {"parses": True, "parsed_by": "bare", "config_class": "Qwen3_5Config"}, ""

    def _endpoint(self, asked: dict[str, Any]) -> Answer:
        port = int(asked["base_url"].rpartition(":")[2])
        self.now += 0.8
        up = any(job.port == port and job.healthy(self.now) for job in self.jobs.values())
        facts = {
            "well_formed": up,
            "problem": None if up else "ConnectionRefusedError: [Errno 111] Connection refused",
            "status": 200 if up else None,
            "content": "Hello there." if up else "",
            "content_omitted": 0,
            "finish_reason": "stop" if up else None,
            "completion_tokens": 4 if up else None,
            "ttft_s": 0.1 if up else None,
            "tokens_per_s": 5.0 if up else None,
            "total_s": 0.8,
            "streamed": True,
        }
        return facts, ""

    def _script(self, name: str, command: Command) -> Result:
        marker, _, *words = command.argv[3:]
        return exited(getattr(self, f"_{name}")(marker, words))

    def _job_start(self, marker: str, words: list[str]) -> str:
        name, _, *argv = words
        already = name in self.jobs
        if not already:
            self.done.append(f"start {name}")
            crash = first_missing(self.server_needs, self.versions)
            job = Job(name, tuple(argv), self.now, self.load_s, crash, self.silent, self.lingers)
            if job.port in self.held:
                job.crash = ADDRESS_IN_USE
            self.jobs[name] = job
        return start_text(marker, self.jobs[name], already=already)

    def _job_status(self, marker: str, words: list[str]) -> str:
        return status_text(marker, self.jobs.get(words[0]), self.now)

    def _server_sample(self, marker: str, words: list[str]) -> str:
        return status_text(marker, self.jobs.get(words[0]), self.now, sample=True)

    _job_sample = _server_sample

    def _job_logs(self, marker: str, words: list[str]) -> str:
        job = self.jobs.get(words[0])
        if job is None:
            return f"{marker} error=there is no log of {words[0]}\n{marker} end=1\n"
        return logs_text(marker, job, self.now, *words[1:])

    def _job_stop(self, marker: str, words: list[str]) -> str:
        job = self.jobs.get(words[0])
        if job is None:
            return f"{marker} error=there is no folder {words[0]}\n{marker} end=1\n"
        outcome = "stopped" if job.runs(self.now) else "was_not_running"
        if outcome == "stopped":
            self.done.append(f"stop {job.name}")
            job.stopped_at = self.now
        return f"{marker} outcome={outcome}\n{marker} pid={job.pid}\n{marker} end=1\n"


@cache
def _probes() -> dict[str, str]:
    folder = files("tools").joinpath("probes")
    return {
        item.read_text(encoding="utf-8"): item.name.removesuffix(".py")
        for item in folder.iterdir()
        if item.name.endswith(".py")
    }


def _probe_name(text: str) -> str:
    return _probes()[text]


def _script_name(text: str) -> str:
    names = ("job_start", "job_status", "job_stop", "server_sample", "job_logs", "job_sample")
    return next(name for name in names if text.endswith(script_text(name)))
