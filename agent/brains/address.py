"""Where a model is reached: all ways to write one base URL lead to the same address."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, urlsplit, urlunsplit

from agent.problems import Problem

_ROUTES = re.compile(r"/(chat/completions|completions|responses|embeddings|models)$")
_VERSION = re.compile(r"/(v\d+(?:(?:alpha|beta)\d*)?|openai)$")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")


@dataclass(frozen=True, slots=True)
class Address:
    """A server's base URL as a person gave it, and the model's name there."""

    base_url: str
    model: str

    def bases(self) -> tuple[str, ...]:
        """Return the base URLs to try, the likeliest first, without slash at the end and query.

        A path that ends in a version (``/v1``, ``/api/v3``, ``/v1beta/openai``) or that was given
        with a route behind it is taken as it is. Any other gets ``/v1``, and is tried without it
        where that is not found.

        Raises:
            Problem: it is no http or https URL.
        """
        parts = self._split()
        path = re.sub(r"/{2,}", "/", parts.path).rstrip("/")
        bare = _ROUTES.sub("", path)
        plain = urlunsplit((parts.scheme, parts.netloc, bare, "", ""))
        if bare != path or _VERSION.search(bare):
            return (plain,)
        return f"{plain}/v1", plain

    def query(self) -> dict[str, str]:
        """Return what the URL asks beyond its path, such as an API version."""
        return dict(parse_qsl(self._split().query))

    def host(self) -> str:
        """Return the host's name or address."""
        return self._split().hostname or ""

    def _split(self) -> SplitResult:
        text = self.base_url.strip()
        if not _SCHEME.match(text):
            plain = is_loopback(_host_of(text)) or ":" in text.partition("/")[0]
            text = f"{'http' if plain else 'https'}://{text}"
        try:
            parts = urlsplit(text)
            port_is_fine = parts.port is None or parts.port > 0
        except ValueError:
            port_is_fine = False
        if not port_is_fine or parts.scheme not in ("http", "https") or not parts.hostname:
            raise Problem(
                f"{shown(self.base_url)}: not an address of a server; "
                "write it as http://HOST:PORT/v1 or https://HOST/v1"
            )
        return parts


def _host_of(text: str) -> str:
    host = text.partition("/")[0]
    return host.partition("]")[0].lstrip("[") if "]" in host else host.partition(":")[0]


def root_of(base: str) -> str:
    """Return a base URL without its version: where a server's own routes begin."""
    while _VERSION.search(base):
        base = _VERSION.sub("", base)
    return base


def shown(url: str) -> str:
    """Return a URL for people: without a password, a key in its query, or line breaks."""
    text = re.sub(r"(?<=//)[^/@]*@", "", url).partition("?")[0]
    return re.sub(r"\s+", " ", text)[:200]


def is_loopback(host: str) -> bool:
    """Tell whether a host's name or address stays on this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
