"""Builds a run from its parts: a new one from a goal, or one that goes on from its folder."""

from __future__ import annotations

import datetime
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from agent import settings
from agent.approval import Policy, recorded_policy
from agent.brains.base import Brain, Closing
from agent.brains.choose import PLAYBOOK, NotAsked
from agent.brains.playbook import Playbook
from agent.connect import connector_to
from agent.events import AnyEvent, RedactionMap, RunStarted
from agent.fold import View
from agent.goal import Goal
from agent.outputs import MIB, Outputs
from agent.problems import Problem, Unreachable
from agent.redact import Redactor, secrets_of
from agent.run import Run
from agent.runs import RunFolder
from agent.transcript import Clock, Loaded, MemoryTranscript, Transcript, TranscriptError
from tools.transfer_desk import carrying


class PathsUnknown(Problem):
    """A transcript came without the paths behind its placeholders, or lost them."""


Choose = Callable[[RunStarted], Brain]
"""Chooses who decides, by a run's header."""


@dataclass
class Session:
    """A run with the folder it lives in."""

    run: Run
    folder: RunFolder
    transcript: Transcript
    redactor: Redactor

    @property
    def checkpoint(self) -> Path:
        """LangGraph's checkpoints of this run."""
        return self.folder.folder / "checkpoint.sqlite"

    def close(self) -> None:
        """Let go of the transcript and the connections."""
        for connector in self.run.connectors.values():
            connector.close()
        if isinstance(self.run.brain, Closing):
            self.run.brain.close()
        self.transcript.close()


