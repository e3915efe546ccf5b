"""Calls one verb: its options through typer, its errors as one clear line, its exit code."""

from __future__ import annotations

import importlib
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from agent.problems import Problem

WRONG_INPUT = 2
BROKEN_PIPE = 141


def call(verb: str, words: list[str]) -> int:
    """Run a verb's module and return its exit code."""
    module = importlib.import_module(f"agent.cli.{verb}")
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name=verb, help=module.__doc__)(module.run)
    try:
        with terminable():
            app(words, prog_name=f"bringup {verb}")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    except Problem as problem:
        return complain(str(problem), as_json="--json" in words)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return BROKEN_PIPE
    return 0


def complain(text: str, *, as_json: bool, code: int = WRONG_INPUT) -> int:
    """Say what is wrong on standard error, or as JSON on standard output; return the exit code."""
    if as_json:
        sys.stdout.write(json.dumps({"error": text, "exit_code": code}) + "\n")
    else:
        encoding = sys.stderr.encoding or "utf-8"
        line = f"bringup: {text}"
        sys.stderr.write(line.encode(encoding, "replace").decode(encoding) + "\n")
    return code


@contextmanager
def terminable() -> Iterator[None]:
    """Take SIGTERM and SIGHUP as Ctrl-C, so that books are closed and processes ended."""

    def raise_interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    old = {name: signal.signal(name, raise_interrupt) for name in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for name, handler in old.items():
            signal.signal(name, handler)
