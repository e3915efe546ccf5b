"""Copy files and folders: to a host, from a host, and between hosts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StringConstraints

from tools.base import Args, CallContext, Observation, Risk, Subject, Tool
from tools.command import Command, Result
from tools.errors import BadReply, ToolFailed
from tools.files import file_subject
from tools.weights import size_text

HERE = "here"
"""The name of the machine that bringup runs on."""
LIMIT_S = 24 * 3600.0
"""A copy ends when nothing moves; this bound is for what would move for ever."""
PLACE = r"^([A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)?):(/[^\x00]*)$"

Place = Annotated[str, StringConstraints(pattern=PLACE, max_length=4096)]
"""``HOST:/path``, ``HOST/CONTAINER:/path``, or ``here:/path``."""


class CopyFilesArgs(Args):
    """What is copied, and where to."""

    source: Place = Field(description="HOST:/path; here:/path is this machine.")
    to: Place = Field(description="Likewise; the name that the copy gets.")
    replace: bool = Field(default=False, description="Set other content that is there aside.")
    direct: str = Field(
        default="", description="Private IP of the target host.\n\nNot encrypted on that link."
    )


class FilesCopied(Observation):
    """What was copied."""

    clock_fields = ("seconds",)

    to: str
    files: int
    bytes: int
    sent_files: int
    sent_bytes: int
    """Bytes that were sent, without those of an earlier try."""
    resumed_bytes: int = 0
    """Bytes that were there of an earlier try."""
    same_files: int = 0
    """Files that were there and whole."""
    replaced: tuple[str, ...] = ()
    """Files of other content that are kept as ``NAME.before-…``."""
    is_new: bool = True
    """Whether nothing had the copy's name before."""
    route: str
    """``relayed`` through this machine and encrypted; or ``direct`` and where to."""
    why: str = ""
    """Why it went that way."""
    seconds: float = 0.0

    def headline(self) -> str:
        """How much, how fast, and which way."""
        rate = self.sent_bytes / max(self.seconds, 0.001) / 1e6
        return (
            f"{self.to}: {self.files} files, {size_text(self.bytes)}; {self.sent_files} sent now "
            f"({size_text(self.sent_bytes)}, {rate:.0f} MB/s, {self.route})"
        )


class CopyFiles(Tool[CopyFilesArgs, FilesCopied]):
    """Copy a file or folder to, from or between hosts; a copy that broke off goes on."""

    risk = Risk.CHANGE
    runs_in = "host"

    def title(self, args: CopyFilesArgs) -> str:
        """Name both ends."""
        way = f", directly to {args.direct}, not encrypted" if args.direct else ""
        return f"Copy {args.source} to {args.to}{way}."

    def command(self, args: CopyFilesArgs, call: CallContext) -> Command:
        """Return the copy, which our own client carries out."""
        flags = [*(["--replace"] if args.replace else [])]
        flags += ["--direct", args.direct] if args.direct else []
        tag = re.sub(r"[^A-Za-z0-9.-]", "-", f"{call.run_id}-{call.call_id}")[-50:].strip("-.")
        return Command.of(
            *("copy", *flags, "--", args.source, args.to),
            stdin=json.dumps({**args.model_dump(), "tag": tag}),
            timeout_s=LIMIT_S,
            via="transfer",
        )

    def parse(self, args: CopyFilesArgs, call: CallContext, result: Result) -> FilesCopied:
        """Read what was done.

        Raises:
            ToolFailed: it was not, or not all of it; the message says why.
        """
        if not result.ok:
            raise ToolFailed(f"copy to {args.to}: {result.tail}")
        last = result.stdout.rstrip("\n").rpartition("\n")[2]
        try:
            answer: Mapping[str, object] = json.loads(last)
        except ValueError as error:
            raise BadReply(f"copy to {args.to}: no answer: {last[:200]}") from error
        return FilesCopied.model_validate({**answer, "to": args.to})

    def subjects(self, args: CopyFilesArgs) -> tuple[Subject, ...]:
        """The copy."""
        return (file_subject(path_of(args.to)),)

    def undo_text(self, args: CopyFilesArgs) -> str:
        """What was not there before can be removed."""
        kept = "; what was there is NAME.before-… beside it" if args.replace else ""
        return f"the copied files can be removed from {args.to}{kept}"


def path_of(place: str) -> str:
    """Return the path of ``HOST:/path``."""
    return place.partition(":")[2]
