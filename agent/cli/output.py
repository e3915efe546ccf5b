"""Standard output and error: they may be closed, full, or unable to show a character."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from agent.problems import Problem


class CannotWrite(Problem):
    """Standard output takes nothing more."""


def steady() -> None:
    """Make all three streams usable: a closed one leads nowhere, a strange character is spelled."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if (
            getattr(sys, name) is None
        ):  # it takes the closed descriptor, so that no file of ours does
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def guarded() -> Iterator[None]:
    """Give what goes wrong with standard output a name.

    Raises:
        BrokenPipeError: nobody reads it any more.
        CannotWrite: it is full, or broken otherwise.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CannotWrite(f"standard output: cannot write: {error.strerror}") from error


def write(text: str) -> None:
    """Write to standard output, at once.

    Raises:
        BrokenPipeError: nobody reads it any more.
        CannotWrite: it is full, or broken otherwise.
    """
    with guarded():
        sys.stdout.write(text)
        sys.stdout.flush()


def document(**values: Any) -> None:
    """Write one JSON document to standard output."""
    write(json.dumps(values) + "\n")


def say(text: str) -> None:
    """Write a line to standard error, if anybody can read it."""
    with suppress(OSError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def complain(text: str, *, as_json: bool, code: int) -> int:
    """Say in one line what is wrong, or as JSON on standard output, and return the exit code."""
    if as_json:
        with suppress(OSError, CannotWrite):
            document(error=text, exit_code=code)
    else:
        say(f"bringup: {text}")
    return code


def settle() -> None:
    """Drop what a stream does not take, so that Python's own end has nothing to say of it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
