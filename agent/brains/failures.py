"""What went wrong when a model was asked, and whether asking again can help.

Pure: a status, headers and a body in, a failure out. The words of vendors are data
(``vendor_words.py``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from agent.brains.error_bodies import ErrorBody
from agent.brains.retry_after import retry_after, seconds
from agent.brains.vendor_words import Found, load
from agent.visible import visible

LONGEST = 600
"""Characters of a failure's text."""
_LONGEST_SAID = 350
"""Characters of what the server says, so that the advice behind it is not cut off."""

_LONG_WORD = re.compile(r"[\w.]{300,}")
"""No vendor says such a word, and patterns that begin with any word would take minutes in it."""


class Kind(StrEnum):
    """What kind of failure it is."""

    KEY = "key"
    """401, 403: the key is wrong, or may not do this."""
    NOT_FOUND = "not_found"
    """404 and the like: no such model, or nothing speaks this protocol at this address."""
    REQUEST = "request"
    """400, 422: the server does not take something in the request."""
    OVERFLOW = "overflow"
    """The request is longer than the model's window, or than what is let through at once."""
    RATE = "rate"
    """429: too many requests for now."""
    QUOTA = "quota"
    """402, or 429 for good: the account has no money or no quota left."""
    SERVER = "server"
    """5xx, and errors in the middle of a stream."""
    NETWORK = "network"
    """Refused, reset, broken off, no such host, TLS."""
    TIMEOUT = "timeout"
    NOT_A_REPLY = "not_a_reply"
    """200 with something else than a completion."""


_RETRYABLE = {Kind.RATE, Kind.SERVER, Kind.NETWORK, Kind.TIMEOUT, Kind.NOT_A_REPLY}
_BY_STATUS = {
    401: Kind.KEY,
    402: Kind.QUOTA,
    403: Kind.KEY,
    404: Kind.NOT_FOUND,
    405: Kind.NOT_FOUND,
    407: Kind.KEY,
    408: Kind.TIMEOUT,
    410: Kind.NOT_FOUND,
    413: Kind.OVERFLOW,
    425: Kind.SERVER,
    429: Kind.RATE,
    501: Kind.NOT_FOUND,
    504: Kind.TIMEOUT,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt."""

    kind: Kind
    text: str
    """For people, one line: what, where, and what to do."""
    status: int | None = None
    retry_after_s: float | None = None
    """The server says when to ask again."""
    parameter: str = ""
    """REQUEST: the field of the request that it complains of, such as ``stream_options``."""
    limit_tokens: int | None = None
    """OVERFLOW: the window that it names."""
    final: bool = False
    """Asking again would fail the same way, whatever the kind."""

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.kind in _RETRYABLE and not self.final


class ModelFailed(Exception):
    """The model gave no reply; what the SDK or the network raised is its cause."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


def classify(status: int | None, headers: Mapping[str, str], body: str) -> Failure:
    """Tell what a server's refusal means.

    Args:
        status: the HTTP status; ``None`` or 200 for an error inside a reply or a stream.
        headers: of the reply.
        body: as text, whatever it is.
    """
    reply = ErrorBody(body)
    if status in (None, 200):
        status = reply.status()
    said = _LONG_WORD.sub("…", reply.said)
    found = load().find(status, said)
    kind = Kind(found.words.kind) if found else _kind_of(status)
    wait = retry_after(headers, windows=kind is Kind.RATE)
    if wait is None and found and found.retry:
        wait = seconds(found.retry)
    target = headers.get("location", "") if status is not None and 300 <= status < 400 else ""
    return Failure(
        kind=kind,
        text=_text(kind, status, reply.message() or (target and f"it points to {target}")),
        status=status,
        retry_after_s=wait,
        parameter=_parameter(found, said) if kind is Kind.REQUEST else "",
        limit_tokens=found.limit if found and kind is Kind.OVERFLOW else None,
    )


def one_line(text: str, most: int = LONGEST) -> str:
    """Return text as one line of at most ``most`` characters, without control characters."""
    line = " ".join(visible(text[: most * 4]).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _text(kind: Kind, status: int | None, what: str) -> str:
    head = f"HTTP {status}" if status is not None else "an error in the reply"
    said = f"{head}: {one_line(what, _LONGEST_SAID)}" if what else head
    advice = load().advice.get(kind.value, "")
    return one_line(f"{said} ({advice})" if advice else said)


def _kind_of(status: int | None) -> Kind:
    if status is None:
        return Kind.SERVER
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return Kind.SERVER
    return Kind.NOT_FOUND if 300 <= status < 400 else Kind.REQUEST


def _parameter(found: Found | None, said: str) -> str:
    """Return the field that a complaint is about; of a path the part that can be left out."""
    known = load().parameters
    named = found.parameter if found else ""
    if not named:
        match = re.search(r"(?m)^param=(\S+)", said)
        named = match[1] if match else ""
    names = [part for part in re.split(r"[^\w-]+", named) if part and not part.isdigit()]
    names = [part for part in names if part != "body"]
    for part in (*reversed(names), *names[:1]):
        if part in known:
            return "system" if part == "role" else part
    if names:
        return names[0]
    mentioned = re.search(rf"""[`'"]({"|".join(known)})[`'"]""", said)
    return mentioned[1] if mentioned else ""
