"""How each check judges what its call observed: pure, one function a check."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from agent.site import Site
from tools.autoconfig import ConfigVerdict
from tools.connection import Connection
from tools.endpoint import ChatAnswer
from tools.imports import ImportOutcomes
from tools.jobs import JobState
from tools.network import PortState
from tools.packages import EnvironmentState
from tools.server import ServerState
from tools.server_options import HelpObservation

KILLED = "Killed"
"""What a shell says of a program that SIGKILL ended: less than its exit code does."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check says of one observation."""

    passed: bool | None
    text: str
    failure: str = ""
    """The failure's own words, for the diagnosis; empty where nothing has failed yet."""


def connection(seen: Connection, site: Site) -> Verdict:
    """The host's key is known, and it let us in."""
    if seen.host_key == "known" and not seen.shell_ok:
        words = f"the login shell of {seen.user} on {site.target} starts no programs"
        return Verdict(False, "no shell", words)
    if seen.host_key == "known":
        return Verdict(True, f"{seen.user}@{seen.host}")
    words = f"the host key of {site.target} is not known: {seen.key_type} {seen.fingerprint}"
    return Verdict(False, "unknown host key", words)


def environment(seen: EnvironmentState, site: Site) -> Verdict:
    """The environment's Python runs."""
    if not seen.exists:
        return Verdict(False, "no environment", f"no Python at {site.python}")
    return Verdict(True, f"Python {seen.python_version}")


def writable(seen: EnvironmentState, site: Site) -> Verdict:
    """A file could be made there."""
    if seen.writable:
        return Verdict(True, "writable")
    reason = seen.write_error or "no reason given"
    return Verdict(False, "not writable", f"{site.candidate.venv} cannot be written: {reason}")


def pip(seen: EnvironmentState, site: Site) -> Verdict:
    """A pip answered there."""
    if seen.pip_version:
        return Verdict(True, f"pip {seen.pip_version}")
    return Verdict(False, "no pip", seen.pip_error or "No module named pip")


def model(seen: ConfigVerdict, site: Site) -> Verdict:
    """config.json is there and is JSON."""
    if not seen.config_found:
        return Verdict(False, "no config.json", f"no config.json at {site.goal.model}")
    if seen.json_error:
        return Verdict(False, "broken config.json", f"config.json is not valid: {seen.json_error}")
    return Verdict(True, f"model type {seen.model_type}")


def config(seen: ConfigVerdict, site: Site) -> Verdict:
    """The configuration became an object."""
    if seen.parses:
        names = ", ".join(seen.architectures) or seen.config_class or ""
        return Verdict(True, f"{names} by {seen.parsed_by}")
    return Verdict(False, "the config does not parse", f"{seen.error_type}: {seen.error}")


def imports(seen: ImportOutcomes, site: Site) -> Verdict:
    """Every module came."""
    broken = [(name, state) for name, state in seen.modules.items() if not state.ok]
    if not broken:
        return Verdict(True, f"{len(seen.modules)} modules")
    name, state = broken[0]
    return Verdict(False, f"{name} cannot be imported", f"{state.error_type}: {state.error}")


def port(seen: PortState, site: Site) -> Verdict:
    """The port could be bound."""
    if seen.free:
        return Verdict(True, f"port {site.port} is free")
    if seen.bind_error and not seen.bind_error.startswith("EADDRINUSE"):
        words = f"{site.goal.host}:{site.port} cannot be listened on: {seen.bind_error}"
        return Verdict(False, words, words)
    owner = seen.owner_command or "a process that cannot be seen"
    who = f"pid {seen.owner_pid} ({owner}, user {seen.owner_user})" if seen.owner_pid else owner
    return Verdict(False, "port held", f"port {site.port} is held by {who}")


def job(seen: JobState, site: Site) -> Verdict:
    """The process is there."""
    if seen.state == "running":
        return Verdict(True, f"pid {seen.pid}")
    words = _ended(seen.code, seen.note)
    return Verdict(False, words, f"{seen.tail}\n{words}".strip())


def health(seen: ServerState, site: Site) -> Verdict:
    """The health check answered 200."""
    if seen.state == "healthy":
        return Verdict(True, f"healthy after {seen.waited_s:.1f} s")
    after = f"after {seen.waited_s:.0f} s"
    if seen.state == "undecided":
        return Verdict(None, f"the server has not answered {after}: {seen.progress}".rstrip(": "))
    words = _ended(seen.code, seen.note)
    if seen.state == "stuck":
        words = f"the server hangs: it neither writes nor computes ({after})"
    error = "" if seen.earliest_error == KILLED else seen.earliest_error
    last = f"{seen.log_tail.rstrip()} ({words})" if seen.log_tail.strip() else words
    return Verdict(False, words, error or last)


def _ended(code: int | None, note: str | None) -> str:
    """Say how a server's process ended: by the exit code that its shell left, or a note."""
    if code is None:
        gone = "the server's process is gone and left no exit code"
        return f"{gone}: {note}" if note else gone
    numbers = {128 + int(item): item.name for item in signal.Signals}
    if code in numbers:
        return f"the server's process was ended by {numbers[code]} (exit code {code})"
    return f"the server's process ended with exit code {code}"


def chat(seen: ChatAnswer, site: Site) -> Verdict:
    """The answer had the agreed form."""
    if seen.well_formed:
        return Verdict(True, f"a well-formed answer of {seen.completion_tokens} tokens")
    return Verdict(False, "no well-formed answer", seen.problem or f"status {seen.status}")


def options(seen: HelpObservation, site: Site) -> Verdict:
    """The server's parser has told its options."""
    return Verdict(True, f"{len(seen.options)} options")
