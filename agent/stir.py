"""What has moved where a run stands, so that it is reckoned anew only then and not at each turn.

What a check or a kind of failure goes by is all in the view. Words leave it alone, and so does a
look at something that none of them has ever asked for: a log, a file, the processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from agent.control import CONTROLS
from agent.events import AnyEvent, CallEnded, CallQueued, CallStarted
from tools.base import Risk

if TYPE_CHECKING:
    from agent.fold import View

T = TypeVar("T")

WORDS = frozenset({"request", "request_failed", "reply", "hint", "hypotheses", "call_sampled"})
"""Types of events of which no check and no kind reads anything."""


class Stir:
    """When something moved last, and what was made of the view since."""

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}

    def take(self, view: View, event: AnyEvent) -> None:
        """Take an event that the view has taken."""
        if not _is_aside(view, event):
            self._kept.clear()

    def kept(self, name: str, make: Callable[[], T]) -> T:
        """Return what was made under a name, made anew once something has moved.

        Only for what follows from where the run stands: not from its words, turns or time.
        """
        if name not in self._kept:
            self._kept[name] = make()
        made: T = self._kept[name]
        return made


def _is_aside(view: View, event: AnyEvent) -> bool:
    """Tell whether an event leaves alone where the run stands."""
    if event.type in WORDS:
        return True
    if isinstance(event, CallQueued):
        record = view.calls[event.call.id]
    elif isinstance(event, CallStarted | CallEnded):
        record = view.calls[event.call_id]
    else:
        return False
    tool = record.call.tool
    minded = tool in CONTROLS or view.effects.minds(tool) or view.facts.was_asked(tool)
    return record.risk is Risk.READ and not minded and not view.failed_changes
