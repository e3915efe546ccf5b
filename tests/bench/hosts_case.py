"""Eight facts of many hosts, taken through our connectors as a process of its own.

``python -m tests.bench.hosts_case CONFIG NAME...`` prints the facts as one JSON line. Hosts are as
the ssh configuration has them; each gets one connection and one command, as the doctor does it.
"""

from __future__ import annotations

import json
import sys

from agent.doctor.parallel import in_parallel
from tools.command import Command
from tools.connectors.ssh import Ssh

FACTS = {
    "hostname": "uname -n",
    "kernel": "uname -r",
    "arch": "uname -m",
    "os": "cat /etc/os-release",
    "cpus": "grep -c ^processor /proc/cpuinfo",
    "memory": "cat /proc/meminfo",
    "mounts": "cat /proc/self/mountinfo",
    "addresses": "ip -o -4 addr",
}
SCRIPT = "; ".join(f"echo '@@ {name}'; {line}" for name, line in FACTS.items())


def facts(name: str, config: str) -> dict[str, str]:
    """Return a host's facts, as text by name.

    Raises:
        RuntimeError: one is missing.
    """
    host = Ssh(name, name=name, config_file=config)
    text = host.run(Command.of("sh", "-c", SCRIPT)).stdout
    parts = (part.partition("\n") for part in text.split("@@ ")[1:])
    found = {head: body.strip() for head, _, body in parts}
    if set(found) != set(FACTS) or not all(found.values()):
        raise RuntimeError(f"{name}: {text[-500:]}")
    return found


def main() -> None:
    """Ask all hosts that are named, and print what they say."""
    config, names = sys.argv[1], sys.argv[2:]
    found = in_parallel(names, lambda name: facts(name, config), limit_s=60)
    if None in found.values():
        raise RuntimeError(f"no facts of {[name for name, its in found.items() if its is None]}")
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
