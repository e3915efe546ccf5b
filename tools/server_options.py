"""Ask an installed server's own parser for the options that it knows."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from pydantic import Field, field_validator

from tools.base import Args, CallContext, Observation, Risk, Tool
from tools.command import Command, Result
from tools.errors import ToolFailed
from tools.help_text import parse_help
from tools.logs import plain

HEAD_LINES = 25
"""How much of a help text is shown; counted in lines, since redaction changes a path's length."""
LAUNCHERS = re.compile(
    r"(ba|da|k|z)?sh|busybox|chroot|doas|env|ionice|nice|nohup|nsenter|perl|python.*|ruby|script"
    r"|setsid|stdbuf|su|sudo|timeout|unshare|xargs"
)
"""Programs that run what their words say: for these ``--help`` may be somebody else's word."""


class ServerOptionsArgs(Args):
    """Whose options."""

    argv: tuple[str, ...] = Field(
        min_length=1, description="Program and subcommand, without --help: it is added."
    )

    @field_validator("argv", mode="before")
    @classmethod
    def _without_help(cls, value: Any) -> Any:
        """Take off what is added anyway."""
        words = list(value) if isinstance(value, list | tuple) else value
        while isinstance(words, list) and len(words) > 1 and words[-1] in ("--help", "-h"):
            words.pop()
        return words


class HelpObservation(Observation):
    """What a program's own parser knows."""

    options: list[str]
    """All spellings, such as ``--torch_dtype`` and ``--torch-dtype``."""
    positionals: list[str]
    """Names of words without a dash, such as ``FORCE_MODEL``."""
    text_head: str

    def headline(self) -> str:
        """How much it knows."""
        return f"{len(self.options)} options, positionals: {', '.join(self.positionals) or 'none'}"


class ServerOptions(Tool[ServerOptionsArgs, HelpObservation]):
    """Ask an installed program's ``--help`` for the options and positionals that it knows."""

    def command(self, args: ServerOptionsArgs, call: CallContext) -> Command:
        """Return the program's own command for help."""
        return Command.of(*args.argv, "--help", env={"COLUMNS": "120"}, timeout_s=90.0)

    def parse(self, args: ServerOptionsArgs, call: CallContext, result: Result) -> HelpObservation:
        """Read its help text.

        Raises:
            ToolFailed: it printed none; the message holds its last lines.
        """
        text = plain(result.stdout) or plain(result.stderr)
        options, positionals = parse_help(text)
        if not result.ok or not options:
            said = "" if result.ok else f" ({result.how})"
            raise ToolFailed(f"{' '.join(args.argv)} --help gave no help{said}:\n{result.tail}")
        head = "\n".join(text.splitlines()[:HEAD_LINES])
        return HelpObservation(options=options, positionals=positionals, text_head=head)

    def risk_of(self, args: ServerOptionsArgs) -> Risk:
        """READ for an installed program with plain subcommands; others may ignore ``--help``."""
        program, words = PurePosixPath(args.argv[0]), args.argv[1:]
        if words[:1] == ("-m",):
            known = program.name.startswith("python") and len(words) == 2
        else:
            known = LAUNCHERS.fullmatch(program.name) is None
            known &= all(re.fullmatch(r"[a-z][a-z0-9_-]*", word) is not None for word in words)
        installed = program.is_absolute() and program.parent.name == "bin"
        return Risk.READ if installed and known else Risk.CHANGE
