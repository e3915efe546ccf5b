"""What a run has brought about and not taken back: servers, services, images, and what it ended.

Folded from calls as they end; a change whose outcome is not known counts as one that may be there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent.events import CallEnded
from agent.records import CallRecord
from agent.values import CallStatus
from tools.base import Risk
from tools.service import MADE

UNSURE = (CallStatus.UNKNOWN, CallStatus.TIMED_OUT)
"""Ends of a call that say nothing of its effect."""


class Effects:
    """The effects of a run, each by the call that brought it about."""

    def __init__(self) -> None:
        self.servers: dict[str, CallRecord] = {}
        """Jobs that serve, started and not stopped, oldest first."""
        self.stopped: set[str] = set()
        """Jobs that were ended."""
        self.services: dict[str, CallRecord] = {}
        """Containers that the run made, or may have made, to serve; oldest first."""
        self.removed: set[str] = set()
        """Those that were stopped or removed."""
        self.ended: set[str] = set()
        """Those that did not run when they were last looked at."""
        self.ended_others: dict[str, CallRecord] = {}
        """Services of others that the run stopped and did not start again."""
        self.images: dict[str, str] = {}
        """Image of a candidate to the image that was derived from it and is used instead."""
        self.built: dict[str, CallRecord] = {}
        """Images that the run built."""
        self.jobs: dict[str, CallRecord] = {}
        """Other jobs that the run started, oldest first."""
        self.job_ends: dict[str, CallRecord] = {}
        """Jobs that have ended, by the call that first told so."""
        self._over: set[str] = set()
        """Jobs of which nothing was left when they were last looked at."""

    @property
    def service(self) -> str:
        """The container that was started last and not stopped; empty for none."""
        kept = [name for name in self.services if name not in self.removed]
        return kept[-1] if kept else ""

    @property
    def serving(self) -> list[str]:
        """Containers that run, as far as is known."""
        return [name for name in self.services if name not in self.removed | self.ended]

    @property
    def working(self) -> list[str]:
        """Jobs other than servers that run, as far as is known."""
        return [job for job in self.jobs if job not in self.over | set(self.job_ends)]

    @property
    def over(self) -> set[str]:
        """Jobs that need no stopping."""
        return self.stopped | self._over

    def minds(self, tool: str) -> bool:
        """Whether calls of a tool may change anything here."""
        return tool in _HANDLERS

    def note(self, record: CallRecord, event: CallEnded) -> None:
        """Take a call of a tool that has ended."""
        name = record.call.tool
        made = event.status is not CallStatus.FAILED or MADE in event.message
        if record.had_effect and name == "start_service" and made:
            self.services[str(record.call.args["name"])] = record
        if record.had_effect and name == "stop_container" and event.status in UNSURE:
            self._end_other(record)
        handler = _HANDLERS.get(name)
        if handler is not None and event.status is CallStatus.OK:
            handler(self, record, event.observation)

    def _start_server(self, record: CallRecord, seen: dict[str, Any]) -> None:
        self.servers[str(seen["job"])] = record

    def _start_job(self, record: CallRecord, seen: dict[str, Any]) -> None:
        self.jobs[str(seen["job"])] = record

    def _look_at_job(self, record: CallRecord, seen: dict[str, Any]) -> None:
        job = str(record.call.args["job"])
        if seen["state"] in ("exited", "lost"):
            self.job_ends.setdefault(job, record)
        if seen["state"] in ("exited", "lost") and not seen.get("processes"):
            self._over.add(job)
        else:
            self._over.discard(job)

    def _stop_job(self, record: CallRecord, seen: dict[str, Any]) -> None:
        if seen["outcome"] != "survived":
            job = str(seen["job"])
            self.job_ends.setdefault(job, record)
            self.stopped.add(job)
            self.servers.pop(job, None)

    def _look_at_container(self, record: CallRecord, seen: dict[str, Any]) -> None:
        name = str(record.call.args.get("name") or record.call.args.get("container"))
        runs = seen.get("state") in ("running", "loading", "healthy", "stuck", "undecided")
        if name not in self.services:
            return
        (self.ended.discard if runs else self.ended.add)(name)
        if record.call.tool != "inspect_container":
            return
        start = self.services[name]
        labels = seen.get("labels", {})
        if start.status in UNSURE and labels.get("bringup.call", "") != start.call.id:
            del self.services[name]  # its start broke off before it was made, or it is another's

    def _end_container(self, record: CallRecord, seen: dict[str, Any]) -> None:
        name = str(record.call.args["name"])
        if name in self.services:
            self.removed.add(name)
        elif record.call.tool == "stop_container":
            self._end_other(record)

    def _end_other(self, record: CallRecord) -> None:
        name = str(record.call.args["name"])
        if name not in self.services:
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
    "start_job": Effects._start_job,
    "job_status": Effects._look_at_job,
    "watch_server": Effects._look_at_job,
    "watch_job": Effects._look_at_job,
    "stop_job": Effects._stop_job,
    "inspect_container": Effects._look_at_container,
    "watch_service": Effects._look_at_container,
    "stop_container": Effects._end_container,
    "remove_container": Effects._end_container,
    "start_container": Effects._start_container,
    "build_image": Effects._build_image,
    "use_image": Effects._use_image,
}


def still_failed(
    failed: list[CallRecord], record: CallRecord, seen: dict[str, Any]
) -> list[CallRecord]:
    """Return the failed changes that a call which succeeded has not mended.

    A change mends what failed on the same subjects. The start of a container that broke off, and of
    which nothing is there, is no failure that anything has to mend.
    """
    if record.risk > Risk.READ:
        return [item for item in failed if not set(item.touches) & set(record.touches)]
    if record.call.tool != "inspect_container" or seen.get("present"):
        return failed
    gone = record.call.args.get("name")
    return [
        item
        for item in failed
        if not (
            item.call.tool == "start_service"
            and item.status in UNSURE
            and item.call.args.get("name") == gone
        )
    ]
