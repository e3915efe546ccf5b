"""From a goal's host to the connector that reaches it; nothing is opened before it is used."""

from __future__ import annotations

from agent import settings
from agent.goal_parts import Host
from tools.connectors.base import Connector
from tools.connectors.docker import Docker
from tools.connectors.local import Local


def connector_to(host: Host) -> Connector:
    """Return the connector: this machine or ssh, and inside a container where one is named."""
    reached: Connector = Local()
    if host.is_remote:
        from tools.connectors.ssh import Ssh  # heavy, and most runs are local

        chosen = settings.load().ssh_config
        path = str(chosen.expanduser()) if chosen else None
        reached = Ssh(host.address, name=host.name, config_file=path)
    return Docker(host.container, reached) if host.container else reached
