"""Copies files and folders between two targets, one of which may be this machine.

The same small program runs on both sides, started through their connectors: one gives, one takes.
What goes from one to the other goes through us, in pieces, or directly where that was asked for.
What is whole at the sink is left alone; what was cut off is gone on with, if its first bytes are
the source's; every file gets its name when it is on the disk with the source's sum.
"""

from __future__ import annotations

import contextlib
import math
import re
import time
from dataclasses import dataclass, replace

from tools.errors import BadReply, ToolFailed
from tools.transfer_rows import Manifest, Standing, shown, some
from tools.transfer_side import Place, Role, Side, refusal
from tools.transfer_ways import Copied, NotDirectly, Score, Tell, directly, private, relay

QUIET_S = 60.0
"""So long nothing may move, on either side."""
_TAG = re.compile(r"[A-Za-z0-9._-]{1,50}")


@dataclass(frozen=True, slots=True)
class Copy:
    """What is to be copied, and how."""

    source: Place
    to: Place
    """The very name that the copy gets."""
    replace: bool = False
    """Files that are there with other content are set aside instead of refused."""
    direct: str = ""
    """The sink's address on a private link, for bytes that go there directly, not encrypted."""
    tag: str = "copy"
    """Ends the names of what is set aside: ``NAME.before-TAG``."""
    quiet_s: float = QUIET_S
    until: float = math.inf
    """When it has to be done, on the monotonic clock."""


def copy(wish: Copy, tell: Tell) -> Copied:
    """Copy; what an earlier try has left is used.

    Args:
        wish: what to copy.
        tell: is told how far it is, a line at a time.

    Raises:
        OutOfTime: it takes longer than it may; what came stays.
        ToolFailed: it cannot be done, or not all of it came; what came stays.
        ConnectionFailed: a side cannot be reached, or is lost; the same call goes on from there.
    """
    if not _TAG.fullmatch(wish.tag):
        raise ToolFailed(f"{wish.tag!r} cannot end a file's name")
    if wish.direct:
        private(wish.direct)
    begun = time.monotonic()
    first = _Session(wish, tell)
    try:
        done = first.run()
    except NotDirectly as error:
        tell(f"copy: not directly ({error}): through this machine instead\n")
        done = _Session(replace(wish, direct=""), tell).run()
        done.why, done.is_new = f"not directly: {error}", first.done.is_new
    done.seconds = round(time.monotonic() - begun, 3)
    return done


class _Session:
    """One try, with its two sides."""

    def __init__(self, wish: Copy, tell: Tell) -> None:
        self._wish = wish
        self.done = Copied()
        """What was done so far."""
        self._score = Score(self.done, wish.quiet_s, tell)

    def run(self) -> Copied:
        wish = self._wish
        with contextlib.ExitStack() as stack:
            sides = []
            ends: tuple[tuple[Role, Place], ...] = (("source", wish.source), ("sink", wish.to))
            for role, place in ends:
                side = Side(role, place, wish.tag, wish.quiet_s, wish.until)
                stack.callback(side.close)
                sides.append(side)
            try:
                self._copy(*sides)
            except (ValueError, IndexError, KeyError) as error:
                raise BadReply(f"a side says what is not known here: {error!r}") from error
        self._score.check()
        return self.done

    def _copy(self, source: Side, sink: Side) -> None:
        manifest = Manifest()
        for row in source.rows(sink):
            refusal(source.name, row)
            if row[0] != "transfer" and not manifest.take(row):
                break
        sink.say(manifest.checked().plan())
        standing = Standing()
        for row in sink.rows(source):
            refusal(sink.name, row)
            if not standing.take(row):
                break
        orders = self._settled(manifest, standing, source, sink)
        resumed = {path: at for path, (at, _) in standing.parts.items()}
        self.done.resumed_bytes = sum(resumed.values())
        gets = []
        for path in (*standing.need, *standing.parts, *standing.other):
            at, known = standing.parts.get(path, (0, "-"))
            gets.append(f"get {path} {at} {known}")
        self._score.files = len(gets)
        if self._wish.direct and gets:
            directly(source, sink, self._score, self._wish.direct, orders, gets)
        else:
            sink.say([*orders, "go"])
            source.say([*gets, "go"])
            relay(source, sink, self._score)
        self._score.progress(final=True)

    def _settled(
        self, manifest: Manifest, standing: Standing, source: Side, sink: Side
    ) -> list[str]:
        """Decide what becomes of what is there; return the sink's orders."""
        done = self.done
        done.files, done.bytes = len(manifest.files), manifest.size
        done.is_new = standing.is_new
        if standing.clash:
            rows = [f"{shown(path)} ({shown(why)})" for path, why in standing.clash.items()]
            raise ToolFailed(f"{self._wish.to}: {', '.join(rows[:5])}; nothing was copied")
        if standing.busy:
            raise ToolFailed(
                f"{self._wish.to}: another transfer is writing {some(standing.busy)}; wait for it"
            )
        touched = self._compared(standing, source, sink)
        done.same_files = len(standing.same) + len(touched)
        if standing.other and not self._wish.replace:
            raise ToolFailed(
                f"{self._wish.to}: {some(standing.other)} there with other content; copy to "
                "another name, or with replace, which keeps what is there under a further name"
            )
        done.replaced = [shown(path) for path in standing.other]
        wanted = self._score.wanted = standing.wanted(manifest)
        if wanted > standing.free:
            raise ToolFailed(
                f"{sink.name}: {wanted} bytes are to come and {standing.free} are free "
                f"where {self._wish.to.path} is; nothing was copied"
            )
        touches = (f"touch {it} {' '.join(manifest.files[it][1:])}" for it in touched)
        return [*touches, *(f"replace {it}" for it in standing.other)]

    def _compared(self, standing: Standing, source: Side, sink: Side) -> list[str]:
        """Take files of the same content out of ``other``: they differ in their times alone."""
        unsure = [path for path, digest in standing.other.items() if digest != "-"]
        source.say([f"hash {path}" for path in unsure])
        touched = []
        rows = source.rows(sink)
        for path in unsure:
            row = next(it for it in rows if it[0] != "idle")
            refusal(source.name, row)
            if row == ["sum", path, standing.other[path]]:
                del standing.other[path]
                touched.append(path)
        return touched
