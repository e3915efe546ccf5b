"""Calls one verb: its options through typer, its errors as one clear line, its exit code."""

from __future__ import annotations

import importlib

import typer

from agent.cli.output import complain, write
from agent.interrupts import terminable
from agent.problems import Problem, Unreachable
from tools.errors import ConnectionFailed

WRONG_INPUT = 2
UNREACHABLE = 5

HELP = ("-h", "--help")
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
    except (ConnectionFailed, Unreachable) as lost:
        return complain(str(lost), as_json=as_json, code=UNREACHABLE)


def _invoke(verb: str, words: list[str]) -> int:
    module = importlib.import_module(f"agent.cli.{verb}")
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    names = {"help_option_names": list(HELP)}
    app.command(name=verb, help=_page(module.__doc__ or ""), context_settings=names)(module.run)
    command = typer.main.get_command(app)
    if any(word in HELP for word in words):
        context = command.make_context(f"bringup {verb}", [], resilient_parsing=True)
        write(command.get_help(context) + "\n")
        return 0
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


def _page(text: str) -> str:
    """Mark what is indented, so that it is shown as it stands."""
    parts = text.strip().split("\n\n")
    return "\n\n".join(f"\b\n{part}" if part.startswith("    ") else part for part in parts)


def _in_one_line(verb: str, error: Exception) -> str:
    text = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    return f"{verb}: {text[:1].lower()}{text[1:]}; `bringup {verb} --help` shows how"
