"""A real sshd on loopback, run as whoever runs the tests, with keys and files of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.need import need

PROGRAM = shutil.which("sshd") or "/usr/sbin/sshd"
START_S = 10.0


@dataclass
class Sshd:
    """A running server, and the files by which a client reaches it as the host ``spark``."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    options: dict[str, str] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        """A client's configuration: ``spark`` is this server."""
        return self.folder / "config"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def key(self) -> Path:
        """The client's private key."""
        return self.folder / "id_ed25519"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def host_key(self, kind: str = "ed25519") -> str:
        """The public part of a host key: kind and base64."""
        text = (self.folder / f"host_{kind}.pub").read_text()
        return " ".join(text.split()[:2])

    def fingerprint(self, kind: str = "ed25519") -> str:
        """What ``ssh-keygen`` says of a host key."""
        file = self.folder / f"host_{kind}.pub"
        shown = subprocess.run(
            ["ssh-keygen", "-lf", file], capture_output=True, text=True, check=True
        )
        return shown.stdout.split()[1]

    def know(self, kind: str = "ed25519") -> None:
        """Let the client know the server's host key."""
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {self.host_key(kind)}\n")

    def configure(self, more: str = "") -> None:
        """Write the client's configuration; ``more`` are further lines about ``spark``."""
        lines = [
            "Host spark",
            "HostName 127.0.0.1",
            f"Port {self.port}",
            f"IdentityFile {self.key}",
            f"UserKnownHostsFile {self.known_hosts}",
            "GlobalKnownHostsFile /dev/null",
            *more.splitlines(),
        ]
        self.config.write_text("\n".join(lines) + "\n")

    def start(self, *kinds: str, **options: str) -> None:
        """Start the server, with host keys of these kinds and further options."""
        self.options = {**self.options, **options}
        settings = {
            "ListenAddress": f"127.0.0.1:{self.port}",
            "AuthorizedKeysFile": str(self.folder / "authorized_keys"),
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PermitRootLogin": "yes",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "LogLevel": "VERBOSE",
            "SetEnv": "SHLVL=2",  # so bash leaves out the .bashrc of whoever runs the tests
            **self.options,
        }
        keys = [f"HostKey {self.folder}/host_{kind}" for kind in kinds or ("ed25519",)]
        for kind in kinds or ("ed25519",):
            new_key(self.folder / f"host_{kind}", kind)
        text = "\n".join([*keys, *(f"{name} {value}" for name, value in settings.items())])
        (self.folder / "sshd_config").write_text(text + "\n")
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "-D", "-e", "-f", self.folder / "sshd_config"], stderr=log
            )
        deadline = time.monotonic() + START_S
        while not self._listens():
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    def stop(self) -> None:
        """End the server and the processes of its connections."""
        if self.process is None:
            return
        self.signal(signal.SIGKILL)
        self.process.kill()
        self.process.wait(5)
        self.process = None

    def connections(self) -> list[int]:
        """The processes of sshd that serve connections; the server's descendants named sshd."""
        found, parents = [], {self.pid}
        table = [_parent_and_name(pid) for pid in _pids()]
        while more := [(pid, name) for pid, parent, name in table if parent in parents]:
            found += [pid for pid, name in more if name.startswith("sshd")]
            parents = {pid for pid, name in more if name.startswith("sshd")}
        return found

    def signal(self, number: int) -> None:
        """Send a signal to the processes that serve connections."""
        for pid in self.connections():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def logins(self) -> int:
        """How often somebody has logged in so far."""
        return self.log().count("Accepted publickey")

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def new_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> None:
    """Make a key pair unless there is one."""
    if not path.exists():
        words = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-f", str(path)]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(folder: Path, *kinds: str, **options: str) -> Iterator[Sshd]:
    """Run a server that the client knows and may log in to.

    Args:
        folder: for its files and the client's.
        kinds: of host keys: ed25519, ecdsa, rsa.
        options: lines of its configuration.
    """
    need(Path(PROGRAM).exists(), "sshd is missing (apt-get install openssh-server)")
    need(shutil.which("ssh-keygen") is not None, "ssh-keygen is missing (openssh-client)")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    sshd = Sshd(folder, free_port())
    new_key(sshd.key)
    shutil.copy(f"{sshd.key}.pub", folder / "authorized_keys")
    try:
        sshd.start(*kinds, **options)
        sshd.know((kinds or ("ed25519",))[0])
        sshd.configure()
        yield sshd
    finally:
        sshd.stop()


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _parent_and_name(pid: int) -> tuple[int, int, str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return pid, -1, ""
    head, _, rest = text.rpartition(")")
    return pid, int(rest.split()[1]), head.partition("(")[2]
