"""Several ssh hosts on loopback: a server each on a port of its own, and one client for all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.lab.sshd import Sshd, server


@dataclass(frozen=True)
class Fleet:
    """Running servers by the names under which the client's configuration has them."""

    folder: Path
    servers: dict[str, Sshd]

    @property
    def config(self) -> Path:
        """The client's configuration."""
        return self.folder / "ssh_config"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def configure(self, ports: dict[str, int] | None = None) -> None:
        """Write the client's files.

        Args:
            ports: other ports than those of the servers, such as those of proxies; and hosts that
                have no server.
        """
        at = {name: sshd.port for name, sshd in self.servers.items()} | (ports or {})
        lines, known = [], []
        key = next(iter(self.servers.values())).key
        for name, port in at.items():
            sshd = self.servers.get(name)
            lines += [
                f"Host {name}",
                "HostName 127.0.0.1",
                f"Port {port}",
                f"IdentityFile {sshd.key if sshd else key}",
                f"UserKnownHostsFile {self.known_hosts}",
                "GlobalKnownHostsFile /dev/null",
            ]
            if sshd:
                known.append(f"[127.0.0.1]:{port} {sshd.host_key()}")
        self.config.write_text("\n".join(lines) + "\n")
        self.known_hosts.write_text("\n".join(known) + "\n")


@contextmanager
def fleet(folder: Path, names: Sequence[str], **options: str) -> Iterator[Fleet]:
    """Run a server for each name, all with one key for the client.

    Args:
        folder: for all files.
        names: of the hosts.
        options: lines of each server's configuration.
    """
    with ExitStack() as stack:
        servers: dict[str, Sshd] = {}
        for name in names:
            place = folder / name
            if servers:
                place.mkdir(parents=True)
                for file in ("id_ed25519", "id_ed25519.pub", "host_ed25519", "host_ed25519.pub"):
                    shutil.copy(folder / names[0] / file, place / file)
            servers[name] = stack.enter_context(server(place, **options))
        made = Fleet(folder, servers)
        made.configure()
        yield made
