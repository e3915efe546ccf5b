"""From a goal's host to the connector that reaches it; nothing is opened before it is used."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from agent import settings
from agent.goal_parts import Host
from agent.passphrase import ASKER
from tools.connectors.base import Aside, Connector
from tools.connectors.docker import Docker
from tools.connectors.local import Local

if TYPE_CHECKING:
    from tools.connectors.ssh_key_files import Keyring


def connector_to(host: Host, aside: Aside | None = None) -> Connector:
    """Return the connector: this machine or ssh, and inside a container there that is named.

    Args:
        host: one of the goal's.
        aside: keeps the whole of long outputs.
    """
    reached: Connector = Local(aside)
    if host.is_remote:
        from tools.connectors.ssh import Ssh  # heavy, and most runs are local

        chosen = settings.load().ssh_config
        path = str(chosen.expanduser()) if chosen else None
        reached = Ssh(
            host.address, name=host.name, config_file=path, keyring=_keyring(), aside=aside
        )
    return _inside(host.container, reached) if host.container else reached


@cache
def _keyring() -> Keyring:
    """The keys of this process: each passphrase is asked for once, whatever the number of hosts."""
    from tools.connectors.ssh_key_files import Keyring

    return Keyring(ASKER)


def _inside(container: str, reached: Connector) -> Connector:
    kind, _, name = container.rpartition(":")
    if kind not in ("lxc", "pct"):
        return Docker(name, reached)
    from tools.connectors.lxc import Lxc

    return Lxc(name, reached, "pct" if kind == "pct" else "lxc")
