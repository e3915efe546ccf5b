"""A target whose answers are given beforehand: a double for tests, and the source of replays."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Mapping

from tools.command import Command, OnOutput, Result
from tools.errors import ConnectionFailed

Argv = tuple[str, ...]


class Scripted:
    """Answers commands by their argument vector, and never runs anything."""

    def __init__(
        self,
        answers: Mapping[Argv, Result] | Iterable[tuple[Argv, Result]],
        name: str = "scripted",
    ) -> None:
        """Take the answers.

        Args:
            answers: a mapping answers in any order and as often as asked; pairs are a queue, each
                of which is asked for once and in this order.
            name: the target's name.
        """
        self.name = name
        self.asked: list[Command] = []
        """All commands so far, answered or not."""
        self._known = dict(answers) if isinstance(answers, Mapping) else None
        self._queue = [] if isinstance(answers, Mapping) else list(answers)

    @property
    def left(self) -> tuple[Argv, ...]:
        """What the queue still holds; empty for a mapping."""
        return tuple(argv for argv, _ in self._queue)

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        """Return the answer.

        Raises:
            ConnectionFailed: none is known; the message names the nearest command that is.
        """
        self.asked.append(command)
        result = self._next(command.argv) if self._known is None else self._known.get(command.argv)
        if result is None:
            raise ConnectionFailed(self.name, self._miss(command.argv))
        if on_output is not None:
            for stream, text in (("stdout", result.stdout), ("stderr", result.stderr)):
                if text:
                    on_output(stream, text)
        return result

    def close(self) -> None:
        """Nothing is held."""

    def _next(self, argv: Argv) -> Result | None:
        if not self._queue or self._queue[0][0] != argv:
            return None
        return self._queue.pop(0)[1]

    def _miss(self, argv: Argv) -> str:
        asked = f"no answer is recorded for `{shlex.join(argv)}`"
        if self._known is None:
            if not self._queue:
                return f"{asked}; all recorded answers are used up"
            return f"{asked}; the next recorded command is `{shlex.join(self._queue[0][0])}`"
        known = [shlex.join(words) for words in self._known]
        near = difflib.get_close_matches(shlex.join(argv), known, n=1, cutoff=0.0)
        return f"{asked}; the nearest known command is `{near[0]}`" if near else asked