def begin(
    goal: Goal,
    policy: Policy,
    folder: RunFolder,
    *,
    brain: Brain,
    endpoint: Mapping[str, str] | None = None,
    interactive: bool,
    environ: Mapping[str, str],
    paths: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> Session:
    """Begin a run: the header is on disk before anything is done.

    Args:
        goal: what is asked for.
        policy: what may be done unasked.
        folder: a new run's folder.
        brain: who decides.
        endpoint: where a model is asked, for the header.
        interactive: whether a person can be asked.
        environ: variables; those that look secret are kept out of the transcript.
        paths: further machine paths by the names that stand for them in the transcript.
        clock: gives the events' time, in seconds; by default a stopwatch started now.

    Raises:
        TranscriptError: the run's folder cannot be written.
    """
    names = {
        "home": str(Path.home()),
        **_places(goal),
        "run": str(folder.folder),
        "bringup": sys.prefix,
        **(paths or {}),
    }
    redactor = Redactor(secrets_of(environ), names)
    transcript = Transcript.create(folder.transcript, redactor, clock)
    folder.write_private(redactor.private())
    host_dir = str(folder.folder / "host")
    outputs = _outputs(folder, redactor.private(), environ)
    run = _run(transcript, goal, policy, brain, host_dir, outputs)
    seed = secrets.token_hex(8)
    run.record(
        RunStarted(
            run_id=folder.id,
            started_at=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            seed=seed,
            version=version("bringup"),
            goal=goal.model_dump(mode="json"),
            brain=brain.name,
            mode=policy.mode,
            interactive=interactive,
            yes=policy.yes,
            grants=policy.grants(),
            policy=policy.model_dump(mode="json"),
            host_dir=host_dir,
            endpoint=dict(endpoint or {}),
        ),
        RedactionMap(placeholders=_nesting(redactor.private())),
    )
    return Session(run, folder, transcript, redactor)


def _places(goal: Goal) -> dict[str, str]:
    """Name the paths of the goal; those of later candidates get numbers."""
    named = {"models": goal.hosts[0].models, "model": goal.model}
    names = {name: path for name, path in named.items() if path.startswith("/")}
    venvs = [item.venv for item in goal.candidates]
    return names | {f"env{n}" if n else "env": venv for n, venv in enumerate(venvs) if venv}


def _nesting(paths: Mapping[str, str]) -> dict[str, str]:
    """Say of each named path where it lies inside another named one; empty for the outermost."""
    found: dict[str, str] = {}
    for name, path in sorted(paths.items()):
        outer = {other: at for other, at in paths.items() if Path(at) in Path(path).parents}
        found[name] = Redactor({}, outer).redact(path) if outer else ""
    return found


def take_up(
    folder: RunFolder,
    *,
    environ: Mapping[str, str],
    brain: Brain | None = None,
    choose: Choose | None = None,
    clock: Clock | None = None,
) -> Session:
    """Go on with a run: its state is the fold of its transcript, with the paths put back.

    Args:
        folder: the run's.
        environ: variables; those that look secret are kept out of the transcript.
        brain: who decides from now on.
        choose: chooses who decides, by the run's header. Without either it is the playbook for a
            run of the playbook's; for another, nobody.
        clock: gives the events' time.

    Raises:
        TranscriptError: it cannot be read, is damaged, or is being written by another.
    """
    redactor = Redactor.from_private(folder.read_private(), secrets_of(environ))
    transcript = Transcript.resume(folder.transcript, redactor, clock)
    try:
        outputs = _outputs(folder, redactor.private(), environ)
        run = _rebuilt(folder, transcript, transcript, redactor, brain, choose, outputs)
    except (Problem, Unreachable, KeyboardInterrupt):
        transcript.close()
        raise
    return Session(run, folder, transcript, redactor)


def _unasked(header: RunStarted) -> Brain:
    return Playbook() if header.brain == PLAYBOOK else NotAsked(header.brain)


def beside(folder: RunFolder, loaded: Loaded, transcript: MemoryTranscript) -> Run:
    """Build a run that knows what a finished one knew, and writes elsewhere.

    Raises:
        TranscriptError: the record is damaged.
    """
    redactor = Redactor.from_private(folder.read_private(), {})
    return _rebuilt(folder, transcript, loaded, redactor, Playbook(), None, None)


def _rebuilt(
    folder: RunFolder,
    transcript: MemoryTranscript,
    record: Loaded | MemoryTranscript,
    redactor: Redactor,
    brain: Brain | None,
    choose: Choose | None,
    outputs: Outputs | None,
) -> Run:
    """Build a run as the fold of its events; what is missing among them may break it anywhere."""
    try:
        view = View(redactor.restore(event) for event in record.events)
        header = view.header
        if header is None:
            raise TranscriptError("the header is missing")
        _need_paths(folder, record.events, redactor)
        policy = recorded_policy(header.policy, header.version)
        decider = brain or (choose or _unasked)(header)
        run = _run(transcript, view.need_goal(), policy, decider, header.host_dir, outputs)
    except (LookupError, ValueError, TranscriptError) as error:
        if not record.problems:
            raise
        raise TranscriptError(
            f"{record.problems[0]}; it can be shown, and not gone on with"
        ) from error
    run.view = view
    return run


def _need_paths(folder: RunFolder, events: Sequence[AnyEvent], redactor: Redactor) -> None:
    """Refuse placeholders that stand for nothing here: commands would go to paths of that name."""
    maps = [event.placeholders for event in events if isinstance(event, RedactionMap)]
    known = redactor.private()
    unknown = [f"«{name}»" for names in maps for name in names if name not in known]
    if unknown:
        raise PathsUnknown(
            f"{folder.private}: does not tell the path of {', '.join(unknown)}: "
            "a run goes on only where it began; `bringup show` shows it anywhere"
        )


def _outputs(folder: RunFolder, paths: Mapping[str, str], environ: Mapping[str, str]) -> Outputs:
    """Return where this run keeps long outputs whole."""
    secrets = secrets_of(environ)
    most_bytes = settings.load().kept_output_mib * MIB
    return Outputs(
        folder.folder / "outputs", lambda: Redactor.from_private(paths, secrets), most_bytes
    )


def _run(
    transcript: MemoryTranscript,
    goal: Goal,
    policy: Policy,
    brain: Brain,
    host_dir: str,
    outputs: Outputs | None,
) -> Run:
    aside = outputs if outputs is not None and outputs.most_bytes else None
    connectors = carrying({host.name: connector_to(host, aside) for host in goal.hosts})
    return Run(
        transcript=transcript,
        view=View(),
        brain=brain,
        connectors=connectors,
        policy=policy,
        host_dir=host_dir,
    )
