"""Runs the scripts that make a host ready in a real shell, with ``/etc`` and programs of a test."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.base import CallContext
from tools.script import script

CALL = CallContext("run-1", "c1", "marker", "")
NAME = "run-1-c1"
"""How a host knows that call."""
PROGRAMS = {
    "id": 'case $1 in -u) cat "$AT/uid";; -un) echo me;; *) echo me docker;; esac',
    "sudo": '[ "$1" = -n ] && shift; [ "$1" = -- ] && shift; exec "$@"',
    "docker": """
[ -e "$AT/docker-is-down" ] && exit 1
case $1 in ps) cat "$AT/running";; info) cat "$AT/live";; *) echo 27.0;; esac""",
    "dockerd": "exit 0",
    "service": 'echo "service $*" >>"$AT/log"',
    "systemctl": 'echo "systemctl $*" >>"$AT/log"',
    "gpasswd": 'echo "gpasswd $*" >>"$AT/log"',
    "apt-get": 'case " $* " in *" -s "*) ;; *) echo "apt-get $*" >>"$AT/log";; esac',
    "dpkg-query": "case $1 in -L) echo /usr/bin/dockerd;; *) echo installed;; esac",
}
"""What changes something writes it to a log instead."""


@dataclass
class Stubbed:
    """A host of programs that are not what they seem, under a folder."""

    at: Path

    @classmethod
    def made(cls, at: Path, uid: int = 0) -> Stubbed:
        """Return one where nothing runs, for the user of a number."""
        host = cls(at)
        for folder in ("bin", "etc/docker", "etc/security/limits.d", "proc/7", "hosts/jobs"):
            (at / folder).mkdir(parents=True)
        for name, text in PROGRAMS.items():
            host.program(name, text)
        host.write("uid", f"{uid}\n")
        host.write("running", "")
        host.write("live", "false\n")
        host.write("log", "")
        host.write("proc/7/comm", "sleep\n")
        return host

    def program(self, name: str, text: str) -> None:
        """Put a program first on the path."""
        path = self.write(f"bin/{name}", f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def write(self, name: str, text: str) -> Path:
        """Write a file of the host."""
        path = self.at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, name: str) -> str:
        """Read one."""
        return (self.at / name).read_text(encoding="utf-8")

    def run(self, name: str, *words: str, **env: str) -> str:
        """Run a script of ours, and return all that it says; its paths are those of this host."""
        context = CallContext(CALL.run_id, CALL.call_id, CALL.marker, f"{self.at}/hosts")
        words = tuple(word.replace("/etc/", f"{self.at}/etc/") for word in words)
        command = script(context, name, words, ("provision_common",))
        text = (command.stdin or "").replace("/etc/", f"{self.at}/etc/")
        text = text.replace("/proc/[", f"{self.at}/proc/[")
        path = f"{self.at}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        ran = subprocess.run(
            command.argv,
            input=text,
            env={"PATH": path, "HOME": str(self.at), "AT": str(self.at), **env},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return ran.stdout.replace(str(self.at), "") + ran.stderr
