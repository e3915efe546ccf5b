"""The Dockerfile of a derived image: one layer that pip makes, named by its content. Pure."""

from __future__ import annotations

import hashlib
import json

from packaging.version import InvalidVersion, Version

from tools.images import ImageState
from tools.packages import EnvironmentState

PREFIX = "bringup."
"""Images that are made here are named ``bringup.HASH``."""
ROOT_USER_ACTION = Version("22.1")
"""The first pip that knows ``--root-user-action`` (pip's news)."""
BREAK_SYSTEM_PACKAGES = Version("23.0.1")
"""The first pip that knows ``--break-system-packages`` (pip's news); 23.0 began to refuse."""
INSTALL = ["-m", "pip", "install"]
"""What the layer's command is, behind the interpreter."""


def dockerfile(
    base: ImageState, seen: EnvironmentState, requirements: tuple[str, ...], reason: str
) -> str:
    """Return the text of the one layer; words go as a list, which no shell reads."""
    words = [seen.executable, *INSTALL, "--no-cache-dir", "--progress-bar", "off"]
    words += ["--disable-pip-version-check"]
    words += ["--root-user-action=ignore"] if _pip_is(seen, ROOT_USER_ACTION) else []
    guarded = seen.externally_managed and _pip_is(seen, BREAK_SYSTEM_PACKAGES)
    words += ["--break-system-packages"] if guarded else []
    words += ["--", *requirements]
    comment = " ".join(reason.split())
    lines = [f"# {comment}", f"FROM {base.id}"]
    lines += ["USER root"] if base.user not in ("", "root", "0") else []
    lines += [f"RUN {json.dumps(words, ensure_ascii=True)}"]
    lines += [f"USER {base.user}"] if base.user not in ("", "root", "0") else []
    return "\n".join(lines) + "\n"


def _pip_is(seen: EnvironmentState, since: Version) -> bool:
    try:
        return Version(seen.pip_version or "0") >= since
    except InvalidVersion:
        return False


def name_of(base_id: str, text: str) -> str:
    """Return the image's name: the same base and the same Dockerfile have the same."""
    digest = hashlib.sha256(f"{base_id}\n{text}".encode()).hexdigest()
    return f"{PREFIX}{digest[:16]}"
