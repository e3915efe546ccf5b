"""Takes back what a run has done to a host: its servers end, and what it stopped runs again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field

from agent.engine import STOPS, carry_out, stop_servers
from agent.goal_parts import Host
from agent.provision_undo import take_all_back
from agent.records import CallRecord
from agent.run import Run
from agent.values import CallStatus, Purpose, ToolCall
from tools.connection import forget_key
from tools.container_changes import RemoveContainer, StartContainer


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
    taken_back: list[str] = field(default_factory=list)
    """Changes of a host that was made ready."""
    kept: list[str] = field(default_factory=list)
    """What stays, as the command that would remove it."""


def undo(run: Run) -> Undone:
    """End the run's servers first, for they hold what the others need; then start those again."""
    view, done = run.view, Undone()
    before = [*view.may_run, *view.effects.working, *view.effects.serving]
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
    done.taken_back, not_back = take_all_back(run)
    done.left += not_back
    latest_first = reversed(view.calls.values())  # two changes of one file are taken back so
    hints = dict.fromkeys(filter(None, map(by_hand, latest_first)))
    host = view.need_goal().hosts[0]
    done.kept = [_there(host, words) for words in hints if not _covered(words, hints)]
    return done


def _covered(words: str, hints: Iterable[str]) -> bool:
    """Whether a file is removed with its folder anyway."""
    path = words.removeprefix("rm ").rpartition("/")[0]
    return words.startswith("rm /") and f"rm -r {path}" in hints


def _there(host: Host, words: str) -> str:
    """Return a command as it is typed here; known_hosts is here in any case."""
    here = not host.is_remote or words.startswith("ssh-keygen")
    return words if here else shlex.join(["ssh", host.address, words])


def by_hand(record: CallRecord) -> str:
    """Return how a person would undo what is kept here, since it harms nobody and cost time."""
    seen, args = record.observation, record.call.args
    if record.status is not CallStatus.OK:
        return ""
    match record.call.tool:
        case "build_image":
            return f"docker image rm {args['tag']}"
        case "pull_image" if not seen.get("already"):
            return f"docker image rm {args['image']}"
        case "fetch_config":
            return f"rm {shlex.quote(str(seen['path']))}"
        case "fetch_weights" if seen.get("fetched_bytes"):
            return f"rm -r {shlex.quote(str(args['folder']))}"
        case "replace_in_file" | "set_aside":
            return _in_place(record.call, ["mv", str(seen["backup"]), str(seen["path"])])
        case "trust_host_key":
            return forget_key(str(args["host"]), str(args["known_hosts"]))
    return ""


def _in_place(call: ToolCall, words: list[str]) -> str:
    """Return a command for the host, also where the call was inside one of its containers."""
    container = call.target.partition("/")[2]
    return shlex.join(["docker", "exec", container, *words] if container else words)


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
