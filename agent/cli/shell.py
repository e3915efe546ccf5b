"""Calls one verb: its options through typer, its errors as one clear line, its exit code."""

from __future__ import annotations

import importlib

import typer

from agent.cli.output import complain
from agent.interrupts import terminable
from agent.problems import Problem
from tools.errors import ConnectionFailed

WRONG_INPUT = 2
UNREACHABLE = 5
BROKEN_PIPE = 141
"""What a shell shows for a program that was ended since nobody reads its output."""

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""The root of wrong usage, in the click that this typer is built on, its own or the package."""


class WrongUsage(Problem):
    """A verb was called in a way that it does not know."""


def call(verb: str, words: list[str]) -> int:
    """Run a verb's module and return its exit code."""
    as_json = "--json" in words
    try:
        with terminable():
            return _invoke(verb, words)
    except Problem as problem:
        return complain(str(problem), as_json=as_json, code=WRONG_INPUT)
    except ConnectionFailed as lost:
        return complain(str(lost), as_json=as_json, code=UNREACHABLE)
    except BrokenPipeError:
        return BROKEN_PIPE


def _invoke(verb: str, words: list[str]) -> int:
    module = importlib.import_module(f"agent.cli.{verb}")
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    names = {"help_option_names": ["-h", "--help"]}
    app.command(name=verb, help=module.__doc__, context_settings=names)(module.run)
    command = typer.main.get_command(app)
    try:
        with command.make_context(f"bringup {verb}", list(words)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except USAGE_ERROR as error:
        raise WrongUsage(_in_one_line(verb, error)) from error
    return 0


def _in_one_line(verb: str, error: Exception) -> str:
    text = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    return f"{verb}: {text[:1].lower()}{text[1:]}; `bringup {verb} --help` shows how"
