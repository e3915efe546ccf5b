"""A person's place with an inventory of many real ssh hosts, for tests of the doctor."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.lab.command import Desk
from tests.lab.fleet import Fleet

NAMES = [f"gpu{number:02d}" for number in range(1, 17)]
HOSTS = "hosts: {'gpu[01-16]': {roles: worker}, dead: , silent: }\ngroups: {two: 'gpu[01-02]'}\n"


def doctor_desk(folder: Path, hosts: Fleet) -> Desk:
    """Return a folder with an inventory of all hosts; nobody is at the port of ``dead``."""
    hosts.configure({"dead": closed_port()})
    made = Desk(folder)
    made.home.mkdir()
    (folder / "hosts.yaml").write_text(HOSTS)
    made.env |= {"BRINGUP_SSH_CONFIG": str(hosts.config), "COLUMNS": "80"}
    return made


def closed_port() -> int:
    """A port that was free just now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
