"""What the run verbs share: options, faces, and driving a session to its exit code."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from agent.brains.base import Brain, Closing
from agent.cli.options import OneJson as OneJson
from agent.cli.output import say
from agent.engine import Answer, drive
from agent.events import AnyEvent, ApprovalAsked
from agent.problems import Problem
from agent.report import EXIT_CODES
from agent.session import Session

Json = Annotated[bool, typer.Option("--json", help="Events as JSON Lines on standard output.")]
Yes = Annotated[bool, typer.Option("--yes", help="Answer asks up to CHANGE with yes.")]
Mode = Annotated[
    str | None, typer.Option(help="read-only, supervised (default) or auto.", show_default=False)
]
OnAsk = Annotated[
    str | None,
    typer.Option(help="Without a terminal: park (default) or deny.", show_default=False),
]
BrainName = Annotated[
    str | None,
    typer.Option("--brain", help="Who decides: playbook (default) or openai.", show_default=False),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="openai: the endpoint (default: OPENAI_BASE_URL).", show_default=False),
]
ModelName = Annotated[
    str | None, typer.Option("--model", help="openai: the model's name there.", show_default=False)
]


class CheckpointError(Problem):
    """LangGraph's checkpoints cannot be kept; the transcript, which is the truth, is whole."""


def interactive() -> bool:
    """Whether a person can be asked here."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def close(brain: Brain) -> None:
    """Let go of a brain's connection, if it has one."""
    if isinstance(brain, Closing):
        brain.close()


def finish(session: Session, *, as_json: bool) -> int:
    """Drive a session with a face, close it, and return the exit code.

    Raises:
        CheckpointError: the checkpoints cannot be written.
        TranscriptError: the transcript cannot be written.
    """
    try:
        with faces(session, as_json=as_json) as answer:
            outcome = drive(session.run, answer, session.checkpoint)
    except sqlite3.Error as error:
        raise CheckpointError(
            f"{session.checkpoint}: cannot keep the checkpoints: {error}; make room there, or"
            f" remove the file (nothing is lost with it), then `bringup resume {session.folder.id}`"
        ) from error
    finally:
        session.close()
    for problem in session.transcript.problems:
        say(f"note: {problem}")
    return EXIT_CODES[outcome]


@contextmanager
def faces(session: Session, *, as_json: bool) -> Iterator[Answer]:
    """Show a run as it goes, on what is there: a terminal, a pipe, or JSON Lines."""
    from rich.console import Console

    from agent.console import LiveFace, PlainFace
    from agent.json_face import JsonFace
    from agent.passphrase import ASKER
    from agent.prompts_face import TerminalAsker

    run_id = session.folder.id
    footer = [f"bringup show {run_id}", str(session.folder.transcript)]
    if as_json:
        _subscribe(session, JsonFace(sys.stdout).on_event)
        yield _park
        return
    if not sys.stderr.isatty():
        with PlainFace(sys.stderr, footer=footer) as plain:
            _join(session, plain)
            yield _park
        return
    console = Console(stderr=True)
    asker = TerminalAsker(console)
    _subscribe(session, asker.on_event)
    with LiveFace(console, footer=footer) as live, ASKER.beside(live.paused):
        _join(session, live)

        def answer(asked: list[ApprovalAsked]) -> Mapping[str, Any] | None:
            if not interactive():
                return None
            with live.paused():
                given: Mapping[str, Any] = asker.ask(asked)
                return given

        yield answer


def _join(session: Session, face: Any) -> None:
    _subscribe(session, face.on_event)
    session.run.watchers.append(face.on_live)


def _subscribe(session: Session, on_event: Callable[[AnyEvent], None]) -> None:
    """Show events as the person here needs them: with the paths of this machine put back.

    A stream that takes nothing any more ends the display, not the run.
    """
    gone = False

    def tell(event: AnyEvent) -> None:
        nonlocal gone
        if not gone:
            try:
                on_event(session.redactor.restore(event))
            except OSError:
                gone = True

    for event in session.transcript.events:
        tell(event)
    session.transcript.subscribe(tell)


def _park(asked: list[ApprovalAsked]) -> None:
    return None
