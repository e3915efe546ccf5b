"""A real LXC container on this machine: busybox in a root file system of its own."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.need import need

CONTAINERS = Path("/var/lib/lxc")
"""Where root's containers are, unless LXC is told another place."""
STEADY = "trap exit TERM; while :; do sleep 1000 & wait; done"
"""The container's first process: it also reaps what is left to it."""
PCT = """#!/bin/sh
# What Proxmox's program of this name does with these words, over LXC's own programs.
test -e {containers}/"$2" || {{ echo "Configuration file '$2.conf' does not exist" >&2; exit 2; }}
case $1 in
  exec) number=$2; shift 3; exec lxc-attach -n "$number" -- "$@" ;;
  status) lxc-info -n "$2" -s | tr A-Z a-z | sed 's/state: */status: /' ;;
esac
"""
_numbers = itertools.count(900_000_001)


@contextmanager
def container(folder: Path) -> Iterator[str]:
    """Run a container, and remove it; its root file system is ``FOLDER/root``."""
    name = f"{os.getpid()}{next(_numbers)}"
    need(os.geteuid() == 0, "LXC needs root here")
    need(shutil.which("lxc-start") is not None, "LXC is missing (apt-get install lxc)")
    _make_root(folder / "root")
    lines = [
        "lxc.uts.name = guest",
        f"lxc.rootfs.path = dir:{folder}/root",
        "lxc.net.0.type = empty",
        "lxc.apparmor.profile = unconfined",
        "lxc.mount.auto = proc:rw",
        "lxc.pty.max = 0",
        "lxc.tty.max = 0",
    ]
    place = CONTAINERS / name
    place.mkdir(parents=True)
    (place / "config").write_text("\n".join(lines) + "\n")
    try:
        began = lxc("start", name, "-d", "--", "/bin/sh", "-c", STEADY)
        need(began.returncode == 0, f"no LXC container can be started here: {began.stderr}")
        yield name
    finally:
        lxc("stop", name, "-k")
        shutil.rmtree(place)


def lxc(verb: str, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run one of LXC's programs."""
    argv = [f"lxc-{verb}", "-n", name, *words]
    return subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False
    )


def add_pct(folder: Path) -> None:
    """Put a program ``pct`` into a folder."""
    (folder / "pct").write_text(PCT.format(containers=CONTAINERS))
    (folder / "pct").chmod(0o755)


def _make_root(root: Path) -> None:
    busybox = shutil.which("busybox")
    need(busybox is not None, "busybox is missing (apt-get install busybox-static)")
    for name in ("bin", "etc", "proc", "sys", "dev", "tmp", "root"):
        (root / name).mkdir(parents=True)
    shutil.copy(str(busybox), root / "bin/busybox")
    listed = subprocess.run([str(busybox), "--list"], capture_output=True, text=True, check=True)
    for applet in set(listed.stdout.split()) - {"busybox"}:
        (root / "bin" / applet).symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (root / "etc/where").write_text("inside\n")
