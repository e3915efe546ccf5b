"""Small networks of real kernels' namespaces: hosts joined by a bridge, commands run inside."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tests.lab.need import need
from tools.command import Command, OnOutput, Result
from tools.connectors.local import Local

DEVICE = "lan%d"


@dataclass(frozen=True)
class Inside:
    """A connector whose commands run inside a namespace."""

    name: str
    namespace: str

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        words = ("ip", "netns", "exec", self.namespace, *command.argv)
        return Local().run(replace(command, argv=words), on_output)

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class Net:
    """Namespaces by the names of the hosts that they stand for."""

    namespaces: Mapping[str, str]

    def inside(self, host: str) -> Inside:
        return Inside(host, self.namespaces[host])

    def ip(self, host: str, *words: str) -> None:
        """Run ``ip`` inside a host."""
        _run("ip", "-n", self.namespaces[host], *words)

    @contextmanager
    def listening(self, host: str, *addresses: str, port: int) -> Iterator[None]:
        """Let a host accept connections at its addresses."""
        script = (
            "import socket, sys\n"
            "servers = [socket.create_server((it, int(sys.argv[1]))) for it in sys.argv[2:]]\n"
            "print('up', flush=True)\n"
            "sys.stdin.read()\n"
        )
        words = ["ip", "netns", "exec", self.namespaces[host]]
        words += ["python3", "-c", script, str(port), *addresses]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            yield
            assert process.stdin is not None
            process.stdin.close()


@contextmanager
def net(hosts: Mapping[str, Sequence[str]]) -> Iterator[Net]:
    """Make a namespace for each host, joined by one switch for each place in the lists.

    Args:
        hosts: the addresses of each host's devices ``lan0``, ``lan1``, ...; an empty one leaves
            the device out.
    """
    need(
        os.geteuid() == 0 and shutil.which("ip") is not None, "network namespaces need root and ip"
    )
    tag = uuid.uuid4().hex[:6]
    made = Net({host: f"bt{tag}{number}" for number, host in enumerate(hosts)})
    switch = f"bt{tag}s"
    names = [switch, *made.namespaces.values()]
    try:
        for name in names:
            _run("ip", "netns", "add", name)
            _run("ip", "-n", name, "link", "set", "lo", "up")
        for place in range(max(map(len, hosts.values()))):
            _run("ip", "-n", switch, "link", "add", f"br{place}", "type", "bridge")
            _run("ip", "-n", switch, "link", "set", f"br{place}", "up")
        for number, (host, addresses) in enumerate(hosts.items()):
            for place, address in enumerate(addresses):
                if address:
                    _join(made.namespaces[host], switch, number, place, address)
        yield made
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _join(namespace: str, switch: str, number: int, place: int, address: str) -> None:
    ours, theirs = DEVICE % place, f"p{number}x{place}"
    _run(
        "ip", "-n", namespace, "link", "add", ours, "type", "veth", "peer", theirs, "netns", switch
    )
    _run("ip", "-n", switch, "link", "set", theirs, "master", f"br{place}", "up")
    _run("ip", "-n", namespace, "addr", "add", address, "dev", ours)
    _run("ip", "-n", namespace, "link", "set", ours, "up")


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode:
        raise RuntimeError(f"{words}: {done.stderr}")
