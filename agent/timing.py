"""Where a run's time went, by its transcript: pip, loading, other commands, and our own part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from agent import events as e
from agent.brains.base import OWN_BRAIN
from agent.values import CallStatus

PIP_TOOLS = (
    *("build_image", "install_pip", "pip_check", "pip_install", "pip_list", "pip_resolve"),
    "pip_show",
)
"""Tools whose command is pip, or an engine that lets pip install a layer."""
LOAD_TOOLS = ("watch_server", "watch_service")
"""Tools that wait until a server answers."""

"""The brain whose thinking is ours; any other one thinks elsewhere."""


@dataclass(frozen=True, slots=True)
class Split:
    """A run's seconds by what they were spent on; what is left of the total is our own."""

    total_s: float
    """From the header to the run's end, or its last event; a parked run's pauses do not count."""
    pip_s: float = 0.0
    load_s: float = 0.0
    """Watching a server come up: the looks at it and the waits between them."""
    commands_s: float = 0.0
    """All other commands on the target."""
    person_s: float = 0.0
    """From questions to a person's answers."""
    model_s: float = 0.0
    """From requests to a model's replies; 0 for the embedded brain, whose thinking is ours."""

    @property
    def own_s(self) -> float:
        """What none of the others took: deciding, reading results, writing the transcript."""
        others = self.pip_s + self.load_s + self.commands_s + self.person_s + self.model_s
        return max(0.0, self.total_s - others)

    @property
    def text(self) -> str:
        """The parts that took time, for people."""
        parts = {
            "pip": self.pip_s,
            "loading": self.load_s,
            "other commands": self.commands_s,
            "the person": self.person_s,
            "the model": self.model_s,
            "own": self.own_s,
        }
        shown = [f"{name} {seconds:.1f} s" for name, seconds in parts.items() if seconds]
        return f"{self.total_s:.1f} s in all: {', '.join(shown)}"

    @property
    def own_share(self) -> float:
        """Our own part of the total, from 0 to 1."""
        return self.own_s / self.total_s if self.total_s else 0.0


def split(events: Iterable[e.AnyEvent]) -> Split:
    """Add up where the time went; what was done after the run's end does not count."""
    clock = _Clock()
    for event in events:
        clock.now = event.t
        clock.begin(event)
        clock.finish(event)
        if isinstance(event, e.RunEnded):
            break
    return Split(clock.now, **clock.spent)


class _Clock:
    """Takes one event after the other."""

    def __init__(self) -> None:
        self.now = 0.0
        self.spent: defaultdict[str, float] = defaultdict(float)
        self._part: dict[str, str] = {}
        """By call, approval or request: the field of ``Split`` that it counts for."""
        self._since: dict[str, float] = {}
        """By call, approval or request: since when its next event has been awaited."""

    def begin(self, event: e.AnyEvent) -> None:
        match event:
            case e.RunStarted(brain=brain) if brain != OWN_BRAIN:
                self._part["request"] = "model_s"
            case e.CallQueued(call=call):
                part = "pip_s" if call.tool in PIP_TOOLS else "commands_s"
                self._part[call.id] = "load_s" if call.tool in LOAD_TOOLS else part
            case e.CallStarted(call_id=name):
                self._since[name] = self.now
            case e.ApprovalAsked(approval_id=name):
                self._part[name], self._since[name] = "person_s", self.now
            case e.RequestMade():
                self._since["request"] = self.now

    def finish(self, event: e.AnyEvent) -> None:
        match event:
            case e.CallSampled(call_id=name, n=1):
                self._add(name, event.result.duration_s)
            case e.CallSampled(call_id=name) | e.CallEnded(call_id=name, status=CallStatus.UNKNOWN):
                self._add(name)
            case e.ApprovalAnswered(approval_id=name) | e.CallEnded(call_id=name, tool="wait"):
                self._add(name)
            case e.ReplyReceived():
                self._add("request")

    def _add(self, name: str, seconds: float | None = None) -> None:
        waited = self.now - self._since.get(name, self.now)
        self._since[name] = self.now
        if name in self._part:
            self.spent[self._part[name]] += waited if seconds is None else seconds
