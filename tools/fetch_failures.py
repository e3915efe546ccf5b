"""Why a fetch from a model hub failed, in words; pure.

The script on the target tells an exception as it is: the names of its classes (of those that it
came from, too), error numbers, and its text. The classes are those of huggingface_hub 0.3x to 2.x,
of requests and of httpx.
"""

from __future__ import annotations

import errno
import re
from typing import Literal

from pydantic import BaseModel

Kind = Literal[
    "gated", "forbidden", "not_found", "revision", "no_file", "no_weights", "offline", "broken",
    "tls", "disk_full", "no_room", "too_large", "permission", "no_library", "sizes", "time_over",
    "hub",
]  # fmt: skip

WORDS: dict[Kind, str] = {
    "gated": "access to {repo} is gated: accept its terms on the hub, and set HF_TOKEN",
    "forbidden": "the hub refuses access to {repo}: HF_TOKEN is missing, wrong or has no right",
    "not_found": "the hub has no model {repo}, or it is private and HF_TOKEN has no right to it",
    "revision": "{repo} has no revision {revision}",
    "no_file": "{repo} has no such file",
    "no_weights": "{repo} holds no weights that an engine here could load",
    "offline": "the hub cannot be reached",
    "broken": "the connection to the hub broke; a next fetch keeps what is there",
    "tls": "the hub's TLS certificate cannot be verified; the image may lack a CA certificate",
    "disk_full": "no space left on the disk",
    "no_room": "too little room on the disk",
    "too_large": "it is more than was allowed",
    "permission": "the folder cannot be written",
    "no_library": "the image's Python has no working huggingface_hub",
    "sizes": "what was fetched is not what the hub names",
    "time_over": "the time was over; a next fetch keeps what is there",
    "hub": "the hub did not do it",
}
_BY_CLASS: tuple[tuple[str, Kind], ...] = (
    ("GatedRepoError", "gated"),
    ("RepositoryNotFoundError", "not_found"),
    ("RevisionNotFoundError", "revision"),
    ("RevisionResolutionError", "revision"),
    ("RemoteEntryNotFoundError", "no_file"),
    ("SSLError", "tls"),
    ("PermissionError", "permission"),
)
_BY_TEXT: tuple[tuple[str, Kind], ...] = (
    (r"certificate.verify.failed|SSLError", "tls"),
    (r"No space left|Disk quota exceeded", "disk_full"),
    (r"IncompleteRead|peer closed connection|Connection (broken|reset)", "broken"),
    (r"\b40[13]\b.*(Client Error|Unauthorized|Forbidden)", "forbidden"),
    (r"\b404 Client Error", "no_file"),
    (r"name resolution|Name or service not known|Connection refused|unreachable", "offline"),
    (r"timed out|Max retries|offline", "offline"),
)
_OFFLINE = {
    *("ConnectionError", "ConnectError", "TimeoutException", "Timeout", "RemoteProtocolError"),
    *("LocalEntryNotFoundError", "OfflineModeIsEnabled"),
}


class FetchFailure(BaseModel):
    """What the script on the target tells of a failure."""

    kind: Kind | None = None
    """Where it was the script itself that refused."""
    classes: list[str] = []
    numbers: list[int] = []
    """``errno`` of each exception that has one."""
    text: str

    def explained(self, repo: str, revision: str) -> str:
        """Return what it means, and the library's own words."""
        return f"{WORDS[self._kind()].format(repo=repo, revision=revision)}: {self.text}"

    def _kind(self) -> Kind:
        if self.kind is not None:
            return self.kind
        if {errno.ENOSPC, errno.EDQUOT} & set(self.numbers):
            return "disk_full"
        by_class = (kind for name, kind in _BY_CLASS if name in self.classes)
        by_text = (kind for sign, kind in _BY_TEXT if re.search(sign, self.text, re.I))
        other: Kind = "offline" if _OFFLINE & set(self.classes) else "hub"
        return next(by_class, next(by_text, other))
