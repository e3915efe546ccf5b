"""Makes a small wheel of a folder of the lab, without any build tool."""

from __future__ import annotations

import zipfile
from pathlib import Path

PACKAGES = Path(__file__).parent / "packages"


def wheel(name: str, folder: Path, *, version: str = "1.0", requires: tuple[str, ...] = ()) -> Path:
    """Write a wheel of ``packages/<name>`` and return its path.

    Args:
        name: package and distribution.
        folder: where the wheel goes.
        version: its version.
        requires: what its metadata declares.
    """
    info = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {item}" for item in requires]
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted((PACKAGES / name).glob("*.py")):
            archive.write(file, f"{name}/{file.name}")
        archive.writestr(f"{info}/METADATA", "\n".join(lines) + "\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path
