"""The texts of the self-test, as they stand in ``prompts/selftest.yaml``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict


class Texts(BaseModel):
    """What is asked, and what a good reply calls."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    ask: str
    calls: dict[str, dict[str, Any]]
    """By the name of a tool: the arguments in their types."""
    tools: tuple[dict[str, Any], ...]
    result: str
    window: str
    filler: tuple[str, ...]

    def schemas(self) -> list[dict[str, Any]]:
        """Return the tools as a request holds them."""
        return [{"type": "function", "function": tool} for tool in self.tools]

    def notes(self, characters: int) -> str:
        """Return so many characters of plain filler, whole sentences."""
        rows: list[str] = []
        length = 0
        while length < characters:
            row = f"{len(rows) + 1}. {self.filler[len(rows) % len(self.filler)]}"
            rows.append(row)
            length += len(row) + 1
        return "\n".join(rows)


@cache
def load() -> Texts:
    """Read the texts that are shipped."""
    text = (files("prompts") / "selftest.yaml").read_text(encoding="utf-8")
    return Texts.model_validate(yaml.safe_load(text))
