"""Small environments and packages on this machine, and a short way to look at them."""

from __future__ import annotations

import base64
import hashlib
import sys
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.base import CallContext, Tool
from tools.command import Command
from tools.connectors.local import Local

CALL = CallContext("run-1", "call-1", "m-5e1f", "/nowhere")


def see(
    tool: Tool[Any, Any],
    python: str | Path = sys.executable,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout_s: float | None = None,
    **args: Any,
) -> Any:
    """Run a tool on this machine and return what it observed."""
    given = tool.args_type.model_validate({"python": str(python), **args})
    command: Command = tool.command(given, CALL)
    command = replace(
        command,
        env={**command.env, **(env or {})},
        cwd=str(cwd) if cwd else command.cwd,
        timeout_s=timeout_s or command.timeout_s,
    )
    return tool.parse(given, CALL, Local().run(command))


def runs(python: str) -> bool:
    return Local().run(Command.of(python, "-c", "import sys")).ok


def make_venv(path: Path) -> Path:
    """An environment without pip, quickly; returns its interpreter."""
    venv.create(path, symlinks=True, with_pip=False)
    return path / "bin" / "python"


def site_packages(python: Path) -> Path:
    return next(python.parent.parent.glob("lib/python3*/site-packages"))


def make_wheel(folder: Path, name: str, version: str, *more: str) -> None:
    """Write the smallest wheel that pip takes; ``more`` are further lines of its metadata."""
    info = f"{name}-{version}.dist-info"
    metadata = "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *more])
    files = {
        f"{name}.py": f"__version__ = {version!r}\n",
        f"{info}/METADATA": metadata + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{info}/RECORD,,"]
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()
        rows.append(f"{path},sha256={digest.rstrip('=')},{len(text.encode())}")
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in {**files, f"{info}/RECORD": "\n".join(rows) + "\n"}.items():
            wheel.writestr(path, text)


def write_dist(site: Path, folder: str, name: str, *requires: str) -> None:
    info = site / f"{folder}.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {folder.rpartition('-')[2]}"]
    lines += [f"Requires-Dist: {text}" for text in requires]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
