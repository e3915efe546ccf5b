"""Tests have a home of their own, no keys, and no network but this machine's loopback."""

from __future__ import annotations

import ipaddress
import os
import sys
from pathlib import Path

import pytest

from tests.lab.need import REQUIRE_LAB

CONNECTS = {"socket.connect", "socket.sendto", "socket.sendmsg"}
FOREIGN = ("BRINGUP_", "OPENAI_", "ANTHROPIC_", "LANGCHAIN_", "LANGSMITH_", "HF_", "XDG_", "GIT_")
SINGLE = ("HUGGING_FACE_HUB_TOKEN", "SSH_AUTH_SOCK", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")


class OutsideNetwork(RuntimeError):
    """A test tried to reach another machine."""


def refuse_outside(event: str, args: tuple[object, ...]) -> None:
    """Audit hook: raise when this process is about to reach beyond loopback.

    Raises:
        OutsideNetwork: With the address.
    """
    if event in CONNECTS and not is_loopback(args[1]):
        raise OutsideNetwork(f"tests reach this machine only, not {args[1]!r}")


def is_loopback(address: object) -> bool:
    """Tell whether a socket address stays on this machine; Unix and netlink ones do."""
    host = address[0] if isinstance(address, tuple) and address else None
    if not isinstance(host, str) or host in ("", "localhost"):
        return True
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback or (mapped or ip).is_unspecified


def isolate(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Point HOME and all that follows from it to a new folder, and forget keys and settings.

    The caches and the settings of pip and uv stay the person's: real installs need their index,
    and would be slow without the cache.
    """
    kept = package_settings(Path.home())
    for name in [*os.environ]:
        if name in SINGLE or (name.startswith(FOREIGN) and name != REQUIRE_LAB):
            monkeypatch.delenv(name)
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    folders = {"CONFIG": ".config", "CACHE": ".cache", "DATA": ".local/share"}
    for kind, folder in {**folders, "STATE": ".local/state"}.items():
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(home / folder))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name, value in kept.items():
        monkeypatch.setenv(name, value)


def package_settings(home: Path) -> dict[str, str]:
    """Return the environment by which pip and uv find their caches and settings without HOME."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    on_mac = home / "Library" / "Caches" / "pip"
    found = {
        "PIP_CACHE_DIR": str(on_mac if sys.platform == "darwin" else cache / "pip"),
        "UV_CACHE_DIR": str(cache / "uv"),
    }
    for file in (config / "pip" / "pip.conf", home / ".pip" / "pip.conf"):
        if file.is_file():
            found["PIP_CONFIG_FILE"] = str(file)
    return {name: os.environ.get(name) or value for name, value in found.items()}
