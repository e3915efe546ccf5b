"""The first image: a minimal Debian 12 with Python and pip, made by debootstrap.

A machine may reach its package index through its own address, proxy or certificates: its CA bundle
and pip's index settings go into the image, as they do on such a machine's own images.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.lab.engine import docker_run
from tests.lab.need import need
from tests.lab.package_source import index_settings

SUITE = "bookworm"
PACKAGES = "ca-certificates,python3,python3-pip"
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
DEBOOTSTRAP_S = 600.0
LEFT_OUT = ("./proc/*", "./sys/*", "./dev/*", "./var/cache/apt/*", "./var/lib/apt/lists/*")
SETTINGS = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "PIP_CERT": str(CA_BUNDLE),
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
}


@functools.cache
def base_hash() -> str:
    """Return the hash of what the first image is made of."""
    parts = [SUITE, PACKAGES, *LEFT_OUT, *map(str, SETTINGS.items()), pip_conf()]
    parts += [os.uname().machine, CA_BUNDLE.read_text(errors="replace")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def pip_conf() -> str:
    """Return the image's /etc/pip.conf: how this machine reaches its index."""
    lines = [f"{name} = {value}" for name, value in sorted(index_settings().items())]
    return "\n".join(["[global]", *lines, ""])


def import_base(tag: str) -> None:
    """Make the first image and give it a tag.

    Raises:
        RuntimeError: debootstrap or the import failed; with what was printed.
    """
    need(shutil.which("debootstrap", path=_path()) is not None, "apt-get install debootstrap")
    with tempfile.TemporaryDirectory(prefix="bringup-base-") as folder:
        root, packed = Path(folder, "root"), Path(folder, "root.tar")
        mirror = _mirror()
        _run(
            *("debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root)),
            *([mirror] if mirror else []),
        )
        shutil.copyfile(CA_BUNDLE, root / CA_BUNDLE.relative_to("/"))
        (root / "etc/pip.conf").write_text(pip_conf())
        left_out = [f"--exclude={pattern}" for pattern in LEFT_OUT]
        _run("tar", "-C", str(root), *left_out, "-cf", str(packed), ".")
        changes = [f"ENV {name}={value}" for name, value in SETTINGS.items()]
        words = [word for change in (*changes, 'CMD ["bash"]') for word in ("--change", change)]
        docker_run("import", *words, str(packed), tag)


def _mirror() -> str | None:
    """Return the address from which this machine's apt takes the suite; None for the default."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    found = [line.partition(" ")[2] for line in listed.splitlines() if line.startswith(f"{SUITE} ")]
    return found[0] if found else None


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin"


def _run(*argv: str) -> None:
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=DEBOOTSTRAP_S,
        check=False,
        env={**os.environ, "PATH": _path()},
    )
    if done.returncode:
        raise RuntimeError(f"{argv}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"[-4000:])
