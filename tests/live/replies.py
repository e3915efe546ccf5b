"""What a server answered, read just as far as a recording needs to know what it shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer."""

    status: int
    content_type: str
    body: str
    """As it came: JSON, server-sent events, or text."""

    @property
    def text(self) -> str:
        """What the model said, of a stream too."""
        return "".join(str(part.get("content") or "") for part in self._parts())

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Tool and arguments of the calls that the server found, the arguments as they came."""
        calls = (call for part in self._parts() for call in part.get("tool_calls") or ())
        return [(call["function"]["name"], call["function"]["arguments"]) for call in calls]

    @property
    def names(self) -> list[str]:
        """Tools of the calls that the server found."""
        return [name for name, _ in self.calls]

    @property
    def finish(self) -> str:
        """Why it ended; empty where the server does not say."""
        return next((str(row["finish_reason"]) for row in self._choices() if _ends(row)), "")

    @property
    def written(self) -> tuple[str, dict[str, Any]]:
        """Name and arguments of a call in the text; empty where there is none that is JSON."""
        match = CALL.search(self.text)
        try:
            data = json.loads(match[1]) if match else {}
        except ValueError:
            data = {}
        args = data.get("arguments")
        return str(data.get("name", "")), args if isinstance(args, dict) else {}

    def _parts(self) -> Iterator[dict[str, Any]]:
        """Yield the message, or the pieces of a streamed one."""
        for choice in self._choices():
            yield choice.get("message") or choice.get("delta") or {}

    def _choices(self) -> list[dict[str, Any]]:
        rows = self.body.split("\n\n") if "event-stream" in self.content_type else [self.body]
        rows = [row.removeprefix("data: ") for row in rows]
        found = [json.loads(row)["choices"] for row in rows if row.startswith('{"id"')]
        return [choice for choices in found for choice in choices]


def _ends(choice: dict[str, Any]) -> bool:
    return bool(choice.get("finish_reason"))
