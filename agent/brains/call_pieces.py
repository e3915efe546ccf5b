"""One call of a streamed reply, whose arguments come in pieces."""

from __future__ import annotations

import json
from typing import Any

_MOST_LOOKS = 50
"""How often it is looked whether a call's arguments are whole."""


class CallPieces:
    """A call whose pieces come in."""

    __slots__ = ("_looks", "given", "id", "index", "name", "parts")

    def __init__(self, index: int | None, name: str, given_id: str) -> None:
        """Begin a call; ``index`` and ``given_id`` are what its first piece said."""
        self.index, self.name, self.id = index, name, given_id
        self.parts: list[str] = []
        self.given: Any = None
        """Arguments that came as an object."""
        self._looks = 0

    @property
    def arguments(self) -> Any:
        """What has come of the arguments: text, or an object."""
        return "".join(self.parts) if self.given is None else self.given

    @property
    def is_whole(self) -> bool:
        """Whether the arguments so far are all of an object; looked at only where it may be so."""
        if self.given is not None:
            return True
        may_be = self.parts and self.parts[-1].rstrip().endswith("}")
        if not may_be or self._looks >= _MOST_LOOKS:
            return False
        self._looks += 1
        try:
            json.loads("".join(self.parts), strict=False)
        except (ValueError, RecursionError):
            return False
        return True

    def add(self, arguments: Any) -> None:
        """Take a piece of the arguments."""
        if isinstance(arguments, str):
            if arguments:
                self.parts.append(arguments)
        elif arguments is not None:
            self.given = arguments

    def as_entry(self) -> dict[str, Any]:
        """Return the call in the shape of a completion that was not streamed."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}
