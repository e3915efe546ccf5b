"""Runs commands with a virtual environment of another target active, as ``activate`` makes it."""

from __future__ import annotations

import secrets
from dataclasses import replace

from tools.command import Command, Ending, OnOutput, Result
from tools.connectors import inside
from tools.connectors.base import Connector
from tools.connectors.streams import ByteStream, streaming
from tools.errors import ConnectionFailed

ENTER = """
marker=$1; shift
no() { printf '%s %s\\n' "$marker" "$1" >&2; exit 126; }
python=$VIRTUAL_ENV/bin/python
[ -d "$VIRTUAL_ENV" ] || no 'there is no such folder'
if [ -L "$python" ] && [ ! -e "$python" ]; then
  no 'its Python is gone: bin/python is a link to what is not there; make the environment anew'
fi
[ -x "$python" ] || no 'it has no bin/python that can be run: it is no virtual environment'
[ -f "$VIRTUAL_ENV/pyvenv.cfg" ] || no 'it has no pyvenv.cfg: it is no virtual environment'
PATH=$VIRTUAL_ENV/bin:$PATH; export PATH; unset PYTHONHOME
exec "$@"
"""
"""What ``sh`` does first. Words: a marker, and the command."""
WHOLE = Command.of("python", "-c", "import encodings, site", timeout_s=30)
"""Runs where the environment's Python finds its own library."""


class Venv:
    """A target with a virtual environment active: its programs come first on ``PATH``."""

    def __init__(self, folder: str, via: Connector) -> None:
        """Take the environment's folder, absolute, and the connector of its target."""
        self._folder, self._via = folder, via

    @property
    def name(self) -> str:
        """The target's name and the folder."""
        return f"{self._via.name}:{self._folder}"

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        """Run a command with the environment active; see ``Connector.run``.

        ``VIRTUAL_ENV`` is set and ``PYTHONHOME`` is not. A command that sets ``PATH`` itself gets
        the environment's programs before that. What a target does by itself (its Docker engine, its
        connection) it does without.

        Raises:
            ConnectionFailed: the target cannot be reached, or there is no whole environment.
        """
        if command.via == "connection":
            answer = inside.connection(self._via, self._via.run, command)
            self._check(answer, command)
            return answer
        if command.via != "process":
            return self._via.run(command, on_output)
        marker = f"bringup-{secrets.token_hex(8)}"
        words = ("sh", "-c", ENTER, "sh", marker, *command.argv)
        active = {**command.env, "VIRTUAL_ENV": self._folder}
        result = self._via.run(replace(command, argv=words, env=active), on_output)
        _, refused, reason = result.stderr.partition(marker)
        if result.code == 126 and refused:
            raise ConnectionFailed(self.name, reason.strip())
        return result

    def open_stream(self, argv: tuple[str, ...]) -> ByteStream:
        """Start a program of the target, without the environment; see ``Streaming``."""
        return streaming(self._via).open_stream(argv)

    def close(self) -> None:
        """Close the way to the host."""
        self._via.close()

    def _check(self, answer: Result, command: Command) -> None:
        """See whether the Python runs: one look more, only where the target is connected to."""
        if command.argv != ("connect",) or '"host_key": "unknown"' in answer.stdout:
            return
        seen = self.run(WHOLE)
        if seen.ending is not Ending.EXITED or seen.code != 0:
            reason = " ".join(seen.tail.split())[-300:]
            raise ConnectionFailed(self.name, f"its Python does not run ({seen.how}): {reason}")
