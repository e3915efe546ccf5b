"""A run's parts, held together for the nodes: transcript, view, brain, connectors, policy, time."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent.approval import Policy
from agent.brains.base import Brain
from agent.events import AnyEvent
from agent.fold import View
from agent.interrupts import undisturbed
from tools.base import CallContext
from tools.connection import Connect, Connection
from tools.connectors.base import Connector

REMOTE_DIR = ".cache/bringup"
"""Where runs leave things on hosts of others, in the home of the user there."""


class Record(Protocol):
    """Where events go: a transcript on disk, or one in memory."""

    def write(self, *events: AnyEvent) -> Sequence[AnyEvent]:
        """Write events durably, in one go, and return them with number and time."""
        ...

    def tell(self) -> None:
        """Tell the faces what is written; a face may be slow, or stuck."""
        ...


@dataclass(frozen=True, slots=True)
class Live:
    """Something that happens now and is not kept: for faces only."""

    call_id: str
    what: str
    """``output`` (a piece of a command's text) or ``progress``."""
    text: str


@dataclass
class Run:
    """One run. Nodes read ``view`` and write through ``record``."""

    transcript: Record
    view: View
    brain: Brain
    connectors: Mapping[str, Connector]
    policy: Policy
    host_dir: str
    """Folder on the targets for what the run leaves there."""
    sleep: Callable[[float], None] = time.sleep
    """How the run waits between two samples, in seconds."""
    watchers: list[Callable[[Live], None]] = field(default_factory=list)
    """The ephemeral channel."""

    def record(self, *events: AnyEvent) -> list[AnyEvent]:
        """Append events and fold them in: what is recorded is what is known.

        What is written has placeholders for paths and secrets; the fold keeps the values
        themselves. Ctrl-C waits until both have them.
        """
        known: list[AnyEvent] = []
        with undisturbed():
            for event, written in zip(events, self.transcript.write(*events), strict=True):
                known.append(event.model_copy(update={"seq": written.seq, "t": written.t}))
                self.view.apply(known[-1])
        self.transcript.tell()
        return known

    def context(self, call_id: str, target: str = "") -> CallContext:
        """Return what a tool may know of its call; the marker comes from the run's seed."""
        header = self.view.header
        if header is None:
            raise ValueError("a run starts with its header")
        key = hmac.new(header.seed.encode(), call_id.encode(), hashlib.sha256)
        remote = [host.name for host in self.view.need_goal().hosts if host.is_remote]
        away = target.partition("/")[0] in remote
        folder = f"{REMOTE_DIR}/{header.run_id}" if away else self.host_dir
        host_key = self._host_key(target) if away else ""
        return CallContext(header.run_id, call_id, f"@{key.hexdigest()[:16]}", folder, host_key)

    def _host_key(self, target: str) -> str:
        """Return the fingerprint by which a host was known when it was last connected to."""
        host = target.partition("/")[0]
        known = [row for row in self.view.facts.known(Connect) if row.target == host]
        seen = known[-1].observation if known else None
        return seen.fingerprint if isinstance(seen, Connection) else ""

    def tell(self, call_id: str, what: str, text: str) -> None:
        """Tell the faces what happens now."""
        for watcher in self.watchers:
            watcher(Live(call_id, what, text))
