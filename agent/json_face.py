"""Shows a run as JSON Lines, one event a line, for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from agent.events import AnyEvent

if TYPE_CHECKING:
    from agent.run import Live


class JsonFace:
    """Writes each event as it is in the transcript, and nothing else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._ascii = not (stream.encoding or "utf-8").lower().startswith("utf")

    def on_event(self, event: AnyEvent) -> None:
        """Write an event's line, at once."""
        line = event.model_dump_json()
        if self._ascii:
            line = json.dumps(json.loads(line), separators=(",", ":"))
        self._stream.write(line + "\n")
        self._stream.flush()

    def on_live(self, live: Live) -> None:
        """Say nothing: what is not kept is not part of the record."""
