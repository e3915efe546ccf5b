"""Keeps what a self-test found, so that an endpoint is examined once a week and not once a run."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.brains.address import Address
from agent.brains.dialect import Dialect

VERSION = 1
"""Of the self-test; what another version found is not taken."""
KEPT_S = 7 * 86_400
"""What is older is examined again: servers are updated."""
KEPT_POOR_S = 3_600
"""The same for what a server can do better once it is set up better: without calls of its own, or
without a window that anybody knows."""


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int
    at: float
    """When it was found, in seconds since 1970."""
    dialect: Dialect


class Cache:
    """The file of one endpoint."""

    def __init__(self, folder: Path, address: Address) -> None:
        name = f"{address.base_url.strip()}\n{address.model}"
        self.path = folder / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.json"

    def load(self) -> Dialect | None:
        """Return what was found; ``None`` where there is nothing that can be used."""
        try:
            kept = _Kept.model_validate_json(self.path.read_bytes())
        except (OSError, ValidationError):
            return None
        age = time.time() - kept.at
        dialect = kept.dialect
        poor = not (dialect.native_tools and dialect.context_tokens)
        fresh = 0 <= age < (KEPT_POOR_S if poor else KEPT_S)
        return dialect if kept.version == VERSION and fresh else None

    def save(self, dialect: Dialect) -> str:
        """Keep it; return why that was not possible, or nothing.

        The file is written aside, readable by its owner alone, and then put in place at once.
        """
        kept = _Kept(version=VERSION, at=time.time(), dialect=dialect)
        aside: Path | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=".")  # 0600
            aside = Path(name)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(kept.model_dump_json(indent=1) + "\n")
            aside.replace(self.path)
        except OSError as error:
            if aside is not None:
                with suppress(OSError):
                    aside.unlink(missing_ok=True)
            return f"{self.path.parent}: cannot keep what was found: {error.strerror}"
        return ""
