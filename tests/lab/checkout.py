"""The checkout that is under test, and its files."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def project_files() -> list[str]:
    """Return all files that are in the project or would be added to it, relative to its root."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listing.returncode == 0:
        names = set(listing.stdout.decode().split("\0"))
    else:  # an unpacked source archive
        names = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*")}
        names = {name for name in names if not name.startswith(".") and "__pycache__" not in name}
    return sorted(name for name in names if (ROOT / name).is_file())
