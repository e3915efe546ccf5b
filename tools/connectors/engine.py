"""Carries out ``docker`` commands with the SDK instead of the docker program.

For pulls and builds the program tells progress to terminals only, and errors as text; the engine
itself tells bytes and codes. A command's words stay those of the program: people approve them, the
transcript records them, and nothing is done that they do not say. What is not known is an error.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass

import requests
import urllib3
from docker.errors import APIError, DockerException, StreamParseError

from tools.command import Command, Ending, OnOutput, Result
from tools.connectors.base import Capture
from tools.connectors.engine_build import build
from tools.connectors.engine_client import ClientFactory, EngineClient, Unreachable, local, over
from tools.connectors.engine_pull import pull
from tools.connectors.engine_words import Item, Refused, Unknown

__all__ = ["local", "over", "perform"]

Verb = Callable[[EngineClient, Command], Iterator[Item | str]]
_VERBS: Mapping[str, Verb] = {"pull": pull, "build": build}
_BROKEN = (requests.RequestException, urllib3.exceptions.HTTPError, OSError, StreamParseError)
NOT_STARTED = 125
"""Exit code of the docker program when it does not understand its own words."""


def perform(
    client_factory: ClientFactory, command: Command, on_output: OnOutput | None = None
) -> Result:
    """Carry out a command of ``via="engine"``.

    Args:
        client_factory: makes a client of the target's engine; see ``engine_client``.
        command: ``docker pull ...`` or ``docker build ...``.
        on_output: is told progress in lines for people.

    Returns:
        ``stdout`` holds the engine's answers, one JSON object a line, without those of mere
        progress; ``stderr`` the reason where it was not done. An engine that is silent until the
        command's time is over makes the command time out; silence before that means nothing.
    """
    begun = time.monotonic()
    stdout = Capture()
    ending, code, reason = Ending.EXITED, 0, ""
    tell = on_output or (lambda stream, text: None)
    with contextlib.closing(_pieces(client_factory, command)) as pieces:
        for piece in pieces:
            if isinstance(piece, _Failure):
                code, reason = piece.code, piece.reason
            elif not isinstance(piece, str):
                stdout.feed(f"{json.dumps(piece)}\n".encode())
            elif piece:
                tell("stdout", piece)
    duration_s = time.monotonic() - begun
    if code and duration_s >= command.timeout_s:
        ending, reason = Ending.TIMED_OUT, "the Docker engine was not done in time; we hung up"
    if reason:
        tell("stderr", f"{reason}\n")
    return Result(
        ending,
        code=code if ending is Ending.EXITED else None,
        stdout=stdout.text,
        stdout_omitted=stdout.omitted,
        stderr=f"{reason}\n" if reason else "",
        duration_s=duration_s,
    )


@dataclass(frozen=True, slots=True)
class _Failure:
    code: int
    reason: str


def _pieces(
    client_factory: ClientFactory, command: Command
) -> Generator[Item | str | _Failure, None, None]:
    """Yield what comes, and last why it failed, if it did."""
    try:
        verb = _verb(command)
        with contextlib.closing(client_factory()) as client:
            yield from verb(client, command)
    except (Unknown, Refused, DockerException, *_BROKEN) as error:
        yield _reason(error)


def _reason(error: Exception) -> _Failure:
    if isinstance(error, Unknown):
        return _Failure(NOT_STARTED, str(error))
    if isinstance(error, Unreachable):
        return _Failure(error.code or 1, str(error))
    if isinstance(error, APIError):
        return _Failure(1, f"Error response from daemon: {error.explanation or error}")
    if isinstance(error, Refused | DockerException):
        return _Failure(1, str(error))
    return _Failure(1, f"the connection to the Docker engine broke: {error}")


def _verb(command: Command) -> Verb:
    """Return what carries the command out.

    Raises:
        Unknown: it is none that is known here, or says more than can be done.
    """
    program, name = (*command.argv, "", "")[:2]
    verb = _VERBS.get(name) if program == "docker" else None
    if verb is None:
        raise Unknown(f"`{program} {name}` is not carried out by the engine's client: {[*_VERBS]}")
    if command.env or command.cwd is not None:
        raise Unknown(f"`docker {name}` by the engine's client takes no variables and no folder")
    return verb
