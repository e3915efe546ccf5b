"""Takes back what a run has done to a host: its servers end, and what it stopped runs again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from agent.engine import STOPS, carry_out, stop_servers
from agent.run import Run
from agent.values import CallStatus, Purpose, ToolCall
from tools.container_changes import RemoveContainer, StartContainer

BY_HAND = {
    "build_image": ("docker image rm", "tag"),
    "pull_image": ("docker image rm", "image"),
    "fetch_config": ("rm -r", "folder"),
    "fetch_weights": ("rm -r", "folder"),
    "trust_host_key": ("ssh-keygen -R", "host"),
}
"""How the effects of tools are undone that are kept here: they harm nobody and cost time."""


@dataclass
class Undone:
    """What came of it."""

    stopped: list[str] = field(default_factory=list)
    """Servers of the run that run no more."""
    removed: list[str] = field(default_factory=list)
    """Containers of the run that are gone."""
    started: list[str] = field(default_factory=list)
    """Services of others that run again."""
    left: list[str] = field(default_factory=list)
    """What would not be undone, with the reason."""
    kept: list[str] = field(default_factory=list)
    """What stays, as the command that would remove it."""


def undo(run: Run) -> Undone:
    """End the run's servers first, for they hold what the others need; then start those again."""
    view, done = run.view, Undone()
    before = [*view.may_run, *(n for n in view.effects.services if n not in view.effects.removed)]
    left = stop_servers(run)
    done.stopped = [name for name in before if name not in left]
    done.left = [f"{name} would not end" for name in left]
    for name in view.effects.services:
        if name not in left:
            _remove(run, name, done)
    for name, record in reversed(list(view.effects.ended_others.items())):
        call = ToolCall(
            tool=StartContainer().name,
            args={"name": name},
            target=record.call.target,
            purpose=Purpose(kind="recover", ref=record.call.id),
            why=STOPS,
        )
        if carry_out(run, call) is CallStatus.OK:
            done.started.append(name)
        else:
            done.left.append(f"{name} could not be started: {_last_words(run)}")
    for record in view.calls.values():
        words, key = BY_HAND.get(record.call.tool, ("", ""))
        if words and record.status is CallStatus.OK:
            done.kept.append(f"{words} {shlex.quote(str(record.call.args[key]))}")
    done.kept = list(dict.fromkeys(done.kept))
    return done


def _remove(run: Run, name: str, done: Undone) -> None:
    """Remove a container that served, once: ended, it would still hold its name and its disk."""
    tool = RemoveContainer().name
    for record in run.view.calls.values():
        same = (record.call.tool, record.call.args.get("name")) == (tool, name)
        if same and record.status is CallStatus.OK:
            return
    started = run.view.effects.services[name].call
    call = ToolCall(
        tool=tool,
        args={"name": name},
        target=started.target,
        purpose=Purpose(kind="recover", ref=started.id),
        why="the run removes what it made",
    )
    if carry_out(run, call) is not CallStatus.OK:
        done.left.append(f"the container {name} could not be removed: {_last_words(run)}")
    elif next(reversed(run.view.calls.values())).observation.get("was_there"):
        done.removed.append(name)


def _last_words(run: Run) -> str:
    last = next(reversed(run.view.calls.values()))
    return last.message
