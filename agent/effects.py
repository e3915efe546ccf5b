"""What a run has brought about and not taken back: servers, services, images, and what it ended.

Folded from calls as they end; a change whose outcome is not known counts as one that may be there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent.events import CallEnded
from agent.records import CallRecord
from agent.values import CallStatus


class Effects:
    """The effects of a run, each by the call that brought it about."""

    def __init__(self) -> None:
        self.servers: dict[str, CallRecord] = {}
        """Jobs that serve, started and not stopped, oldest first."""
        self.stopped: set[str] = set()
        """Jobs that were ended."""
        self.services: dict[str, CallRecord] = {}
        """Containers that serve, oldest first, also where it is not known whether they came up."""
        self.removed: set[str] = set()
        """Containers of the run that were stopped or removed."""
        self.ended_others: dict[str, CallRecord] = {}
        """Services of others that the run stopped and did not start again."""
        self.images: dict[str, str] = {}
        """Image of a candidate to the image that was derived from it and is used instead."""
        self.built: dict[str, CallRecord] = {}
        """Images that the run built."""
        self._over: set[str] = set()
        """Jobs of which nothing was left when they were last looked at."""

    @property
    def service(self) -> str:
        """The container that was started last and not stopped; empty for none."""
        alive = [name for name in self.services if name not in self.removed]
        return alive[-1] if alive else ""

    @property
    def over(self) -> set[str]:
        """Jobs that need no stopping."""
        return self.stopped | self._over

    def note(self, record: CallRecord, event: CallEnded) -> None:
        """Take a call of a tool that has ended."""
        name = record.call.tool
        if name == "start_service" and event.status in (CallStatus.OK, CallStatus.UNKNOWN):
            self.services[str(record.call.args["name"])] = record
        handler = _HANDLERS.get(name)
        if handler is not None and event.status is CallStatus.OK:
            handler(self, record, event.observation)

    def _start_server(self, record: CallRecord, seen: dict[str, Any]) -> None:
        self.servers[str(seen["job"])] = record

    def _look_at_job(self, record: CallRecord, seen: dict[str, Any]) -> None:
        job = str(record.call.args["job"])
        if seen["state"] in ("exited", "lost") and not seen.get("processes"):
            self._over.add(job)
        else:
            self._over.discard(job)

    def _stop_job(self, record: CallRecord, seen: dict[str, Any]) -> None:
        if seen["outcome"] != "survived":
            job = str(seen["job"])
            self.stopped.add(job)
            self.servers.pop(job, None)

    def _end_container(self, record: CallRecord, seen: dict[str, Any]) -> None:
        name = str(record.call.args["name"])
        if name in self.services:
            self.removed.add(name)
        elif record.call.tool == "stop_container":
            self.ended_others[name] = record

    def _start_container(self, record: CallRecord, seen: dict[str, Any]) -> None:
        name = str(record.call.args["name"])
        self.ended_others.pop(name, None)
        self.removed.discard(name)

    def _build_image(self, record: CallRecord, seen: dict[str, Any]) -> None:
        base, tag = str(record.call.args["base"]), str(seen["tag"])
        self.images[base] = tag
        self.built[tag] = record

    def _use_image(self, record: CallRecord, seen: dict[str, Any]) -> None:
        self.images[str(record.call.args["base"])] = str(record.call.args["image"])


_HANDLERS: dict[str, Callable[[Effects, CallRecord, dict[str, Any]], None]] = {
    "start_server": Effects._start_server,
    "job_status": Effects._look_at_job,
    "watch_server": Effects._look_at_job,
    "stop_job": Effects._stop_job,
    "stop_container": Effects._end_container,
    "remove_container": Effects._end_container,
    "start_container": Effects._start_container,
    "build_image": Effects._build_image,
    "use_image": Effects._use_image,
}
