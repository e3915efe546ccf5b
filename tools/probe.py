"""Tools that run one of our scripts with the target's own Python and read its JSON answer.

The script travels on standard input, so nothing has to be installed or left on the target. Its
answer is the last line that starts with the call's marker; banners, warnings and prints of imported
modules are no part of it.
"""

from __future__ import annotations

import json
import posixpath
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, TypeVar, cast

from pydantic import BaseModel, Field, ValidationError

from tools.base import Args, CallContext, Obs, Subject, Tool
from tools.command import Command, Ending, Result
from tools.errors import BadReply, ToolFailed

NOT_EXECUTABLE, NOT_FOUND = 126, 127
"""Exit codes by which shells and connectors say that a program cannot be started."""
ALONE = ("-I", "-S")
"""Start Python with the standard library alone: whatever breaks an environment is left out."""


def environment(python: str) -> Subject:
    """Return the environment that an interpreter belongs to: the folder above its ``bin``."""
    root, last = posixpath.split(posixpath.dirname(posixpath.normpath(python)))
    return Subject(kind="environment", key=root if last == "bin" else python)


class ProbeArgs(Args):
    """Which interpreter is asked."""

    python: str = Field(
        pattern=r"^([^\x00]*/)?(python|pypy)[0-9.]*$",
        description="Path of the environment's Python interpreter.",
    )


P = TypeVar("P", bound=ProbeArgs)
Form = TypeVar("Form", bound=BaseModel)


class ProbeTool(Tool[P, Obs]):
    """A tool whose command is a script of ``tools/probes``, run by the target's interpreter."""

    script: ClassVar[str]
    """File name in ``tools/probes``."""
    options: ClassVar[tuple[str, ...]] = ()
    """Of the interpreter."""
    timeout_s: ClassVar[float] = 60.0

    def payload(self, args: P) -> dict[str, Any]:
        """Return what the script is told; the default is all arguments but the interpreter."""
        return args.model_dump(mode="json", exclude={"python"})

    def command(self, args: P, call: CallContext) -> Command:
        """Return ``PYTHON - MARKER PAYLOAD`` with the script on standard input."""
        script = _text_of(self.script)
        words = (args.python, *self.options, "-", call.marker, json.dumps(self.payload(args)))
        return Command.of(*words, stdin=script, timeout_s=self.timeout_s)

    def parse(self, args: P, call: CallContext, result: Result) -> Obs:
        """Read the script's answer.

        Raises:
            ToolFailed: there is no such interpreter.
            BadReply: the script gave no answer, or one of another form.
        """
        answer = self.answer(args, call, result, self.observation_type)
        return cast(Obs, answer)

    def answer(self, args: P, call: CallContext, result: Result, form: type[Form]) -> Form:
        """Return what is behind the last marker, as ``form``.

        Raises:
            ToolFailed: there is no such interpreter.
            BadReply: no line starts with the marker, or what follows is no JSON of that form.
        """
        text = last_marked(call.marker, result.stdout)
        if text is None:
            check_started(args.python, result)
            tail = f": {result.tail}" if result.tail else ""
            raise BadReply(f"{self.name}: {args.python} gave no answer ({result.how}){tail}")
        try:
            return form.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "as a whole"
            raise BadReply(
                f"{self.name}: the answer of {args.python} has another form ({result.how}); "
                f"{where}: {first['msg']}: {text[:200]}"
            ) from error

    def subjects(self, args: P) -> tuple[Subject, ...]:
        """Return the environment of the interpreter."""
        return (environment(args.python),)


@cache
def _text_of(script: str) -> str:
    return files("tools").joinpath("probes", script).read_text(encoding="utf-8")


def last_marked(marker: str, stdout: str) -> str | None:
    """Return what follows ``marker`` on the last line that starts with it, or ``None``."""
    for line in reversed(stdout.split("\n")):
        if line.startswith(marker + " "):
            return line[len(marker) + 1 :].strip()
    return None


def check_started(python: str, result: Result) -> None:
    """Make sure that the interpreter could be started at all.

    Raises:
        ToolFailed: it does not exist, or exists and cannot be executed.
    """
    if result.ending is not Ending.EXITED:
        return
    if result.code == NOT_FOUND:
        raise ToolFailed(f"python not found: {python}")
    if result.code == NOT_EXECUTABLE:
        raise ToolFailed(f"python not found: {python} is there but cannot be executed")
